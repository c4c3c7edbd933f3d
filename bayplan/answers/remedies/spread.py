"""Spread: remedies for topology spread constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...api.node import HOSTNAME
from ...api.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, TopologySpreadConstraint
from ...trials import TrialCluster
from ..manifest_changes import ObjectChange, pointer
from .node import label_changes
from .proposal import (
    Ask,
    Remedy,
    add,
    delete_pod,
    importance,
    in_words,
    last_resort,
    leaving,
    placed_pods,
    plain,
    put,
    remedy,
    replace,
    smallest,
)

MOST_PODS = 64
MOST_VALUES = 6
HONOR = "Honor"
CONSTRAINTS = "topologySpreadConstraints"
Numbered = tuple[int, TopologySpreadConstraint]


def even_out(ask: Ask) -> Iterator[Remedy]:
    """Label the node, raise maxSkew, remove pods from the domain, or soften the constraint."""
    hard = [
        (i, constraint)
        for i, constraint in enumerate(ask.pod.spec.topology_spread_constraints or ())
        if constraint.when_unsatisfiable == DO_NOT_SCHEDULE
    ]
    if not hard:
        yield from _own_instead_of_default(ask)
        return
    if any(c.topology_key not in ask.node.labels for _, c in hard):
        yield from _label_node(ask, hard)
    else:
        broken = [
            one
            for one in hard
            if not ask.helps(_as_preferences(ask, [o for o in hard if o != one]))
        ]
        yield from _leave_out_closed(ask, broken or hard)
        yield from _allow_skew(ask, broken or hard)
        yield from _move_pods(ask, broken or hard)
    keys = ", ".join(dict.fromkeys(c.topology_key for _, c in hard))
    yield last_resort(f"make the spread over {keys} a preference", *_as_preferences(ask, hard))


def _as_preferences(ask: Ask, constraints: Sequence[Numbered]) -> list[ObjectChange]:
    return [
        replace(
            ask.pod,
            pointer("spec", CONSTRAINTS, i, "whenUnsatisfiable"),
            DO_NOT_SCHEDULE,
            SCHEDULE_ANYWAY,
            f"make the spread over {constraint.topology_key} a preference",
        )
        for i, constraint in constraints
    ]


def _label_node(ask: Ask, hard: Sequence[Numbered]) -> Iterator[Remedy]:
    """Put the node into an existing or a new domain."""
    keys = dict.fromkeys(c.topology_key for _, c in hard if c.topology_key not in ask.node.labels)
    for n in range(MOST_VALUES):
        labels: dict[str, str | None] = {}
        for key in keys:
            if key == HOSTNAME:
                labels[key] = ask.node.name
                continue
            values = [f"new-{key.rpartition('/')[2]}"]
            known = {
                node.labels[key] for node in ask.view.cluster.list("Node") if key in node.labels
            }
            values = [*sorted(known), *values]
            labels[key] = values[min(n, len(values) - 1)]
        yield in_words(label_changes(ask.node, labels))


def _leave_out_closed(ask: Ask, broken: Sequence[Numbered]) -> Iterator[Remedy]:
    """Leave out domains in which the pod cannot run because of taints, if that is enough."""
    changes = [change for i, c in broken if (change := honor_taints(ask.pod, i, c)) is not None]
    if changes and ask.helps(changes):
        yield remedy("; ".join(dict.fromkeys(change.text for change in changes)), *changes)


def honor_taints(pod: Pod, i: int, constraint: TopologySpreadConstraint) -> ObjectChange | None:
    """`nodeTaintsPolicy: Honor` for the constraint at `i`; None when it has that."""
    if constraint.node_taints_policy == HONOR:
        return None
    path = pointer("spec", CONSTRAINTS, i, "nodeTaintsPolicy")
    text = f"set nodeTaintsPolicy: Honor for the spread over {constraint.topology_key}"
    return put(pod, path, constraint.node_taints_policy, HONOR, text)


def _allow_skew(ask: Ask, broken: Sequence[Numbered]) -> Iterator[Remedy]:
    """The smallest maxSkew that accepts the pod, found by trying."""
    changes = []
    for i, constraint in broken:
        others = _as_preferences(ask, [one for one in broken if one[0] != i])

        def skewed(
            skew: int, i: int = i, constraint: TopologySpreadConstraint = constraint
        ) -> ObjectChange:
            path = pointer("spec", CONSTRAINTS, i, "maxSkew")
            text = f"allow a skew of {skew} over {constraint.topology_key}"
            return replace(ask.pod, path, constraint.max_skew, skew, text)

        low, high = constraint.max_skew, constraint.max_skew + 1
        while not ask.helps([*others, skewed(high)]):
            low, high = high, high * 2
            if high > 2**30:
                return
        enough = smallest(lambda n, of=others, to=skewed: ask.helps([*of, to(n)]), low, high)  # type: ignore[misc]  # mypy: default of a lambda
        changes.append(skewed(enough))
    yield in_words(changes)


def _move_pods(ask: Ask, broken: Sequence[Numbered]) -> Iterator[Remedy]:
    """Remove as few pods as necessary from the node's domain."""
    going: dict[str, Pod] = {}
    domains = []
    for i, constraint in broken:
        key = constraint.topology_key
        pods = _pods_in_domain(ask, constraint)[:MOST_PODS]
        others = _as_preferences(ask, [one for one in broken if one[0] != i])

        def leaves(
            count: int, pods: Sequence[Pod] = pods, others: Sequence[ObjectChange] = others
        ) -> bool:
            return ask.helps([*others, *[delete_pod(pod) for pod in pods[:count]]])

        if not pods or not leaves(len(pods)):
            return
        going |= {pod.uid: pod for pod in pods[: smallest(leaves, 0, len(pods))]}
        domains.append(f"{key}={ask.node.labels[key]}")
    number = "a pod" if len(going) == 1 else f"{len(going)} pods"
    yield leaving(f"move {number} out of {', '.join(domains)}", [*going.values()], most=len(going))


