"""The constraints of a pod: its own, or the default ones.

Mirrors pkg/scheduler/framework/plugins/podtopologyspread/common.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from ...api.affinity import HONOR, SCHEDULE_ANYWAY, TopologySpreadConstraint
from ...api.node import HOSTNAME, ZONE
from ...api.pod import Pod
from ...api.selectors import LabelSelector
from ...errors import InputError
from ...framework.lister import Lister
from ...framework.pod_owners import SelectorVersion, default_selector
from ...stamped_cache import StampedCache
from ...table import PodTerm
from ...table.terms import NO_POD

SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)


class Constraint(NamedTuple):
    """One constraint with its defaults filled in; a `selector` of None selects no pod."""

    topology_key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    selector: LabelSelector | None
    pods: PodTerm

    def selects(self, pod: Pod) -> bool:
        """Whether the labels of `pod` are among those to be spread."""
        return self.selector is not None and self.selector.matches(pod.labels)


class ConstraintsCache:
    """The constraints of pods, read once per kind of pod.

    A pod's own constraints depend on its spec, its namespace and the labels that `matchLabelKeys` names; default ones
    on the Services and controllers that select them.
    """

    def __init__(self, defaults: tuple[TopologySpreadConstraint, ...]) -> None:
        self._defaults = defaults
        self._own: StampedCache[Hashable, tuple[Constraint, ...]] = StampedCache(
            "spread constraints"
        )
        self._given: StampedCache[Hashable, tuple[Constraint, ...]] = StampedCache(
            "default spread constraints"
        )
        self._selectors = SelectorVersion()

    def own(self, pod: Pod, action: str) -> tuple[Constraint, ...]:
        """The constraints of the spec with that `whenUnsatisfiable`; InputError if unusable."""
        spec = pod.spec
        given = spec.topology_spread_constraints or ()
        named = tuple(pod.labels.get(key) for one in given for key in one.match_label_keys or ())
        key = (spec, action, pod.namespace, named)
        found = self._own.get(key)
        if found is None:
            found = self._own.put(key, tuple(_own_constraints(pod, action)))
        return found

    def version_of_defaults(self, lister: Lister) -> int:
        """A value that changes when pods may get other default constraints."""
        return self._selectors.of(lister)

    def defaults(self, pod: Pod, action: str, lister: Lister) -> tuple[Constraint, ...]:
        """The default constraints of a pod without its own; empty if nothing selects the pod."""
        wanted = [c for c in self._defaults if c.when_unsatisfiable == action]
        if not wanted:
            return ()
        key = (action, pod.namespace, frozenset(pod.labels.items()), pod.owner_references)
        found = self._given.get(key, (lister, self.version_of_defaults(lister)))
        if found is None:
            selector = default_selector(pod, lister)
            given = () if selector.is_empty else wanted
            made = tuple(_constraint(c, selector, pod.namespace) for c in given)
            found = self._given.put(key, made)
        return found


def _own_constraints(pod: Pod, action: str) -> Iterator[Constraint]:
    for position, constraint in enumerate(pod.spec.topology_spread_constraints or ()):
        if constraint.when_unsatisfiable != action:
            continue
        selector = constraint.label_selector
        for path, fault in selector.problems() if selector is not None else ():
            where = f"topologySpreadConstraints[{position}].labelSelector.{path}"
            raise InputError(f"{where}: {fault}")
        # The API server merges these keys into the selector of new pods; doing it twice is harmless.
        for key in constraint.match_label_keys or ():
            if selector is not None and key in pod.labels:
                selector = selector.with_requirement(key, "In", (pod.labels[key],))
        yield _constraint(constraint, selector, pod.namespace)


def _constraint(
    given: TopologySpreadConstraint, selector: LabelSelector | None, namespace: str
) -> Constraint:
    # An empty selector selects every pod, but counts none.
    counts = selector is not None and not selector.is_empty
    return Constraint(
        topology_key=given.topology_key,
        max_skew=given.max_skew,
        min_domains=1 if given.min_domains is None else given.min_domains,
        honors_affinity=given.node_affinity_policy in (None, HONOR),
        honors_taints=given.node_taints_policy == HONOR,
        selector=selector,
        pods=PodTerm(frozenset({namespace}), selector, False) if counts and selector else NO_POD,
    )
