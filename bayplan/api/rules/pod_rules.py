"""Pod rules: faults of pods and of templates of pods, as kube-apiserver finds them.

Mirrors ValidatePodSpec and ValidatePodTemplateSpec of pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re

from ..text.name_faults import dns_label_faults, key_faults, subdomain_faults
from .address_rules import address_faults
from .affinity_rules import check_affinity, check_spreads, check_tolerations
from .container_rules import check_containers, check_host_network
from .environment_rules import check_variable_volumes
from .field_causes import Part
from .group_rules import check_member
from .label_rules import check_annotations, check_labels
from .resource_rules import check_pod_requirements, check_requirements
from .security_rules import check_host_users, check_pod_security, check_system
from .volume_rules import check_volumes

RESTART_POLICIES = ("Always", "OnFailure", "Never")
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


def check_pod(pod: Part) -> None:
    """Check a pod."""
    spec, metadata = pod.below("spec"), pod.below("metadata")
    annotations = metadata.get("annotations") or {}
    if MIRROR in annotations and not spec.get("nodeName"):
        problem = "must set spec.nodeName if mirror pod annotation is set"
        metadata.invalid(f"annotations[{MIRROR}]", problem, annotations[MIRROR])
    _check_deletion_cost(metadata)
    check_pod_spec(spec, str(metadata.get("name") or ""))
    for container in spec.each("containers", "initContainers"):
        image = container.get("image") or ""
        if image != image.strip():
            container.invalid("image", "must not have leading or trailing whitespace")


def check_new_pod(pod: Part) -> None:
    """Refuse what only a new pod must not have."""
    spec = pod.below("spec")
    if spec.get("ephemeralContainers"):
        spec.forbidden("ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        spec.forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")


def check_template(template: Part) -> None:
    """Check a template of pods."""
    # kube-apiserver leaves `metadata` out of the paths of its fields.
    metadata, spec = Part(template.get("metadata"), template.path, template.causes), "spec"
    check_labels(metadata, "labels")
    check_annotations(metadata, "annotations")
    _check_deletion_cost(metadata)
    check_pod_spec(template.below(spec))
    if template.below(spec).get("ephemeralContainers"):
        problem = "ephemeral containers not allowed in pod template"
        template.forbidden("spec.ephemeralContainers", problem)


def _check_deletion_cost(metadata: Part) -> None:
    cost = (metadata.get("annotations") or {}).get(DELETION_COST)
    if cost is not None:
        is_number = cost.lstrip("-").isdecimal() and cost.isascii() and cost.count("-") <= 1
        if not is_number or not -(2**31) <= int(cost) < 2**31:
            metadata.invalid(f"annotations[{DELETION_COST}]", "must be a 32bit integer", cost)


def check_pod_spec(spec: Part, name: str = "") -> None:
    """Check the spec of a pod, whose name is given, or of a template."""
    is_pod = spec.path == "spec"
    check_volumes(spec, name, is_pod)
    _check_claims(spec)
    check_containers(spec)
    check_pod_requirements(spec)
    check_host_network(spec, is_pod)
    if spec.needs("restartPolicy"):
        spec.choice("restartPolicy", *RESTART_POLICIES)
    spec.choice("dnsPolicy", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    check_labels(spec, "nodeSelector")
    check_pod_security(spec)
    check_affinity(spec.below("affinity"))
    _check_dns(spec)
    for field, server in spec.below("dnsConfig").items("nameservers"):
        spec.check(f"dnsConfig.{field}", address_faults, server)
    for alias in spec.each("hostAliases"):
        alias.check("ip", address_faults)
    _check_gates(spec)
    check_spreads(spec)
    check_host_users(spec)
    _check_texts(spec)
    check_tolerations(spec)
    spec.choice("preemptionPolicy", "PreemptLowerPriority", "Never")
    for field in () if is_pod else ("priorityClassName", "runtimeClassName"):
        spec.text(field, subdomain_faults)  # of pods, admission judges them
    check_requirements(spec.below("overhead", {"limits": spec.get("overhead") or {}}))
    check_system(spec)
    check_member(spec)
    check_variable_volumes(spec)


def _check_texts(spec: Part) -> None:
    spec.text("serviceAccountName", subdomain_faults)
    spec.text("nodeName", subdomain_faults)
    spec.text("hostname", dns_label_faults)
    spec.text("subdomain", dns_label_faults)
    problem = "must be between 1 and 2147483647, inclusive"
    spec.limit("activeDeadlineSeconds", 1, 2**31 - 1, problem)
    for alias in spec.each("hostAliases"):
        for field, name in alias.items("hostnames"):
            alias.check(field, subdomain_faults, name)


def _check_dns(spec: Part) -> None:
    config = spec.below("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if not spec.has("dnsConfig"):
            config.required("", "must provide `dnsConfig` when `dnsPolicy` is None")
        else:
            problem = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            config.needs("nameservers", problem=problem)
    searches = config.get("searches") or ()
    if len(config.get("nameservers") or ()) > 3:
        config.invalid("nameservers", "must not have more than 3 nameservers")
    if len(searches) > 32:
        config.invalid("searches", "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        problem = "must not have more than 2048 characters (including spaces) in the search list"
        config.invalid("searches", problem)
    for field, search in config.items("searches"):
        if search != ".":
            config.check(field, underscore_faults, search.removesuffix("."))
    for option in config.each("options"):
        if not option.get("name"):
            option.required("", "must not be empty")


def underscore_faults(text: str) -> tuple[str, ...]:
    """The faults of a search path of DNS, which may have underscores."""
    faults = ("must be no more than 253 bytes",) if len(text.encode()) > 253 else ()
    return faults if _SEARCH.fullmatch(text) else (*faults, _SEARCH_RULE)


def _check_gates(spec: Part) -> None:
    for gate in spec.each("readinessGates"):
        gate.check("conditionType", key_faults)
    names: set[str] = set()
    for gate in spec.each("schedulingGates"):
        name = gate.get("name") or ""
        gate.check("", key_faults, name)
        gate.unique("", names, name)


def _check_claims(spec: Part) -> None:
    """Check the resource claims that a pod names."""
    names: set[str] = set()
    for claim in spec.each("resourceClaims"):
        name, sources = claim.get("name") or "", ("resourceClaimName", "resourceClaimTemplateName")
        if claim.needs("name"):
            if name in names:
                claim.duplicate("name", name)
            else:
                claim.check("name", dns_label_faults)
        names.add(name)
        shown = {"Name": name, **{f"R{field[1:]}": claim.get(field) for field in sources}}
        named = claim.set_of(sources)
        if len(named) == 2:
            both = "`resourceClaimName` or `resourceClaimTemplateName`"
            claim.invalid("", f"at most one of {both} may be specified", shown)
        if not named:
            problem = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            claim.invalid("", problem, shown)
        for field in named:
            claim.check(field, subdomain_faults)
