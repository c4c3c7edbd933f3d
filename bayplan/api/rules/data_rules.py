"""Data rules: faults of ConfigMaps, Secrets, quotas, limits and of other small kinds.

Mirrors their parts of pkg/apis/core/validation/validation.go, and pkg/apis/{node,scheduling,coordination}/validation.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from ..resources import is_hugepages, is_native
from ..text.name_faults import dns_label_faults, key_faults
from .address_rules import block_causes
from .affinity_rules import taint_causes, toleration_causes
from .environment_rules import data_key_faults
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from .label_rules import labels_causes, text_causes
from .resource_rules import (
    OF_QUOTAS,
    amount_causes,
    amount_of,
    container_resource_causes,
    quota_resource_causes,
    requirement_causes,
    resource_name_causes,
)
from .security_rules import choice_causes

Tree = Mapping[str, Any]

MAX_PRIORITY = 1_000_000_000
MAX_DATA = 1024 * 1024
"""The most bytes of a ConfigMap or Secret."""
_SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_NEEDED = {
    "kubernetes.io/basic-auth": ("username", "password"),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
"""Keys that a Secret of a type must have; one of them is enough for a user."""
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_ACCOUNT = "kubernetes.io/service-account.name"
_SCOPES = {
    "Terminating": "pods compute",
    "NotTerminating": "pods compute",
    "NotBestEffort": "pods compute",
    "PriorityClass": "pods compute",
    "CrossNamespacePodAffinity": "pods compute",
    "BestEffort": "pods",
    "VolumeAttributesClass": "claims",
}
"""The kinds of resources that a scope of a quota can be applied to."""
_COMPUTE = ("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")


def config_map_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a ConfigMap."""
    texts, binary = tree.get("data") or {}, tree.get("binaryData") or {}
    for key in texts:
        yield from text_causes(key, data_key_faults, f"data[{key}]")
        if key in binary:
            yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from text_causes(key, data_key_faults, f"binaryData[{key}]")
    size = sum(len(value.encode()) for value in texts.values() if value)
    size += sum(len(_bytes_of(value)) for value in binary.values())
    if size > MAX_DATA:
        yield too_long("[]", MAX_DATA)


def _bytes_of(value: Any) -> bytes:
    try:
        return base64.b64decode(value or "")
    except (binascii.Error, ValueError):
        return b""  # refused as no base64


def secret_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Secret."""
    data, kind = tree.get("data") or {}, tree.get("type") or ""
    data = {**data, **(tree.get("stringData") or {})}
    for key in data:
        yield from text_causes(key, data_key_faults, f"data[{key}]")
    given = (tree.get("data") or {}).values()
    if sum(len(_bytes_of(value)) for value in given) > MAX_DATA:
        yield too_long("data", MAX_DATA)
    annotations = tree["metadata"].get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if kind in _DOCKER:
        yield from _docker_causes(tree, data, _DOCKER[kind])
    needed = _NEEDED.get(kind, ())
    if kind == "kubernetes.io/basic-auth" and any(key in data for key in needed):
        return
    for key in needed:
        if key not in data or (kind.endswith("ssh-auth") and not data[key]):
            yield required(f"data[{key}]")


def _docker_causes(tree: Tree, data: Tree, key: str) -> Iterator[Cause]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    text = (tree.get("stringData") or {}).get(key)
    content = text.encode() if text is not None else _bytes_of(data[key])
    try:
        is_object = isinstance(json.loads(content), dict)
        problem = (
            ""
            if is_object
            else "json: cannot unmarshal into Go value of type map[string]interface {}"
        )
    except ValueError:
        problem = _json_fault(content)
    if problem:
        yield invalid_value(f"data[{key}]", "<secret contents redacted>", problem)


def _json_fault(content: bytes) -> str:
    """Go's message about a text that is no JSON, for the usual cases."""
    text = content.decode(errors="replace").lstrip()
    if not text:
        return "unexpected end of JSON input"
    return f"invalid character '{text[0]}' looking for beginning of value"


