"""Data rules: faults of ConfigMaps, Secrets, quotas, limits, roles and of other small kinds.

Mirrors their parts of pkg/apis/core/validation/validation.go, of pkg/apis/{node,scheduling,coordination}/validation, of
pkg/apis/rbac/validation, of pkg/apis/admissionregistration/validation/validation.go and of
k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go. Webhooks and API services are stored and not
called.
"""

from __future__ import annotations

import base64
import binascii
import json
from ipaddress import ip_network
from typing import Any

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults
from ..workloads import BUILT_IN_CLASSES, MAX_PRIORITY
from .address_rules import block_faults
from .affinity_rules import check_taints, check_tolerations
from .environment_rules import data_key_faults
from .field_causes import Part, Tree
from .label_rules import check_labels, check_selector
from .resource_rules import (
    OF_QUOTAS,
    amount_of,
    check_amount,
    check_requirements,
    container_resource_faults,
    is_shared,
    quota_resource_faults,
    resource_name_faults,
)

MAX_DATA = 1024 * 1024
"""The most bytes of a ConfigMap or Secret."""
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


_BOUNDS = (
    ("min", "max", "min", 0),
    ("min", "defaultRequest", "defaultRequest", 1),
    ("defaultRequest", "max", "defaultRequest", 0),
    ("defaultRequest", "default", "defaultRequest", 0),
    ("min", "default", "default", 0),
    ("default", "max", "default", 1),
)
"""Two fields of a limit of which the first must not exceed the second, the field with the fault, and the shown field.
"""
GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def check_config_map(config_map: Part) -> None:
    """Check a ConfigMap."""
    texts, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for key in texts:
        config_map.check(f"data[{key}]", data_key_faults, key)
        if key in binary:
            config_map.invalid(f"data[{key}]", "duplicate of key present in binaryData", key)
    for key in binary:
        config_map.check(f"binaryData[{key}]", data_key_faults, key)
    size = sum(len(value.encode()) for value in texts.values() if value)
    size += sum(len(_bytes_of(value)) for value in binary.values())
    if size > MAX_DATA:
        config_map.too_long("[]", MAX_DATA)


def _bytes_of(value: Any) -> bytes:
    try:
        return base64.b64decode(value or "")
    except (binascii.Error, ValueError):
        return b""  # refused as no base64


def check_secret(secret: Part) -> None:
    """Check a Secret."""
    given, kind = secret.get("data") or {}, secret.get("type") or ""
    data = {**given, **(secret.get("stringData") or {})}
    for key in data:
        secret.check(f"data[{key}]", data_key_faults, key)
    if sum(len(_bytes_of(value)) for value in given.values()) > MAX_DATA:
        secret.too_long("data", MAX_DATA)
    annotations = secret.tree["metadata"].get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        secret.required(f"metadata.annotations[{_ACCOUNT}]")
    if kind in _DOCKER:
        _check_docker(secret, _DOCKER[kind])
    needed = _NEEDED.get(kind, ())
    if kind == "kubernetes.io/basic-auth" and any(key in data for key in needed):
        return
    for key in needed:
        if key not in data or (kind.endswith("ssh-auth") and not data[key]):
            secret.required(f"data[{key}]")


def _check_docker(secret: Part, key: str) -> None:
    text, data = secret.below("stringData").get(key), secret.get("data") or {}
    if text is None and key not in data:
        secret.required(f"data[{key}]")
        return
    content = text.encode() if text is not None else _bytes_of(data[key])
    problem = "json: cannot unmarshal into Go value of type map[string]interface {}"
    try:
        if isinstance(json.loads(content), dict):
            return
    except ValueError:
        problem = _json_fault(content)
    secret.invalid(f"data[{key}]", problem, "<secret contents redacted>")


def _json_fault(content: bytes) -> str:
    """Go's message about a text that is no JSON, for the usual cases."""
    text = content.decode(errors="replace").lstrip()
    if not text:
        return "unexpected end of JSON input"
    return f"invalid character '{text[0]}' looking for beginning of value"


def check_priority_class(class_: Part) -> None:
    """Check a PriorityClass."""
    name, value = str(class_.tree["metadata"].get("name") or ""), class_.get("value") or 0
    if name.startswith("system-"):
        wanted = BUILT_IN_CLASSES.get(name)
        fault = f"{name} is not a known system priority class" if wanted is None else ""
        if wanted is not None and value != wanted:
            fault = f"value of {name} PriorityClass must be {wanted}"
        elif wanted is not None and class_.get("globalDefault"):
            fault = f"globalDefault of {name} PriorityClass must be false"
        if fault:
            rule = "priority class names with 'system-' prefix are reserved for system use only"
            class_.forbidden("metadata.name", f"{rule}. error: {fault}")
    elif value > MAX_PRIORITY:
        problem = f"maximum allowed value of a user defined priority is {MAX_PRIORITY}"
        class_.forbidden("value", problem)
    class_.choice("preemptionPolicy", "PreemptLowerPriority", "Never")


