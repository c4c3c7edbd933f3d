"""Pod rules: faults of pods and of templates of pods, as kube-apiserver finds them.

Mirrors ValidatePodSpec and ValidatePodTemplateSpec of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults
from .address_rules import pod_address_causes
from .affinity_rules import affinity_causes, spread_causes, toleration_causes
from .container_rules import container_causes, host_network_causes
from .environment_rules import variable_volume_causes
from .field_causes import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from .group_rules import member_causes
from .label_rules import annotations_causes, labels_causes, name_causes_of, text_causes
from .resource_rules import pod_requirement_causes, requirement_causes
from .security_rules import (
    choice_causes,
    host_user_causes,
    pod_security_causes,
    system_causes,
)
from .volume_rules import volume_causes

Tree = Mapping[str, Any]

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTIONS = ("PreemptLowerPriority", "Never")
_LABEL_FORM = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_FORM = f"{_LABEL_FORM}(\\.{_LABEL_FORM})*"
_SEARCH = re.compile(_SEARCH_FORM)
_SEARCH_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SEARCH_FORM}')"
)
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
MIRROR = "kubernetes.io/config.mirror"


def pod_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults of a new pod."""
    spec, metadata = tree.get("spec") or {}, tree.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if MIRROR in annotations and not spec.get("nodeName"):
        problem = "must set spec.nodeName if mirror pod annotation is set"
        where = f"metadata.annotations[{MIRROR}]"
        yield invalid_value(where, annotations[MIRROR], problem)
    yield from _annotation_causes(annotations, "metadata.annotations")
    yield from pod_spec_causes(spec, "spec", str(metadata.get("name") or ""))
    for part in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(part) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                problem = "must not have leading or trailing whitespace"
                yield invalid_value(f"spec.{part}[{i}].image", image, problem)


def new_pod_causes(tree: Tree) -> Iterator[Cause]:
    """Yield the faults that only a new pod can have."""
    spec = tree.get("spec") or {}
    if spec.get("ephemeralContainers"):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        problem = "cannot be set until all schedulingGates have been cleared"
        yield forbidden_field("spec.nodeName", problem)


