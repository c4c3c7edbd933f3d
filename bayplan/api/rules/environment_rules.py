"""Environment rules: faults of the variables of containers, and of paths of fields that they name.

Mirrors ValidateEnv, ValidateEnvFrom and the field selectors of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults
from ..text.quantity import ExactAmount
from .field_causes import Part
from .security_rules import CONTAINERS, back_step_faults

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


def check_environment(container: Part) -> None:
    """Check the variables of a container."""
    for variable in container.each("env"):
        variable.needs_text("name", variable_name_faults)
        if variable.has("valueFrom"):
            _check_source(variable)
    for source in container.each("envFrom"):
        source.text("prefix", variable_name_faults)
        named = source.set_of(("configMapRef", "secretRef"))
        for name in named:
            source.below(name).needs_text("name", subdomain_faults)
        if not named:
            problem = "must specify one of: `configMapRef` or `secretRef`"
            container.invalid("envFrom", problem, "")
        elif len(named) > 1:
            container.invalid("envFrom", _ONE_SOURCE, "")


def _check_source(variable: Part) -> None:
    source = variable.below("valueFrom")
    named = source.set_of(_SOURCES)
    for name in named:
        reference = source.below(name)
        if name == "fieldRef":
            check_field_path(reference, VARIABLE_FIELDS)
        elif name == "resourceFieldRef":
            check_resource_path(reference)
        elif name == "fileKeyRef":
            reference.needs_text("key", variable_name_faults)
            reference.needs_text("volumeName", dns_label_faults)
            reference.needs_text("path", back_step_faults)
        else:
            reference.check("name", subdomain_faults)
            reference.needs_text("key", data_key_faults)
    if not named:
        source.invalid("", _NO_SOURCE, "")
    elif variable.get("value"):
        source.invalid("", "may not be specified when `value` is not empty", "")
    elif len(named) > 1:
        source.invalid("", _ONE_SOURCE, "")


def check_field_path(reference: Part, fields: Sequence[str]) -> None:
    """Check the path of a field of a pod, which must be one of `fields`."""
    if not reference.needs("apiVersion") or not reference.needs("fieldPath"):
        return
    version, field = reference.get("apiVersion"), reference.get("fieldPath")
    parts = _SUBSCRIPT.fullmatch(field)
    problem = ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif parts is not None and parts[1] not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {field}"
    elif parts is None and field not in _LABELLED:
        problem = f"field label not supported: {field}"
    if problem:
        reference.invalid("fieldPath", f"error converting fieldPath: {problem}")
    elif parts is not None:
        key = parts[2].lower() if parts[1] == "metadata.annotations" else parts[2]
        reference.check("", key_faults, key)
    elif field != "spec.host" and field not in fields:
        reference.unsupported("fieldPath", sorted(fields))


def check_resource_path(reference: Part, is_file: bool = False) -> None:
    """Check a resource of a container, which a file of a volume must name."""
    resource = str(reference.get("resource") or "")
    if is_file and not reference.get("containerName"):
        reference.required("containerName")
    elif not resource:
        reference.required("resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        reference.unsupported("resource", _RESOURCES)
    divisor = reference.get("divisor")
    try:
        amount = str(ExactAmount.of(divisor)) if divisor is not None else "0"
    except ValueError:
        return  # refused elsewhere, because it is not a quantity
    is_huge = resource.startswith(_HUGE)
    values, name = (
        (_BYTES, "hugepages") if is_huge else _DIVISORS.get(resource.partition(".")[2], ("", ""))
    )
    if name and amount != "0" and amount not in values.replace(" and", ",").split(", "):
        problem = f"only divisor's values {values} are supported with the {name} resource"
        reference.invalid("divisor", problem, resource)


def check_variable_volumes(spec: Part) -> None:
    """Refuse variables from files of volumes that are not there, or that are no empty directory."""
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    for container in spec.each(*CONTAINERS):
        for variable in container.each("env"):
            reference = variable.below("valueFrom").below("fileKeyRef")
            name = reference.get("volumeName") or ""
            if not variable.below("valueFrom").has("fileKeyRef"):
                continue
            if name not in volumes:
                reference.not_found("volumeName", name)
            elif volumes[name].get("emptyDir") is None:
                reference.invalid("volumeName", "referenced volume must be of type emptyDir", name)
