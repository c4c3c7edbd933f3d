"""Counterfactual: the smallest changes that would let a pod run on a node, verified by the plugins.

Rejections are handled one after the other. Proposed remedies are applied to a frozen cluster, and
all filters of the profile, PreEnqueue and PreFilter included, run again until none rejects the pod.
Then each change is left out once, and unnecessary ones are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..api.pod import Pod
from ..choices import NEAREST
from ..framework import Code, Status
from ..scheduler.all_refusals import AllRefusals
from ..trials import TrialCluster
from .account import Alternative, Counterfactual, Refusal, RemedyStep
from .manifest_changes import ChangeKind, ObjectChange, ObjectRef
from .remedies import Ask, Remedy, propose
from .remedies.proposal import necessary
from .situation import Refused, Situation

MAX_STEPS = 12
MAX_ALTERNATIVES = 2
MAX_TRIMMED = 32

Cost: TypeAlias = tuple[int, int]
Key: TypeAlias = tuple[str, tuple[str, ...], bool]


def refusal(status: Status) -> Refusal:
    """A status as data."""
    reasons = list(status.reasons) or [status.message]
    return Refusal(plugin=status.plugin, code=status.code.name, reasons=reasons)


def find_counterfactuals(
    view: TrialCluster, pod: Pod, nodes: Sequence[str] = (), nearest: int = NEAREST
) -> list[Counterfactual]:
    """Changes that would let `pod`, which fits nowhere, run on each of `nodes`, or on the nearest ones."""
    names = list(nodes) or nearest_nodes(view, pod, nearest)
    found = [find_counterfactual(view, pod, name) for name in names]
    return sorted(found, key=lambda one: (len(one.unknown), len(one.changes), len(one.steps)))


def find_counterfactual(
    view: TrialCluster, pod: Pod, node_name: str, kept: Collection[ObjectRef] = ()
) -> Counterfactual:
    """Changes that would let `pod` run on one node; pods in `kept` stay there."""
    return _Search(Situation(view, pod, node_name, kept)).run()


def nearest_nodes(view: TrialCluster, pod: Pod, count: int) -> list[str]:
    """The nodes to try first: those with the smallest rejections once PreFilter accepts the pod."""
    refused_by = view.ask(pod).all_refusals()
    names = view.table.names
    if not view.gate(pod).is_success or refused_by.is_pod_refused:
        if not len(refused_by.rows):
            return []
        situation = Situation(view, pod, names[int(refused_by.rows[0])])
        changes = _Search(situation).let_in()
        with situation.changed(changes) as changed:
            refused_by = view.ask(changed).all_refusals()
            return _ranked(refused_by, count)
    return _ranked(refused_by, count)


def _ranked(refused_by: AllRefusals, count: int) -> list[str]:
    far = distances(refused_by)[refused_by.rows]
    order = refused_by.rows[far.argsort(kind="stable")]
    return [refused_by.table.names[row] for row in order[:count].tolist()]


@dataclass(slots=True)
class _Met:
    """A rejection, the remedy chosen, and its alternatives."""

    plugin: str
    remedy: Remedy
    changes: list[ObjectChange]
    others: list[Remedy] = field(default_factory=list)


class _Search:
    """Search for the changes from a rejection to a fit, on one node."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._met: list[_Met] = []
        self._unknown: dict[Key, Refused] = {}
        self._seen: set[Key] = set()
        """The rejections that were handled."""

    def run(self) -> Counterfactual:
        """Handle all rejections, then drop unnecessary changes."""
        for _ in range(MAX_STEPS):
            left = self._left(self._changes())
            if not left or not self._meet(left):
                break
        for refused in self._left(self._changes()):
            self._give_up(refused)
        self._minimise()
        node = self._situation.node_name
        found = Counterfactual(node=node, fits=not self._unknown)
        found.unknown = [refusal(refused.status) for refused in self._unknown.values()]
        found.steps = [self._step(met) for met in self._met]
        return found

    def let_in(self) -> list[ObjectChange]:
        """The changes needed for the pod to pass PreEnqueue."""
        for _ in range(MAX_STEPS):
            left = self._left(self._changes())
            with self._situation.changed(self._changes()) as pod:
                view = self._situation.view
                is_in = (
                    view.gate(pod).is_success and not view.ask(pod).all_refusals().is_pod_refused
                )
            if not left or is_in or not self._meet(left):
                break
        return self._changes()

    def _changes(self) -> list[ObjectChange]:
        return [change for met in self._met for change in met.changes]

    def _left(self, changes: Sequence[ObjectChange]) -> list[Refused]:
        """The remaining rejections, without those that have no remedy."""
        refusals = self._situation.refusals(changes)
        return [refused for refused in refusals if _key(refused) not in self._unknown]

    def _give_up(self, refused: Refused) -> None:
        self._unknown[_key(refused)] = refused

    def _meet(self, left: Sequence[Refused]) -> bool:
        """Apply the best remedy to the first rejection that has one; False when none has."""
        for refused in left:
            with self._situation.changed(self._changes()) as pod:
                found = self._try(refused, pod, left)
            if found is not None:
                self._seen.add(_key(refused))
                self._met.append(found)
                return True
            self._give_up(refused)
        return False

    def _try(self, refused: Refused, pod: Pod, left: Sequence[Refused]) -> _Met | None:
        """The remedy that leaves the fewest rejections, the first of equals; None when none makes
        progress."""
        ask = Ask(self._situation, refused, pod, tuple(self._changes()))
        known = {one.plugin for one in left}

        def cost(changes: Sequence[ObjectChange]) -> Cost | None:
            """The number of rejections with another reason, and of all, afterwards; None without
            progress."""
            after = self._situation.refusals_after(pod, changes)
            after = [one for one in after if _key(one) not in self._unknown]
            if any(not one.plugin or _key(one) == _key(refused) for one in after):
                return None
            new = sum(one.plugin not in known for one in after)
            still = sum(one.plugin == refused.plugin for one in after)
            again = sum(_key(one) in self._seen for one in after)  # the search would loop
            return still + new + again, len(after)

        tried: list[tuple[Cost, Remedy]] = []
        made = {change.object for change in ask.so_far if change.kind is ChangeKind.CREATE}
        for remedy in propose(ask):
            undone = any(c.object in made and c.kind is ChangeKind.DELETE for c in remedy.changes)
            worth = cost(remedy.changes) if remedy.changes and not undone else None
            if worth is not None:
                tried.append((worth, _trimmed(remedy, worth, cost)))
        if not tried:
            return None
        worth, remedy = min(tried, key=lambda one: (one[0], one[1].size))
        others = [other for price, other in tried if other is not remedy and price == worth]
        return _Met(refused.plugin, remedy, list(remedy.changes), others)

    def _minimise(self) -> None:
        """Drop unnecessary changes, last first, until all are necessary."""
        was_dropped = True
        while was_dropped:
            was_dropped = False
            for met in reversed(self._met):
                for change in reversed(list(met.changes)):
                    rest = [other for other in self._changes() if other is not change]
                    if not self._left(rest):
                        met.changes.remove(change)
                        was_dropped = True
        self._met = [met for met in self._met if met.changes]

    def _step(self, met: _Met) -> RemedyStep:
        step = RemedyStep(plugin=met.plugin, goal=met.remedy.goal, changes=met.changes)
        if len(met.changes) < len(met.remedy.changes):
            step.goal = _in_words(met.changes)
        for other in met.others:
            changes = self._without_excess(met, list(other.changes))
            if changes:
                step.alternatives.append(Alternative(goal=other.goal, changes=changes))
            if len(step.alternatives) == MAX_ALTERNATIVES:
                break
        return step

    def _without_excess(self, met: _Met, changes: list[ObjectChange]) -> list[ObjectChange]:
        """The necessary part of `changes` in place of those of `met`; empty when they do not help."""

        def helps(tried: Sequence[ObjectChange]) -> bool:
            every = [c for one in self._met for c in (tried if one is met else one.changes)]
            return not self._left(every)

        return necessary(changes, helps) if helps(changes) else []