def priority_class_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a PriorityClass."""
    name, value = str(tree["metadata"].get("name") or ""), tree.get("value") or 0
    if name.startswith("system-"):
        wanted = _SYSTEM_CLASSES.get(name)
        fault = f"{name} is not a known system priority class" if wanted is None else ""
        if wanted is not None and value != wanted:
            fault = f"value of {name} PriorityClass must be {wanted}"
        elif wanted is not None and tree.get("globalDefault"):
            fault = f"globalDefault of {name} PriorityClass must be false"
        if fault:
            rule = (
                "priority class names with 'system-' prefix are reserved for system use only. error"
            )
            yield forbidden_field("metadata.name", f"{rule}: {fault}")
    elif value > MAX_PRIORITY:
        problem = f"maximum allowed value of a user defined priority is {MAX_PRIORITY}"
        yield forbidden_field("value", problem)
    words = ("PreemptLowerPriority", "Never")
    for cause in choice_causes(tree, "preemptionPolicy", words, ""):
        yield cause._replace(field="preemptionPolicy")


def lease_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Lease."""
    spec = tree.get("spec") or {}
    seconds, changes = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if changes is not None and changes < 0:
        problem = "must be greater than or equal to 0"
        yield invalid_value("spec.leaseTransitions", changes, problem)
    if spec.get("preferredHolder") and not spec.get("strategy"):
        problem = "may only be specified if `strategy` is defined"
        yield forbidden_field("spec.preferredHolder", problem)