def _pods_in_domain(ask: Ask, constraint: TopologySpreadConstraint) -> list[Pod]:
    """The pods counted in the node's domain, those on other nodes first."""
    value = ask.node.labels[constraint.topology_key]
    found = counted_pods(ask.view, ask.pod, constraint, value)
    return sorted((pod for _, pod in found), key=importance)


def counted_pods(
    view: TrialCluster, pod: Pod, constraint: TopologySpreadConstraint, only: str | None = None
) -> Iterator[tuple[str, Pod]]:
    """The pods that the constraint counts, with their domains; `only` those of one domain."""
    selector, key = constraint.label_selector, constraint.topology_key
    if selector is None:
        return
    keys = constraint.match_label_keys or ()
    same = {key: pod.labels[key] for key in keys if key in pod.labels}
    for node, other in placed_pods(view):
        if (
            key in node.labels
            and only in (None, node.labels[key])
            and other.namespace == pod.namespace
            and selector.matches(other.labels)
            and all(other.labels.get(k) == v for k, v in same.items())
        ):
            yield node.labels[key], other


def _own_instead_of_default(ask: Ask) -> Iterator[Remedy]:
    """Give the pod a soft constraint of its own, which replaces the default one."""
    args = ask.view.plugin_args(ask.pod, "PodTopologySpread")
    for constraint in getattr(args, "default_constraints", None) or ():
        if constraint.when_unsatisfiable == DO_NOT_SCHEDULE:
            own = {
                **plain(constraint),
                "whenUnsatisfiable": SCHEDULE_ANYWAY,
                "labelSelector": {"matchLabels": dict(ask.pod.labels)},
            }
            text = f"the pod's own spread over {constraint.topology_key}, as a preference"
            given = ask.pod.spec.topology_spread_constraints
            if given:
                yield remedy(text, add(ask.pod, pointer("spec", CONSTRAINTS, "-"), own, text))
            else:
                yield remedy(text, put(ask.pod, pointer("spec", CONSTRAINTS), None, [own], text))
