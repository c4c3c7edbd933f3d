"""Conformance of pod groups: one scheduler processes a recorded history of group cycles, and each is compared.

A case is a cluster with pods in groups and a list of steps: a pod is taken from the queue and its group is tried,
objects are applied and deleted in between. After a difference the history continues as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.api.pod_groups import SCHEDULED_CONDITIONS, PodGroup, PodGroupCondition
from bayplan.clock import ManualClock
from bayplan.framework import Code, CycleState, PostFilterResult, Status
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.victims import Victims
from bayplan.queue.active import BACKOFF, UNSCHEDULABLE
from bayplan.queue.group_queue import QueuedGroupInfo, group_name
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import DEFAULT_RELEASE, find_release
from bayplan.runtime import ProfileRuntime
from bayplan.scheduler import Attempt, FirstByName, Outcome, build_scheduler
from bayplan.scheduler.group_attempt import GroupAttempt, MemberTrial, PlacementTrial

from .cases import Disagreement, case_config
from .long_run import FIRST_START, RecordedCluster, decoded

Record = dict[str, Any]
TICK_S = 0.0001
"""Between objects: members are tried in the order in which they came."""


def is_group_case(case: Record) -> bool:
    """Whether the case is a history of pod groups."""
    expected = case.get("expected")
    return "steps" in case and isinstance(expected, dict) and "attempts" in expected


def run_group_case(case: Record) -> Iterator[list[Disagreement]]:
    """For each attempt of the case, in order: the differences.

    Each is made by a scheduler that explains, and so tries everything in full, and by one that does not, and so may
    leave placements untried.
    """
    histories = GroupHistory(case, explain=True), GroupHistory(case, explain=False)
    records = iter(case["expected"]["attempts"])
    for number, step in enumerate(case["steps"]):
        expected = next(records) if "attempt" in step else None
        found: list[Disagreement] = []
        for history in histories:
            if expected is None:
                history.change(step)
                continue
            ours = history.attempt(step["attempt"])
            history.go_on(number, expected)
            name = f"step {number}: {expected['pod']}"
            theirs = {**expected, "placements": ours["placements"]}
            theirs = expected if history.explains or ours["placements"] else theirs
            found += [
                Disagreement(case["id"], name, *difference)
                for difference in differences("", ours, theirs)
            ]
        if expected is not None:
            yield found


def differences(path: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Each field that differs: path, ours, theirs. The messages of errors are not compared."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        is_error = "Error" in (theirs.get("code"), theirs.get("outcome"))
        is_error = is_error or theirs.get("reason") == "SchedulerError"
        for key in sorted(theirs.keys() | ours.keys()):
            if key != "step" and not (is_error and key == "message"):
                yield from differences(f"{path}.{key}".lstrip("."), ours.get(key), theirs.get(key))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(f"{path}[{number}]", mine, other)
    elif ours != theirs:
        yield path, ours, theirs


class RecordedGroups(RecordedCluster):
    """Notes the condition that a cycle writes; the recording determines the stored one."""

    written: PodGroupCondition | None = None

    def update_status(self, obj: Any) -> Any:
        if isinstance(obj, PodGroup):
            conditions = obj.status.conditions or ()
            self.written = next(c for c in conditions if c.type in SCHEDULED_CONDITIONS)
        return obj


class GroupHistory:
    """The cluster of a case, its scheduler, and the kinds of steps."""

    def __init__(self, case: Record, explain: bool) -> None:
        self._case = case["id"]
        self.explains = explain
        self._cluster = RecordedGroups()
        self._clock = ManualClock()
        release = find_release(case.get("release", DEFAULT_RELEASE.version))
        self._has_entries = release.groups_are_entries
        gates = FeatureGates({**case["gates"], "OpportunisticBatching": False}, release=release)
        self._scheduler = build_scheduler(
            case_config(case["config"], gates),
            self._cluster,
            clock=self._clock,
            ties=FirstByName(),
            feature_gates=gates,
            explain=explain,
            ended=self._note_part,
        )
        self._parts: dict[str, str | None] = {}
        """The node of each pod when its attempt ended; a later member may activate it again."""
        self._preemptions: dict[str, PostFilterResult] = {}
        for profile in self._scheduler.profiles.values():
            self._listen(profile)
        self._cluster.watch(self._scheduler)
        objects = [decoded(obj) for obj in case["objects"]]
        for obj in sorted(objects, key=lambda obj: isinstance(obj, Pod) and not obj.node_name):
            self._clock.advance(TICK_S)
            self._cluster.add(obj)

    def _listen(self, profile: ProfileRuntime) -> None:
        """Note the result of PostFilter."""
        run: Callable[..., tuple[PostFilterResult, Status]] = profile.filtering.run_post_filters

        def noted(
            state: CycleState, pod: Pod, diagnosis: Diagnosis
        ) -> tuple[PostFilterResult, Status]:
            result, status = run(state, pod, diagnosis)
            self._preemptions[pod.key] = result
            return result, status

        profile.filtering.run_post_filters = noted  # type: ignore[method-assign]

    def change(self, step: Record) -> None:
        """Apply or delete an object."""
        if "apply" in step:
            self.apply(step["apply"])
        else:
            self.delete(step["delete"])

    def apply(self, tree: Record) -> None:
        """Add an object, or replace the one of that name: for the scheduler, the same object has changed."""
        meta = tree["metadata"]
        there = self._cluster.get(tree["kind"], meta.get("namespace", ""), meta["name"])
        if there is not None:
            meta = {**meta, "uid": there.uid}
        self._clock.advance(TICK_S)
        self._cluster.put(decoded({**tree, "metadata": meta}))

    def delete(self, wanted: Record) -> None:
        """Delete an object."""
        kind, namespace, name = wanted["kind"], wanted.get("namespace", ""), wanted["name"]
        self._cluster.delete(self._cluster.existing(self._case, kind, namespace, name))

    def attempt(self, key: str) -> Record:
        """Take a pod from the queue and try it, with its group; return our record of it."""
        pod: Pod = self._cluster.existing(self._case, "Pod", *key.split("/"))
        self._preemptions.clear()
        self._cluster.written = None
        group = pod.spec.scheduling_group
        record: Record = {
            "pod": key,
            "group": None if group is None else f"{pod.namespace}/{group.pod_group_name}",
            "preEnqueue": None,
            "outcome": "Held",
            "message": "",
            "placements": None,
            "placement": None,
            "workloadPreemption": None,
            "members": [],
            "condition": None,
            "clearedNominations": [],
        }
        popped = self._scheduler.queue.pop_specific(pod)
        if popped is None:
            info = self._scheduler.queue.get(pod)
            status = None if info is None else info.gated_by
            if self._has_entries:
                status = self._held_by(pod)
            assert status is not None or self._has_entries, f"{key} is in the queue, or gated"
            record["preEnqueue"] = None if status is None else _status(status)
            return record
        first = self._scheduler.schedule_popped(popped)
        assert first is not None, "a pod that is not being deleted is tried"
        if first.group is None:
            self._note_single(record, first)
        else:
            self._note_group(record, first.group)
        record["condition"] = self._condition()
        return record

    def _held_by(self, pod: Pod) -> Status | None:
        """The status that holds the group of a pod; None if there is no such group."""
        infos = self._scheduler.queue.unschedulable
        name = group_name(pod)
        found = (i for i in infos if isinstance(i, QueuedGroupInfo) and i.name == name)
        return next((info.gated_by for info in found), None)

    def _condition(self) -> Record | None:
        written = self._cluster.written
        if written is None:
            return None
        return {name: getattr(written, name) for name in ("status", "reason", "message")}

    def _note_single(self, record: Record, attempt: Attempt) -> None:
        member = self._member(attempt, attempt.node_name or None)
        record["members"] = [member]
        record["outcome"], record["message"] = _outcome(attempt), attempt.message
        if attempt.is_failed and attempt.nominated_node_name:
            record["outcome"] = "WaitingOnPreemption"
        self._note_cleared(record, [attempt.pod.key])

    def _note_group(self, record: Record, account: GroupAttempt) -> None:
        status = account.status
        record["outcome"] = status.code.name
        if account.result.waits_for_preemption:
            record["outcome"] = "WaitingOnPreemption"
        record["message"] = status.message
        tried = {m.attempt.pod.uid: self._member_of_group(m) for m in account.result.members}
        record["members"] = [tried.get(pod.uid) or _skipped(pod) for pod in account.popped]
        if account.placements:
            record["placements"] = [self._placement(trial) for trial in account.placements]
        if account.chosen is not None:
            record["placement"] = account.chosen.name or None
        if account.preemption is not None:
            victims = account.preemption.victims
            record["workloadPreemption"] = {
                "code": account.preemption.status.code.name,
                "message": account.preemption.status.message,
                "victims": _keys(victims),
                "evicted": _keys(victim for victim in victims if not victim.is_terminating),
            }
        self._note_cleared(record, [member["pod"] for member in record["members"]])

    def _placement(self, trial: PlacementTrial) -> Record:
        names = self._scheduler.cache.table.names
        return {
            "name": trial.placement.name,
            "nodes": sorted(names[row] for row in trial.placement.rows),
            "code": trial.result.status.code.name,
            "message": trial.result.status.message,
            "hosts": {m.attempt.pod.key: m.node_name or None for m in trial.result.members},
            "scores": trial.scores,
            "total": trial.total,
        }

    def _note_cleared(self, record: Record, members: Sequence[str]) -> None:
        accounts = [result.preemption for result in self._preemptions.values()]
        cleared = {pod.key for account in accounts if account for pod in account.cleared}
        record["clearedNominations"] = sorted(cleared.difference(members))

    def _member_of_group(self, member: MemberTrial) -> Record:
        record = self._member(member.attempt, member.node_name or None)
        if member.permit is not None and not self._has_entries:
            record["permit"] = member.permit.code.name
        return record

    def _member(self, attempt: Attempt, suggested: str | None) -> Record:
        pod = attempt.pod
        is_bound = attempt.outcome is Outcome.BOUND
        info = self._scheduler.queue.get(pod)
        return {
            "pod": pod.key,
            "host": attempt.node_name if is_bound else None,
            "suggestedHost": suggested,
            "permit": None,
            "code": _outcome(attempt),
            "message": attempt.message,
            "nominatedNode": None if is_bound else attempt.nominated_node_name,
            "unschedulablePlugins": [] if info is None else sorted(info.unschedulable_plugins),
            "pendingPlugins": [] if info is None else sorted(info.pending_plugins),
            "preemption": self._preemption(pod),
            "queue": None if is_bound else self._part_of(pod),
        }

    def _preemption(self, pod: Pod) -> Record | None:
        result = self._preemptions.get(pod.key)
        account = result.preemption if result is not None else None
        chosen: Victims | None = account.chosen if account is not None else None
        if chosen is None:
            return None
        return {
            "node": chosen.node_name,
            "victims": _keys(chosen.pods),
            "evicted": _keys(chosen.evicted),
        }

    def _part_of(self, pod: Pod) -> str | None:
        if not self._has_entries:
            return self._parts.get(pod.key)
        part = self._scheduler.queue.part_of(pod.key)
        is_member = pod.spec.scheduling_group is not None
        if not is_member:
            return self._parts.get(pod.key)
        return {BACKOFF: "errorBackoff", UNSCHEDULABLE: "gated"}.get(part or "", part)

    def _note_part(self, attempt: Attempt) -> None:
        queue, pod = self._scheduler.queue, attempt.pod
        info, part = queue.get(pod), queue.part_of(pod.key)
        if info is not None and part == UNSCHEDULABLE:
            part = "gated" if info.is_gated else "unschedulable"
        elif info is not None and part == BACKOFF:
            part = "backoff" if info.has_rejectors else "errorBackoff"
        self._parts[pod.key] = part

    def go_on(self, number: int, expected: Record) -> None:
        """Apply the recorded result of the last attempt."""
        for position, member in enumerate(expected["members"]):
            pod = self._cluster.existing(self._case, "Pod", *member["pod"].split("/"))
            if member["host"] is not None:
                self._start(pod, member["host"], timedelta(seconds=100 * number + position))
                continue
            cache = self._scheduler.cache
            if cache.is_assumed(pod):
                cache.forget_pod(cache.get_pod(pod))
            if member["nominatedNode"] is not None:
                self._nominate(member["pod"], member["nominatedNode"])
        for key in expected["clearedNominations"]:
            self._nominate(key, "")
        if expected["condition"] is not None:
            group: PodGroup = self._cluster.existing(
                self._case, "PodGroup", *expected["group"].split("/")
            )
            kind = self._scheduler.release.group_condition
            condition = PodGroupCondition(type=kind, **expected["condition"])
            self._cluster.update(
                replace(group, status=replace(group.status, conditions=(condition,)))
            )

    def _start(self, pod: Pod, host: str, after: timedelta) -> None:
        start = (FIRST_START + after).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = replace(pod.status, phase="Running", nominated_node_name="", start_time=start)
        status = replace(status, conditions=None)
        self._cluster.update(pod.with_node(host).with_status(status))

    def _nominate(self, key: str, node_name: str) -> None:
        pod = self._cluster.existing(self._case, "Pod", *key.split("/"))
        self._cluster.update(pod.with_status(replace(pod.status, nominated_node_name=node_name)))
        self._scheduler.queue.nominator.add(
            self._cluster.existing(self._case, "Pod", *key.split("/"))
        )


def _outcome(attempt: Attempt) -> str:
    if attempt.outcome is Outcome.BOUND:
        return Code.Success.name
    return "Unschedulable" if attempt.outcome is Outcome.UNSCHEDULABLE else "Error"


def _skipped(pod: Pod) -> Record:
    return {
        **dict.fromkeys(
            ("host", "suggestedHost", "permit", "nominatedNode", "preemption", "queue")
        ),
        "pod": pod.key,
        "code": "Skipped",
        "message": "",
        "unschedulablePlugins": [],
        "pendingPlugins": [],
    }


def _status(status: Status) -> Record:
    return {
        "plugin": status.plugin,
        "code": status.code.name,
        "reasons": sorted(status.reasons),
    }


def _keys(pods: Iterable[Pod]) -> list[str]:
    return sorted(pod.key for pod in pods)
