"""Environment rules: faults of the variables of containers, and of paths of fields that they name.

Mirrors ValidateEnv, ValidateEnvFrom and the field selectors of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults
from ..text.quantity import ExactAmount
from .field_causes import Cause, invalid_value, not_found_value, required, unsupported_value
from .label_rules import text_causes

Tree = Mapping[str, Any]

VARIABLE_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
"""Fields of a pod that a variable may have, in the order of their letters."""
FILE_FIELDS = (
    *("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace"),
    "metadata.uid",
)
"""Fields of a pod that a file of a volume may have."""
_LABELLED = (
    *VARIABLE_FIELDS,
    *("metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName"),
    *("status.phase", "spec.host"),
)
_RESOURCES = tuple(
    f"{part}.{name}"
    for part in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_BYTES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_DIVISORS = {
    "cpu": ("1m and 1", "cpu"),
    "memory": (_BYTES, "memory"),
    "ephemeral-storage": (_BYTES, "local ephemeral storage"),
}
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
_ONE_SOURCE = "may not have more than one field specified at a time"
_VARIABLE_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
_SUBSCRIPT = re.compile(r"(?s)(.+?)\['(.*)'\]")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def data_key_faults(key: str) -> tuple[str, ...]:
    """The faults of a key of a ConfigMap or Secret."""
    faults = ["must be no more than 253 bytes"] if len(key.encode()) > 253 else []
    if not _KEY.fullmatch(key):
        faults.append(_KEY_RULE)
    if key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return tuple(faults)


def variable_name_faults(name: str) -> tuple[str, ...]:
    """The faults of the name of a variable, or of a prefix of names."""
    is_valid = all(" " <= letter <= "~" and letter != "=" for letter in name)
    return () if is_valid else (_VARIABLE_RULE,)


def environment_causes(container: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the variables of a container."""
    for i, variable in enumerate(container.get("env") or ()):
        where = f"{path}.env[{i}]"
        if not variable.get("name"):
            yield required(f"{where}.name")
        else:
            yield from text_causes(variable["name"], variable_name_faults, f"{where}.name")
        if variable.get("valueFrom") is not None:
            yield from _source_causes(variable, f"{where}.valueFrom")
    for i, source in enumerate(container.get("envFrom") or ()):
        where = f"{path}.envFrom[{i}]"
        yield from text_causes(source.get("prefix") or "", variable_name_faults, f"{where}.prefix")
        named = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in named:
            yield from _named_causes(source[name], f"{where}.{name}.name")
        if not named:
            problem = "must specify one of: `configMapRef` or `secretRef`"
            yield invalid_value(f"{path}.envFrom", "", problem)
        elif len(named) > 1:
            yield invalid_value(f"{path}.envFrom", "", _ONE_SOURCE)


def _named_causes(reference: Tree, path: str) -> Iterator[Cause]:
    if not reference.get("name"):
        yield required(path)
    else:
        yield from text_causes(reference["name"], subdomain_faults, path)


def _source_causes(variable: Tree, path: str) -> Iterator[Cause]:
    source = variable["valueFrom"]
    named = [name for name in _SOURCES if source.get(name) is not None]
    for name in named:
        where = f"{path}.{name}"
        if name == "fieldRef":
            yield from field_path_causes(source[name], VARIABLE_FIELDS, where)
        elif name == "resourceFieldRef":
            yield from resource_path_causes(source[name], where)
        elif name == "fileKeyRef":
            yield from _file_key_causes(source[name], where)
        else:
            yield from _data_key_causes(source[name], where)
    if not named:
        yield invalid_value(path, "", _NO_SOURCE)
    elif variable.get("value"):
        yield invalid_value(path, "", "may not be specified when `value` is not empty")
    elif len(named) > 1:
        yield invalid_value(path, "", _ONE_SOURCE)


def _data_key_causes(reference: Tree, path: str) -> Iterator[Cause]:
    yield from text_causes(reference.get("name") or "", subdomain_faults, f"{path}.name")
    if not reference.get("key"):
        yield required(f"{path}.key")
    else:
        yield from text_causes(reference["key"], data_key_faults, f"{path}.key")


def _file_key_causes(reference: Tree, path: str) -> Iterator[Cause]:
    rules = (
        ("key", variable_name_faults),
        ("volumeName", dns_label_faults),
        ("path", _back_faults),
    )
    for name, faults in rules:
        if not reference.get(name):
            yield required(f"{path}.{name}")
        else:
            yield from text_causes(reference[name], faults, f"{path}.{name}")


def _back_faults(text: str) -> tuple[str, ...]:
    return ("must not contain '..'",) if ".." in text.split("/") else ()


def field_path_causes(reference: Tree, fields: Sequence[str], path: str) -> Iterator[Cause]:
    """Yield the faults of the path of a field of a pod, which must be one of `fields`."""
    version, field = reference.get("apiVersion") or "", reference.get("fieldPath") or ""
    for name, value in (("apiVersion", version), ("fieldPath", field)):
        if not value:
            yield required(f"{path}.{name}")
            return
    parts = _SUBSCRIPT.fullmatch(field)
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif parts is not None and parts[1] not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {field}"
    elif parts is None and field not in _LABELLED:
        problem = f"field label not supported: {field}"
    if problem:
        yield invalid_value(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")
    elif parts is not None:
        key = parts[2].lower() if parts[1] == "metadata.annotations" else parts[2]
        yield from text_causes(key, key_faults, path)
    elif field != "spec.host" and field not in fields:
        yield unsupported_value(f"{path}.fieldPath", field, sorted(fields))


def resource_path_causes(reference: Tree, path: str, is_file: bool = False) -> Iterator[Cause]:
    """Yield the faults of a resource of a container, which a file of a volume must name."""
    resource = str(reference.get("resource") or "")
    if is_file and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        yield unsupported_value(f"{path}.resource", resource, _RESOURCES)
    divisor = reference.get("divisor")
    try:
        amount = str(ExactAmount.of(divisor)) if divisor is not None else "0"
    except ValueError:
        return  # refused as no quantity
    is_huge = resource.startswith(_HUGE)
    values, name = (
        (_BYTES, "hugepages") if is_huge else _DIVISORS.get(resource.partition(".")[2], ("", ""))
    )
    if name and amount != "0" and amount not in values.replace(" and", ",").split(", "):
        problem = f"only divisor's values {values} are supported with the {name} resource"
        yield invalid_value(f"{path}.divisor", resource, problem)


def variable_volume_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the variables from files of volumes that are not there, or that are no empty directory."""
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    for part in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(part) or ()):
            for j, variable in enumerate(container.get("env") or ()):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is None:
                    continue
                where = f"{path}.{part}[{i}].env[{j}].valueFrom.fileKeyRef.volumeName"
                name = reference.get("volumeName") or ""
                if name not in volumes:
                    yield not_found_value(where, name)
                elif volumes[name].get("emptyDir") is None:
                    yield invalid_value(where, name, "referenced volume must be of type emptyDir")
