"""Question: settle a cluster, change it, settle it again, and compare."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from ...api.pod import Pod
from ...api.pod_groups import GroupPreemptor
from ...api.workloads import workload_of
from ...cluster.memory.absent_owners import is_bare
from ...cluster.memory.pod_index import is_there
from ...errors import InputError
from ...manifests.timeline import InputObject
from ...sim import GroupOutcome
from ...sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ...sim.totals import TotalsChange
from ..stage import PlaceOf, PodPlaces, Stage
from .answer import (
    ABSENT,
    LOST,
    GroupChange,
    GroupPlaces,
    PodChange,
    PreemptedPod,
    WhatIfAnswer,
    Where,
)
from .change import ClusterChange
from .rounds import OwnerKey, owner_key


def ask_what_if(
    objects: Iterable[InputObject],
    changes: Sequence[ClusterChange],
    settings: Settings = DEFAULT_SETTINGS,
    *,
    as_is: bool = False,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
) -> WhatIfAnswer:
    """The consequences of `changes`, made one after the other to the cluster of `objects`.

    Pending pods are tried first; the changes apply to the cluster after that. With `as_is` the
    changes come first. Raises InputError when a change names a missing object.
    """
    stage = Stage(objects, settings, place_of, as_is=as_is)
    stage.begin(on_progress)
    return _follow(stage, changes, on_progress)


def _follow(
    stage: Stage, changes: Sequence[ClusterChange], on_progress: OnProgress | None
) -> WhatIfAnswer:
    """Make the changes on a settled stage."""
    cluster, before = stage.cluster, stage.places()
    budgets, nodes_before = stage.budgets, {node.name: None for node in cluster.list("Node")}
    stage.on_progress = on_progress
    totals_before = stage.totals()
    evicted_before, groups_before = len(cluster.evictions), stage.groups
    for change in changes:
        try:
            change.apply(stage)
        except InputError as error:
            raise InputError(f"{change.text}: {error}") from None
    stage.settle(on_progress)
    new_remarks = [one for one in stage.simulation.remarks if one not in stage.settlement.remarks]
    after = stage.places()
    nodes_after = {node.name: None for node in cluster.list("Node")}
    evictions = cluster.evictions[evicted_before:]
    for victim, _ in evictions:
        budgets.take(victim)
    return WhatIfAnswer(
        [change.text for change in changes],
        _pod_changes(stage, before, after, evictions),
        (before.running, after.running),
        before.waiting,
        after.waiting,
        [PreemptedPod(victim.key, victim.node_name, by.key) for victim, by in evictions],
        budgets.touched(),
        [name for name in nodes_after if name not in nodes_before],
        [name for name in nodes_before if name not in nodes_after],
        _group_changes(groups_before, stage.groups),
        (_count_started(groups_before), _count_started(stage.groups)),
        stage.settlement,
        stage.refused,
        stage.courses,
        [*stage.notes, *new_remarks],
        TotalsChange(totals_before, stage.totals()),
    )


# Pod groups, before and after


def _count_started(groups: Sequence[GroupOutcome]) -> int:
    return sum(group.has_started for group in groups)


def _group_changes(
    before: Sequence[GroupOutcome], after: Sequence[GroupOutcome]
) -> list[GroupChange]:
    """The changed groups, in their original order."""
    was, now = ({group.key: group for group in groups} for groups in (before, after))
    changes = []
    for key in {**was, **now}:
        old, new = _group_places(was.get(key)), _group_places(now.get(key))
        if old != new:
            named = now.get(key) or was[key]
            changes.append(
                GroupChange(named.namespace, named.name, old, new, _why_group(new, now.get(key)))
            )
    return changes


def _group_places(group: GroupOutcome | None) -> GroupPlaces:
    if group is None:
        return GroupPlaces(0, 0, False)
    return GroupPlaces(group.members, group.placed, group.has_started, tuple(sorted(group.domains)))


def _why_group(places: GroupPlaces, group: GroupOutcome | None) -> str:
    if group is None:
        return "deleted"
    return group.cause or ("fits now" if places.has_started else "")


# Pods, before and after


def _pod_changes(
    stage: Stage,
    before: PodPlaces,
    after: PodPlaces,
    evictions: Sequence[tuple[Pod, Pod | GroupPreemptor]],
) -> list[PodChange]:
    """The changed pods, in their original order."""
    reasons = dict(stage.reasons)
    reasons |= {victim.key: f"preempted by {preemptor.key}" for victim, preemptor in evictions}
    lost = {pod.key for pod in stage.lost}
    lost |= {victim.key for victim, _ in evictions if is_bare(victim)}
    successors = _Successors(before, after)
    changes = []
    for name, was in before.pods.items():
        same_name = after.pods.get(name)
        if same_name is was or not is_there(was):
            continue
        if same_name is not None and not is_there(same_name):
            same_name = None
        now = same_name or successors.take(was)
        if now is None:
            where = LOST if was.key in lost else ABSENT
            changes.append(_change(was, Where.of(was), where, reasons.get(was.key, "deleted")))
        elif now.uid != was.uid or now.node_name != was.node_name:
            why = _why(reasons.get(was.key, ""), was, now, after)
            successor = now.name if now.name != was.name else ""
            changes.append(_change(was, Where.of(was), Where.of(now), why, successor))
    for now in successors.rest():
        changes.append(_change(now, ABSENT, Where.of(now), _why("new", None, now, after)))
    return changes


class _Successors:
    """The new pods, by controller."""

    def __init__(self, before: PodPlaces, after: PodPlaces) -> None:
        self._new: defaultdict[OwnerKey, deque[Pod]] = defaultdict(deque)
        for name, pod in after.pods.items():
            was = before.pods.get(name)
            if was is not pod and (was is None or not is_there(was)) and is_there(pod):
                self._new[owner_key(pod)].append(pod)

    def take(self, pod: Pod) -> Pod | None:
        """Take a new pod that replaces `pod`."""
        candidates = self._new.get(owner_key(pod)) if not is_bare(pod) else None
        return candidates.popleft() if candidates else None

    def rest(self) -> list[Pod]:
        """The new pods that replace none."""
        return [pod for pods in self._new.values() for pod in pods]


def _why(reason: str, was: Pod | None, now: Pod, after: PodPlaces) -> str:
    if not now.node_name:
        return ": ".join(part for part in (reason, after.message_of(now)) if part)
    return reason or ("fits now" if was is not None and not was.node_name else "recreated")


def _change(pod: Pod, was: Where, now: Where, why: str, successor: str = "") -> PodChange:
    workload = f"{pod.namespace}/{workload_of(pod)[1]}"
    return PodChange(pod.namespace, pod.name, was, now, why, successor, workload)