def template_causes(template: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of a template of pods."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    yield from labels_causes(metadata.get("labels"), f"{path}.labels")
    yield from annotations_causes(metadata.get("annotations"), f"{path}.annotations")
    yield from _annotation_causes(metadata.get("annotations") or {}, f"{path}.annotations")
    yield from pod_spec_causes(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        problem = "ephemeral containers not allowed in pod template"
        yield forbidden_field(f"{path}.spec.ephemeralContainers", problem)


def _annotation_causes(annotations: Tree, path: str) -> Iterator[Cause]:
    cost = annotations.get(DELETION_COST)
    if cost is not None:
        is_number = cost.lstrip("-").isdecimal() and cost.isascii() and cost.count("-") <= 1
        if not is_number or not -(2**31) <= int(cost) < 2**31:
            yield invalid_value(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer")


def pod_spec_causes(spec: Tree, path: str, name: str = "") -> Iterator[Cause]:
    """Yield the faults of the spec of a pod, whose name is given, or of a template."""
    is_pod = path == "spec"
    yield from volume_causes(spec, path, name, is_pod)
    yield from _claim_list_causes(spec, path)
    yield from container_causes(spec, path)
    yield from pod_requirement_causes(spec, path)
    yield from host_network_causes(spec, path, is_pod)
    policy = str(spec.get("restartPolicy") or "")
    if not policy:
        yield required(f"{path}.restartPolicy")
    elif policy not in RESTART_POLICIES:
        yield unsupported_value(f"{path}.restartPolicy", policy, RESTART_POLICIES)
    yield from choice_causes(spec, "dnsPolicy", _DNS_POLICIES, path)
    yield from labels_causes(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from pod_security_causes(spec, path)
    yield from affinity_causes(spec.get("affinity"), f"{path}.affinity")
    yield from _dns_causes(spec, f"{path}.dnsConfig")
    yield from pod_address_causes(spec, path)
    yield from _gate_causes(spec, path)
    spreads = spec.get("topologySpreadConstraints") or ()
    yield from spread_causes(spreads, f"{path}.topologySpreadConstraints")
    yield from host_user_causes(spec, path)
    yield from _text_causes(spec, path)
    yield from toleration_causes(spec.get("tolerations") or (), f"{path}.tolerations")
    yield from choice_causes(spec, "preemptionPolicy", _PREEMPTIONS, path)
    for field in () if is_pod else _CLASSES:  # of pods, admission judges them
        yield from name_causes_of(spec, field, subdomain_faults, path)
    overhead = {"limits": spec.get("overhead") or {}}
    yield from requirement_causes(overhead, (), f"{path}.overhead")
    yield from system_causes(spec, path)
    yield from member_causes(spec, path)
    yield from variable_volume_causes(spec, path)


_TEXTS: tuple[tuple[str, Callable[[str], tuple[str, ...]]], ...] = (
    ("serviceAccountName", subdomain_faults),
    ("nodeName", subdomain_faults),
    ("hostname", dns_label_faults),
    ("subdomain", dns_label_faults),
)
_CLASSES = ("priorityClassName", "runtimeClassName")


def _text_causes(spec: Tree, path: str) -> Iterator[Cause]:
    for field, faults in _TEXTS:
        yield from name_causes_of(spec, field, faults, path)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 0 < seconds < 2**31:
        problem = "must be between 1 and 2147483647, inclusive"
        yield invalid_value(f"{path}.activeDeadlineSeconds", seconds, problem)
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        for j, name in enumerate(alias.get("hostnames") or ()):
            where = f"{path}.hostAliases[{i}].hostnames[{j}]"
            yield from text_causes(name, subdomain_faults, where)


def _dns_causes(spec: Tree, path: str) -> Iterator[Cause]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not config.get("nameservers"):
            problem = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", problem)
    if config is None:
        return
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if len(servers) > 3:
        problem = "must not have more than 3 nameservers"
        yield invalid_value(f"{path}.nameservers", servers, problem)
    if len(searches) > 32:
        problem = "must not have more than 32 search paths"
        yield invalid_value(f"{path}.searches", searches, problem)
    if len(" ".join(searches)) > 2048:
        problem = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid_value(f"{path}.searches", searches, problem)
    for i, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from text_causes(name, underscore_faults, f"{path}.searches[{i}]")
    for i, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{i}]", "must not be empty")


def underscore_faults(text: str) -> tuple[str, ...]:
    """The faults of a search path of DNS, which may have underscores."""
    faults = ("must be no more than 253 bytes",) if len(text.encode()) > 253 else ()
    return faults if _SEARCH.fullmatch(text) else (*faults, _SEARCH_RULE)


def _gate_causes(spec: Tree, path: str) -> Iterator[Cause]:
    for i, gate in enumerate(spec.get("readinessGates") or ()):
        where = f"{path}.readinessGates[{i}].conditionType"
        yield from text_causes(gate.get("conditionType") or "", key_faults, where)
    names: set[str] = set()
    for i, gate in enumerate(spec.get("schedulingGates") or ()):
        name, where = gate.get("name") or "", f"{path}.schedulingGates[{i}]"
        yield from text_causes(name, key_faults, where)
        if name in names:
            yield duplicate(where, name)
        names.add(name)


def _claim_list_causes(spec: Tree, path: str) -> Iterator[Cause]:
    """Yield the faults of the resource claims that a pod names."""
    names: set[str] = set()
    for i, claim in enumerate(spec.get("resourceClaims") or ()):
        where, name = f"{path}.resourceClaims[{i}]", claim.get("name") or ""
        if not name:
            yield required(f"{where}.name")
        elif name in names:
            yield duplicate(f"{where}.name", name)
        else:
            yield from text_causes(name, dns_label_faults, f"{where}.name")
        names.add(name)
        own, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": own, "ResourceClaimTemplateName": template}
        both = "`resourceClaimName` or `resourceClaimTemplateName`"
        if own is not None and template is not None:
            yield invalid_value(where, shown, f"at most one of {both} may be specified")
        if own is None and template is None:
            problem = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid_value(where, shown, problem)
        for field, value in (("resourceClaimName", own), ("resourceClaimTemplateName", template)):
            if value is not None:
                yield from text_causes(value, subdomain_faults, f"{where}.{field}")