def _trimmed(
    remedy: Remedy, worth: Cost, cost: Callable[[Sequence[ObjectChange]], Cost | None]
) -> Remedy:
    """The remedy without changes that do not improve its result."""
    if not 1 < len(remedy.changes) <= MAX_TRIMMED:
        return remedy
    changes = necessary(remedy.changes, lambda rest: cost(rest) == worth)
    if len(changes) == len(remedy.changes):
        return remedy
    return Remedy(_in_words(changes), tuple(changes), remedy.price)


def _in_words(changes: Sequence[ObjectChange]) -> str:
    return "; ".join(dict.fromkeys(change.text for change in changes))


def _key(refused: Refused) -> Key:
    """Identity of a rejection; a lack of resources counts as new once only nominated pods cause it."""
    return refused.plugin, refused.status.reasons, refused.is_crowded


Floats = NDArray[np.float64]

FAR = {
    "NodeResourcesFit": 1.0,
    "TaintToleration": 1.0,
    "NodeUnschedulable": 1.0,
    "NodePorts": 1.0,
    "PodTopologySpread": 1.5,
    "InterPodAffinity": 1.5,
    "NodeAffinity": 1.5,
    "NodeVolumeLimits": 1.5,
    "VolumeBinding": 2.0,
    "VolumeZone": 2.0,
    "VolumeRestrictions": 1.5,
    "DynamicResources": 2.0,
    "NodeDeclaredFeatures": 2.0,
    "NodeName": 2.0,
}
UNKNOWN = 4.0
"""A plugin without known remedies."""
FOR_GOOD = 0.5
"""Added to a distance if evicting pods would not help."""


def distances(refusals: AllRefusals) -> Floats:
    """float64 per row of the table: 0 where the pod fits; grows with the number and size of
    rejections.

    They only order the search; the changes are found by running the plugins.
    """
    far: Floats = np.zeros(len(refusals.table))
    for statuses in refusals.by_filter:
        steps = []
        for status in statuses.statuses:
            if status.is_success:
                steps.append(0.0)
                continue
            step = FAR.get(status.plugin, UNKNOWN) * max(len(status.reasons), 1)
            steps.append(step + FOR_GOOD * (status.code is Code.UnschedulableAndUnresolvable))
        far += np.array(steps)[statuses.indices]
    return far + shortages(refusals)


def shortages(refusals: AllRefusals) -> Floats:
    """float64 per row, below 1: the share of the pod's requests that the node lacks."""
    table, total = refusals.table, np.zeros(len(refusals.table))
    requests = refusals.pod.requests
    for resource, wanted in requests.items():
        free = table.allocatable[resource] - table.requested[resource]
        missing = np.clip(wanted - np.maximum(free, 0), 0, wanted)
        total += missing / wanted
    return total / (len(requests) + 1) if requests else total