def check_lease(lease: Part) -> None:
    """Check a Lease."""
    spec = lease.below("spec")
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        spec.invalid("leaseDurationSeconds", "must be greater than 0")
    spec.not_negative("leaseTransitions")
    if spec.get("preferredHolder") and not spec.get("strategy"):
        spec.forbidden("preferredHolder", "may only be specified if `strategy` is defined")


def check_node(node: Part) -> None:
    """Check a Node."""
    spec, status = node.below("spec"), node.below("status")
    check_taints(Part(spec.tree, "metadata", node.causes))  # the path that kube-apiserver gives
    for field in ("capacity", "allocatable"):
        for name, quantity in (status.get(field) or {}).items():
            check_amount(status, f"{field}.{name}", name, quantity)
    blocks = spec.get("podCIDRs") or ()
    for name, block in spec.items("podCIDRs"):
        spec.check(name, block_faults, block)
    if len(blocks) > 1 and not any(map(block_faults, blocks)):
        versions = {ip_network(block).version for block in blocks}
        if len(versions) < 2 or len(blocks) > 2:
            spec.invalid("podCIDRs", "may specify no more than one CIDR for each IP family")


def check_runtime_class(class_: Part) -> None:
    """Check a RuntimeClass."""
    class_.needs_text("handler", dns_label_faults)
    overhead = class_.below("overhead")
    check_requirements(overhead.below("podFixed", {"limits": overhead.get("podFixed")}))
    scheduling = class_.below("scheduling")
    check_labels(scheduling, "nodeSelector")
    check_tolerations(scheduling)


def check_quota(quota: Part) -> None:
    """Check a ResourceQuota."""
    spec = quota.below("spec")
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or ()
    for name, quantity in hard.items():
        spec.check(f"hard[{name}]", quota_resource_faults, name)
        check_amount(spec, f"hard[{name}]", name, quantity)
    for scope in scopes:
        if scope not in _SCOPES:
            spec.invalid("scopes", "unsupported scope")
        for name in sorted(hard):
            if name in OF_QUOTAS and not _is_scoped(scope, name):
                spec.invalid("scopes", "unsupported scope applied to resource")
    for pair in ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}):
        if pair <= set(scopes):
            spec.invalid("scopes", "conflicting scopes")
    selector = spec.below("scopeSelector")
    for tree in selector.get("matchExpressions") or ():
        _check_scope(selector.below("matchExpressions", tree))


def _is_scoped(scope: str, name: str) -> bool:
    """Whether a scope of a quota can be applied to a resource."""
    kinds = _SCOPES.get(scope)
    if kinds is None:
        return True
    if kinds == "claims":
        return name in ("persistentvolumeclaims", "requests.storage")
    return name == "pods" or ("compute" in kinds and name in _COMPUTE)


def _check_scope(requirement: Part) -> None:
    scope, operator = requirement.get("scopeName") or "", requirement.get("operator") or ""
    if scope not in _SCOPES:
        requirement.invalid("scopeName", "unsupported scope", scope)
    if operator in ("In", "NotIn"):
        problem = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        requirement.needs("values", problem=problem)
    elif operator not in ("Exists", "DoesNotExist"):
        requirement.invalid("operator", "not a valid selector operator", operator)
    elif requirement.get("values"):
        problem = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        requirement.invalid("values", problem)


def check_limit_range(limit_range: Part) -> None:
    """Check a LimitRange."""
    types: set[str] = set()
    for limit in limit_range.below("spec").each("limits"):
        kind = str(limit.get("type") or "")
        limit.check("type", key_faults)
        if not key_faults(kind) and "/" not in kind and kind not in _LIMIT_TYPES:
            limit.invalid("type", "must be a standard limit type or fully qualified")
        limit.unique("type", types)
        is_pod, defaults = kind == "Pod", ("default", "defaultRequest")
        rule = container_resource_faults if kind in ("Pod", "Container") else resource_name_faults
        for field in ("max", "min", *(() if is_pod else defaults), "maxLimitRequestRatio"):
            for name in limit.get(field) or ():
                limit.check(f"{field}[{name}]", rule, name)
        for field in defaults if is_pod else ():
            if limit.get(field):
                limit.forbidden(field, "may not be specified when `type` is 'Pod'")
        bounds = {**(limit.get("min") or {}), **(limit.get("max") or {})}
        if kind == "PersistentVolumeClaim" and "storage" not in bounds:
            problem = (
                "either minimum or maximum storage value is required, but neither was provided"
            )
            limit.required("limits", problem)
        _check_bounds(limit, is_pod)


