"""Preferences: a pod in the forms for which Karpenter plans: its preferences as requirements, relaxed step by step.

Facts from Karpenter v1.14 (pkg/controllers/provisioning/scheduling: preferences.go, topologygroup.go): preferred
affinities and spread constraints with ScheduleAnyway are required at first (preference policy Respect), of preferred
node affinities the heaviest one. A pod that fits nowhere loses one of them after the other: alternatives of its
required node affinity but the last; preferred affinities to pods, away from pods, and to nodes, the heaviest first;
then spread constraints. Last it tolerates taints with PreferNoSchedule, if a pool has one. A spread over hosts has a
minimum of 0 always, since a new host can be had.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec.structs import replace

from ..api.affinity import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from ..api.node import HOSTNAME
from ..api.pod_spec import PodSpec, intern_spec
from ..api.selectors import NodeSelector, NodeSelectorTerm
from ..api.taints import PREFER_NO_SCHEDULE, Toleration

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
ANY_NUMBER = (1 << 31) - 1
"""Minimum of domains: with fewer domains, the scheduler uses 0 as the smallest count."""
Wish = TypeVar("Wish", PreferredSchedulingTerm, WeightedPodAffinityTerm)
TOLERATES_ALL_SOFT = Toleration(operator="Exists", effect=PREFER_NO_SCHEDULE)


def planned_forms(spec: PodSpec, *, has_soft_taints: bool) -> tuple[PodSpec, ...]:
    """The specs with which a pod is tried in turn; `spec` alone if it has no preference and no spread."""
    return tuple(dict.fromkeys(_as_required(one) for one in _relaxations(spec, has_soft_taints)))


def is_bound_to_domains(spec: PodSpec) -> bool:
    """Whether other pods and domains other than hosts decide where pods of the spec can run."""
    keys = {one.topology_key for one in (*spec.required_affinity, *spec.required_anti_affinity)}
    keys |= {one.topology_key for one in spec.topology_spread_constraints or ()}
    return not keys <= {HOSTNAME}


def compares_pods(spec: PodSpec) -> bool:
    """Whether pods that are placed later may open a place for pods of the spec."""
    return bool(spec.topology_spread_constraints or spec.required_affinity)


def _relaxations(spec: PodSpec, has_soft_taints: bool) -> Iterator[PodSpec]:
    """The spec, and the rest of it after each relaxation."""
    yield spec
    affinity = spec.affinity or Affinity()
    nodes, near, away = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    if nodes is not None and nodes.required is not None:
        for i in range(1, len(nodes.required.terms)):
            nodes = NodeAffinity(NodeSelector(nodes.required.terms[i:]), nodes.preferred or None)
            yield (spec := _with(spec, node_affinity=nodes))
    if near is not None:
        for left in _lighter(near.preferred):
            near = PodAffinity(near.required or None, left or None)
            yield (spec := _with(spec, pod_affinity=near))
    if away is not None:
        for left in _lighter(away.preferred):
            away = PodAntiAffinity(away.required or None, left or None)
            yield (spec := _with(spec, pod_anti_affinity=away))
    if nodes is not None:
        for fewer_wishes in _lighter(nodes.preferred):
            nodes = NodeAffinity(nodes.required, fewer_wishes or None)
            yield (spec := _with(spec, node_affinity=nodes))
    while (fewer := _without_soft(spec.topology_spread_constraints or ())) is not None:
        yield (spec := replace(spec, topology_spread_constraints=fewer or None))
    if has_soft_taints and TOLERATES_ALL_SOFT not in (spec.tolerations or ()):
        yield replace(spec, tolerations=(*(spec.tolerations or ()), TOLERATES_ALL_SOFT))


def _with(spec: PodSpec, **parts: NodeAffinity | PodAffinity | PodAntiAffinity) -> PodSpec:
    return replace(spec, affinity=replace(spec.affinity or Affinity(), **parts))


def _lighter(wishes: tuple[Wish, ...]) -> Iterator[tuple[Wish, ...]]:
    """The preferences without the heaviest one, then without the heaviest two, ..."""
    ordered = _heaviest_first(wishes)
    for i in range(1, len(ordered) + 1):
        yield ordered[i:]


def _heaviest_first(wishes: tuple[Wish, ...]) -> tuple[Wish, ...]:
    return tuple(sorted(wishes, key=lambda one: -one.weight))


def _without_soft(
    spreads: tuple[TopologySpreadConstraint, ...],
) -> tuple[TopologySpreadConstraint, ...] | None:
    """The constraints with the first soft one replaced by the last one; None if none is soft."""
    for i, one in enumerate(spreads):
        if one.when_unsatisfiable == SOFT:
            left = list(spreads)
            left[i] = left[-1]
            return tuple(left[:-1])
    return None


def _as_required(spec: PodSpec) -> PodSpec:
    """The spec with its preferences as requirements; the same object if nothing changes."""
    spreads = spec.topology_spread_constraints or ()
    changes: dict[str, object] = {}
    if spec.affinity is not None:
        affinity = _required_affinity(spec.affinity)
        if affinity != spec.affinity:
            changes["affinity"] = affinity
    if spreads:
        required = tuple(_required_spreads(spreads))
        if _limits_domains_by_wishes(spec):
            required = tuple(replace(one, node_affinity_policy="Ignore") for one in required)
        changes["topology_spread_constraints"] = required
    return intern_spec(replace(spec, **changes)) if changes else intern_spec(spec)


def _limits_domains_by_wishes(spec: PodSpec) -> bool:
    """Whether a preferred node affinity, once it is required, is all that keeps domains out of a spread."""
    nodes = spec.affinity.node_affinity if spec.affinity is not None else None
    has_wishes = nodes is not None and bool(nodes.preferred) and nodes.required is None
    return has_wishes and not spec.node_selector


def _required_affinity(affinity: Affinity) -> Affinity:
    nodes, near, away = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    if nodes is not None:
        terms = nodes.required.terms[:1] if nodes.required is not None else ()
        wishes = _heaviest_first(nodes.preferred)[:1]
        parts = [*terms, *(one.preference for one in wishes if not one.preference.is_empty)]
        nodes = NodeAffinity(NodeSelector((_both(parts),))) if parts else None
    if near is not None:
        wanted = (*near.required, *(one.pod_affinity_term for one in near.preferred))
        near = PodAffinity(wanted or None)
    if away is not None:
        unwanted = (*away.required, *(one.pod_affinity_term for one in away.preferred))
        away = PodAntiAffinity(unwanted or None)
    return Affinity(nodes, near, away)


def _both(terms: list[NodeSelectorTerm]) -> NodeSelectorTerm:
    """One term with the conditions of all."""
    if len(terms) == 1:
        return terms[0]
    expressions = tuple(one for term in terms for one in term.expressions)
    fields = tuple(one for term in terms for one in term.fields)
    return NodeSelectorTerm(expressions or None, fields or None)


def _required_spreads(
    spreads: tuple[TopologySpreadConstraint, ...],
) -> Iterator[TopologySpreadConstraint]:
    """Each constraint as a hard one; except for hosts, also as a soft one, which prefers the emptiest domain."""
    for one in spreads:
        hard = replace(one, when_unsatisfiable=HARD)
        if one.topology_key == HOSTNAME:
            yield replace(hard, min_domains=ANY_NUMBER)
        else:
            yield hard
            yield replace(one, when_unsatisfiable=SOFT, min_domains=None)