def node_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a Node."""
    spec, status = tree.get("spec") or {}, tree.get("status") or {}
    yield from taint_causes(spec.get("taints") or (), "metadata.taints")
    for field in ("capacity", "allocatable"):
        for name, quantity in (status.get(field) or {}).items():
            yield from amount_causes(name, quantity, f"status.{field}.{name}")
    blocks = spec.get("podCIDRs") or ()
    found = [
        cause for i, one in enumerate(blocks) for cause in block_causes(one, f"spec.podCIDRs[{i}]")
    ]
    yield from found
    if len(blocks) > 1 and not found:
        versions = {ip_network(block).version for block in blocks}
        if len(versions) < 2 or len(blocks) > 2:
            problem = "may specify no more than one CIDR for each IP family"
            yield invalid_value("spec.podCIDRs", blocks, problem)


def runtime_class_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a RuntimeClass."""
    if not tree.get("handler"):
        yield required("handler")
    else:
        yield from text_causes(tree["handler"], dns_label_faults, "handler")
    amounts = {"limits": (tree.get("overhead") or {}).get("podFixed") or {}}
    yield from requirement_causes(amounts, (), "overhead.podFixed")
    scheduling = tree.get("scheduling") or {}
    yield from labels_causes(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    yield from toleration_causes(scheduling.get("tolerations") or (), "scheduling.tolerations")


def quota_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a ResourceQuota."""
    spec = tree.get("spec") or {}
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or ()
    for name, quantity in hard.items():
        where = f"spec.hard[{name}]"
        yield from quota_resource_causes(name, where)
        yield from amount_causes(name, quantity, where)
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid_value("spec.scopes", scopes, "unsupported scope")
        for name in sorted(hard):
            if name in OF_QUOTAS and not _is_scoped(scope, name):
                problem = "unsupported scope applied to resource"
                yield invalid_value("spec.scopes", scopes, problem)
    for pair in ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}):
        if pair <= set(scopes):
            yield invalid_value("spec.scopes", scopes, "conflicting scopes")
    yield from _scope_selector_causes(spec, "spec.scopeSelector.matchExpressions")


def _is_scoped(scope: str, name: str) -> bool:
    """Whether a scope of a quota can be applied to a resource."""
    kinds = _SCOPES.get(scope)
    if kinds is None:
        return True
    if kinds == "claims":
        return name in ("persistentvolumeclaims", "requests.storage")
    return name == "pods" or ("compute" in kinds and name in _COMPUTE)


def _scope_selector_causes(spec: Tree, path: str) -> Iterator[Cause]:
    for requirement in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        scope, operator = requirement.get("scopeName") or "", requirement.get("operator") or ""
        values = requirement.get("values") or []
        if scope not in _SCOPES:
            yield invalid_value(f"{path}.scopeName", scope, "unsupported scope")
        if operator in ("In", "NotIn"):
            if not values:
                problem = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{path}.values", problem)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                problem = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield invalid_value(f"{path}.values", values, problem)
        else:
            yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")


def limit_range_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a LimitRange."""
    types: set[str] = set()
    for i, limit in enumerate((tree.get("spec") or {}).get("limits") or ()):
        kind, path = str(limit.get("type") or ""), f"spec.limits[{i}]"
        faults = key_faults(kind)
        for fault in faults:
            yield invalid_value(f"{path}.type", kind, fault)
        if not faults and "/" not in kind and kind not in _LIMIT_TYPES:
            problem = "must be a standard limit type or fully qualified"
            yield invalid_value(f"{path}.type", kind, problem)
        if kind in types:
            yield duplicate(f"{path}.type", kind)
        types.add(kind)
        yield from _limit_name_causes(limit, kind, path)
        for field in ("default", "defaultRequest") if kind == "Pod" else ():
            if limit.get(field):
                problem = "may not be specified when `type` is 'Pod'"
                yield forbidden_field(f"{path}.{field}", problem)
        bounds = {**(limit.get("min") or {}), **(limit.get("max") or {})}
        if kind == "PersistentVolumeClaim" and "storage" not in bounds:
            problem = (
                "either minimum or maximum storage value is required, but neither was provided"
            )
            yield required(f"{path}.limits", problem)
        yield from _bound_causes(limit, kind, path)


def _limit_name_causes(limit: Tree, kind: str, path: str) -> Iterator[Cause]:
    rule = container_resource_causes if kind in ("Pod", "Container") else resource_name_causes
    for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        for name in (
            limit.get(field) or () if kind != "Pod" or not field.startswith("default") else ()
        ):
            yield from rule(name, f"{path}.{field}[{name}]")


def _bound_causes(limit: Tree, kind: str, path: str) -> Iterator[Cause]:
    """Yield the bounds and defaults that contradict each other."""
    words = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
    fields = {
        name: {} if kind == "Pod" and name.startswith("default") else limit.get(name) or {}
        for name in words
    }
    pairs = (
        ("min", "max", "min", 0),
        ("min", "defaultRequest", "defaultRequest", 1),
        ("defaultRequest", "max", "defaultRequest", 0),
        ("defaultRequest", "default", "defaultRequest", 0),
        ("min", "default", "default", 0),
        ("default", "max", "default", 1),
    )
    names = {name: None for amounts in fields.values() for name in amounts}
    for name in names:
        for low, high, at, shown in pairs:
            one, other = amount_of(fields[low].get(name)), amount_of(fields[high].get(name))
            if one is not None and other is not None and one.nano > other.nano:
                limit_word = (
                    "default limit" if (low, high) == ("defaultRequest", "default") else words[high]
                )
                problem = f"{words[low]} value {one} is greater than {limit_word} value {other}"
                yield invalid_value(f"{path}.{at}[{name}]", str((one, other)[shown]), problem)
        one, other = (
            amount_of(fields["default"].get(name)),
            amount_of(fields["defaultRequest"].get(name)),
        )
        is_shared = is_native(name) and not is_hugepages(name)
        if not is_shared and one is not None and other is not None and one.nano != other.nano:
            problem = f"default value {one} must equal to defaultRequest value {other} in {name}"
            yield invalid_value(f"{path}.defaultRequest[{name}]", str(other), problem)
    for name, quantity in (limit.get("maxLimitRequestRatio") or {}).items():
        ratio = amount_of(quantity)
        if ratio is not None and ratio.nano < 10**9:
            problem = f"ratio {ratio} is less than 1"
            yield invalid_value(f"{path}.maxLimitRequestRatio[{name}]", str(ratio), problem)