def _check_bounds(limit: Part, is_pod: bool) -> None:
    """Refuse bounds and defaults that contradict each other."""
    words = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
    fields = {
        name: {} if is_pod and name.startswith("default") else limit.get(name) or {}
        for name in words
    }
    for name in {name: None for amounts in fields.values() for name in amounts}:
        found = {field: amount_of(amounts.get(name)) for field, amounts in fields.items()}
        for low, high, at, shown in _BOUNDS:
            one, other = found[low], found[high]
            if one is not None and other is not None and one.nano > other.nano:
                is_default = (low, high) == ("defaultRequest", "default")
                most = "default limit" if is_default else words[high]
                problem = f"{words[low]} value {one} is greater than {most} value {other}"
                limit.invalid(f"{at}[{name}]", problem, str((one, other)[shown]))
        one, other = found["default"], found["defaultRequest"]
        if one is not None and other is not None and not is_shared(name) and one.nano != other.nano:
            problem = f"default value {one} must equal to defaultRequest value {other} in {name}"
            limit.invalid(f"defaultRequest[{name}]", problem, str(other))
    for name, quantity in (limit.get("maxLimitRequestRatio") or {}).items():
        ratio = amount_of(quantity)
        if ratio is not None and ratio.nano < 10**9:
            problem = f"ratio {ratio} is less than 1"
            limit.invalid(f"maxLimitRequestRatio[{name}]", problem, str(ratio))


def check_webhooks(configuration: Part) -> None:
    """Check a ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""
    names: set[str] = set()
    for hook in configuration.each("webhooks"):
        hook.unique("name", names)
        hook.needs_text("name", _hook_name_faults)
        hook.choice("failurePolicy", "Fail", "Ignore")
        hook.choice("matchPolicy", "Equivalent", "Exact")
        hook.choice("reinvocationPolicy", "IfNeeded", "Never")
        hook.choice("sideEffects", "None", "NoneOnDryRun")
        if not hook.has("sideEffects"):
            hook.required("sideEffects", "must specify one of None, NoneOnDryRun")
        hook.needs("admissionReviewVersions", problem="must specify one of v1, v1beta1")
        problem = "the timeout value must be between 1 and 30 seconds"
        hook.limit("timeoutSeconds", 1, 30, problem)
        check_selector(hook.below("namespaceSelector"))
        check_selector(hook.below("objectSelector"))
        if len(hook.below("clientConfig").set_of(("url", "service"))) != 1:
            hook.required("clientConfig", "exactly one of url or service is required")


def _hook_name_faults(name: str) -> tuple[str, ...]:
    faults = subdomain_faults(name)
    if faults or name.count(".") >= 2:
        return faults
    return ("should be a domain with at least three segments separated by dots",)


def check_api_service(service: Part) -> None:
    """Check an APIService."""
    spec, name = service.below("spec"), service.tree["metadata"].get("name") or ""
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    if name != wanted:
        problem = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        service.invalid("metadata.name", problem, name)
    for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)):
        number = spec.get(field) or 0
        if not 0 < number <= most:
            spec.invalid(field, f"must be positive and less than {most}", number)
    if spec.has("service"):
        spec.below("service").needs("namespace", "name")


def set_groups(tree: dict[str, Any]) -> None:
    """Set the API groups that a binding leaves out."""
    ref = tree.get("roleRef")
    if isinstance(ref, dict) and not ref.get("apiGroup"):
        ref["apiGroup"] = GROUP
    for subject in tree.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def check_role(role: Part, is_namespaced: bool) -> None:
    """Check a role's rules."""
    for rule in role.each("rules"):
        rule.needs("verbs", problem="verbs must contain at least one value")
        if not rule.get("nonResourceURLs"):
            rule.needs("apiGroups", problem="resource rules must supply at least one api group")
            rule.needs("resources", problem="resource rules must supply at least one resource")
            continue
        if is_namespaced:
            problem = "namespaced rules cannot apply to non-resource URLs"
            rule.invalid("nonResourceURLs", problem)
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            problem = "rules cannot apply to both regular resources and non-resource URLs"
            rule.invalid("nonResourceURLs", problem)
    if role.has("aggregationRule"):
        problem = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        role.below("aggregationRule").needs("clusterRoleSelectors", problem=problem)


def check_binding(binding: Part, is_namespaced: bool) -> None:
    """Check a binding's role and subjects."""
    ref = binding.below("roleRef")
    ref.needs_choice("apiGroup", GROUP)
    ref.needs_choice("kind", *(("Role",) if is_namespaced else ()), "ClusterRole")
    ref.needs("name")
    for subject in binding.each("subjects"):
        _check_subject(subject, is_namespaced)


def _check_subject(subject: Part, is_namespaced: bool) -> None:
    kind, is_account = subject.get("kind") or "", subject.get("kind") == "ServiceAccount"
    if subject.needs("name") and is_account:
        subject.check("name", subdomain_faults)
    if kind not in _SUBJECTS:
        subject.unsupported("kind", _SUBJECTS, kind)
        return
    subject.needs_choice("apiGroup", "" if is_account else GROUP)
    if is_account and not is_namespaced:
        subject.needs("namespace")


def check_role_ref(binding: Part, old: Tree) -> None:
    """Refuse a change of the role of a binding."""
    ref = binding.get("roleRef") or {}
    if ref != (old.get("roleRef") or {}):
        shown = {"APIGroup": ref.get("apiGroup"), "Kind": ref.get("kind"), "Name": ref.get("name")}
        binding.invalid("roleRef", "cannot change roleRef", shown)
