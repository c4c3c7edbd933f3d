"""Object faults: find faults of a decoded object, with their paths.

Covers what would otherwise fail late or be misread silently; it does not replace the API server's
validation. Paths are those of the manifest.
"""

from collections.abc import Iterable, Iterator, Mapping

from ...errors import one_of
from ..affinity import (
    DO_NOT_SCHEDULE,
    HONOR,
    IGNORE,
    SCHEDULE_ANYWAY,
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from ..containers import Container, ResourceRequirements
from ..pod_spec import PodSpec
from ..pod_status import ContainerStatus, PodStatus
from ..selectors import (
    FIELD_OPERATORS,
    LABEL_OPERATORS,
    NODE_OPERATORS,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Problem,
    Requirement,
    quote,
)
from ..taints import TAINT_EFFECTS, TOLERATION_OPERATORS, Taint
from ..text.quantity import MAX_INT64, NANO, Quantity, parse_quantity

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def spec_problems(spec: PodSpec, path: str = "spec") -> Iterator[Problem]:
    """Yield the faults of a pod's spec."""
    yield from _container_problems(spec.containers, f"{path}.containers")
    yield from _container_problems(spec.init_containers, f"{path}.initContainers")
    yield from _resource_problems(spec.resources, f"{path}.resources")
    yield from quantity_problems(spec.overhead, f"{path}.overhead")
    yield from _affinity_problems(spec.affinity, f"{path}.affinity")
    for i, constraint in enumerate(spec.topology_spread_constraints or ()):
        yield from _spread_problems(constraint, f"{path}.topologySpreadConstraints[{i}]")
    for i, one in enumerate(spec.tolerations or ()):
        where = f"{path}.tolerations[{i}]"
        if one.operator not in TOLERATION_OPERATORS:
            yield f"{where}.operator", _expected(TOLERATION_OPERATORS, one.operator)
        if one.effect and one.effect not in TAINT_EFFECTS:
            yield f"{where}.effect", _expected(TAINT_EFFECTS, one.effect)


def container_status_problems(
    statuses: tuple[ContainerStatus, ...], path: str
) -> Iterator[Problem]:
    """Yield the faults of the containers' allocations."""
    for i, status in enumerate(statuses):
        yield from quantity_problems(status.allocated_resources, f"{path}[{i}].allocatedResources")
        yield from _resource_problems(status.resources, f"{path}[{i}].resources")


def pod_level_status_problems(status: PodStatus) -> Iterator[Problem]:
    """Yield the faults of the pod-level allocation."""
    yield from _resource_problems(status.resources, "status.resources")
    yield from quantity_problems(status.allocated_resources, "status.allocatedResources")


def taint_problems(taints: Iterable[Taint]) -> Iterator[Problem]:
    """Yield the faults of a node's taints."""
    for i, taint in enumerate(taints):
        if taint.effect not in TAINT_EFFECTS:
            yield f"spec.taints[{i}].effect", _expected(TAINT_EFFECTS, taint.effect)


def quantity_problems(quantities: Mapping[str, Quantity] | None, path: str) -> Iterator[Problem]:
    """Yield the quantities that do not parse, are negative, or do not fit into 64 bits."""
    for name, quantity in (quantities or {}).items():
        fault = quantity_problem(quantity)
        if fault is not None:
            yield f"{path}.{name}", fault


def quantity_problem(quantity: Quantity) -> str | None:
    """The problem of one quantity, or None."""
    try:
        nano = parse_quantity(quantity)
    except ValueError as error:
        return str(error)
    if nano < 0:
        return f'expected zero or more; got "{quantity}"'
    if nano > MAX_INT64 * NANO:
        return f'expected at most {MAX_INT64}; got "{quantity}"'
    return None


def label_selector_problems(selector: LabelSelector | None, path: str) -> Iterator[Problem]:
    """Yield the operators that a label selector must not have."""
    expressions = selector.match_expressions if selector else None
    yield from _operator_problems(expressions, LABEL_OPERATORS, f"{path}.matchExpressions")


def node_selector_problems(selector: NodeSelector | None, path: str) -> Iterator[Problem]:
    """Yield the operators that a node selector must not have."""
    for i, term in enumerate(selector.terms if selector else ()):
        yield from _node_term_problems(term, f"{path}.nodeSelectorTerms[{i}]")


def _container_problems(containers: tuple[Container, ...] | None, path: str) -> Iterator[Problem]:
    for i, container in enumerate(containers or ()):
        yield from _resource_problems(container.resources, f"{path}[{i}].resources")


def _resource_problems(resources: ResourceRequirements | None, path: str) -> Iterator[Problem]:
    if resources is not None:
        yield from quantity_problems(resources.requests, f"{path}.requests")
        yield from quantity_problems(resources.limits, f"{path}.limits")


def _affinity_problems(affinity: Affinity | None, path: str) -> Iterator[Problem]:
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        at = f"{path}.nodeAffinity"
        yield from node_selector_problems(affinity.node_affinity.required, f"{at}.{REQUIRED}")
        for i, preferred in enumerate(affinity.node_affinity.preferred):
            where = f"{at}.{PREFERRED}[{i}].preference"
            yield from _node_term_problems(preferred.preference, where)
    if affinity.pod_affinity is not None:
        yield from _pod_affinity_problems(affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        yield from _pod_affinity_problems(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def _pod_affinity_problems(wishes: PodAffinity, path: str) -> Iterator[Problem]:
    for i, term in enumerate(wishes.required):
        yield from _pod_term_problems(term, f"{path}.{REQUIRED}[{i}]")
    for i, weighted in enumerate(wishes.preferred):
        where = f"{path}.{PREFERRED}[{i}].podAffinityTerm"
        yield from _pod_term_problems(weighted.pod_affinity_term, where)


def _pod_term_problems(term: PodAffinityTerm, path: str) -> Iterator[Problem]:
    if not term.topology_key:
        yield f"{path}.topologyKey", "expected a label key; got none"
    yield from label_selector_problems(term.label_selector, f"{path}.labelSelector")
    yield from label_selector_problems(term.namespace_selector, f"{path}.namespaceSelector")


def _node_term_problems(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    yield from _operator_problems(
        term.match_expressions, NODE_OPERATORS, f"{path}.matchExpressions"
    )
    yield from _operator_problems(term.match_fields, FIELD_OPERATORS, f"{path}.matchFields")


def _operator_problems(
    requirements: tuple[Requirement, ...] | None, operators: tuple[str, ...], path: str
) -> Iterator[Problem]:
    for i, requirement in enumerate(requirements or ()):
        if requirement.operator not in operators:
            yield f"{path}[{i}].operator", _expected(operators, requirement.operator)


def _spread_problems(constraint: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    if constraint.max_skew <= 0:
        yield f"{path}.maxSkew", f"expected 1 or more; got {constraint.max_skew}"
    if not constraint.topology_key:
        yield f"{path}.topologyKey", "expected a label key; got none"
    actions = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
    if constraint.when_unsatisfiable not in actions:
        yield f"{path}.whenUnsatisfiable", _expected(actions, constraint.when_unsatisfiable)
    if constraint.min_domains is not None and constraint.min_domains <= 0:
        yield f"{path}.minDomains", f"expected 1 or more; got {constraint.min_domains}"
    for name, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy is not None and policy not in (HONOR, IGNORE):
            yield f"{path}.{name}", _expected((HONOR, IGNORE), policy)
    yield from label_selector_problems(constraint.label_selector, f"{path}.labelSelector")


def _expected(choices: tuple[str, ...], found: str) -> str:
    return f"expected {one_of(choices)}; got {quote(found)}"
