"""Conformance cases: schedule the pods of a recorded case and compare each decision with kube-scheduler's.

A case is a cluster, a configuration and pending pods, with the decision of kube-scheduler for each of them: that of
v1.36.4, or of the release that the case names.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from bayplan.api.devices import ResourceSlice
from bayplan.api.dra import AllocationResult, DeviceClass, ResourceClaim
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod, PodCondition
from bayplan.api.pod_groups import GroupPreemptor
from bayplan.api.wire.decode import decode_object
from bayplan.clock import ManualClock
from bayplan.config.defaults import default_config
from bayplan.config.load import parse_config
from bayplan.config.plugin_args import DefaultPreemptionArgs
from bayplan.config.types import SchedulerConfiguration
from bayplan.framework import Status
from bayplan.framework.handle import PodEvent
from bayplan.framework.victims import Victims
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import DEFAULT_RELEASE, find_release
from bayplan.scheduler import Attempt, FirstByName, Outcome, Scheduler, build_scheduler

PREEMPTION = "DefaultPreemption"
MOST_ORDERS = 200
TRIAL = "trial"
"""Key of a case for the feature gates to run it with, instead of those it was recorded with."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference; `field` is a path in the record of the pod."""

    case: str
    pod: str
    field: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.case}: {self.pod}: {self.field}: ours {self.ours!r}, theirs {self.theirs!r}"


class CaseCluster:
    """The objects of a case. Nothing is bound or deleted: pods stay assumed. Claims are written."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self.version = 0
        self._objects: dict[str, dict[tuple[str, str], Any]] = {}
        for obj in objects:
            self._put(obj)

    def _put(self, obj: Any) -> None:
        self._objects.setdefault(obj.kind, {})[obj.namespace, obj.name] = obj

    def version_of(self, *kinds: str) -> int:
        return self.version

    def list(self, kind: str, namespace: str | None = None) -> list[Any]:
        found = self._objects.get(kind, {}).values()
        return [obj for obj in found if namespace is None or obj.namespace == namespace]

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def update(self, obj: T) -> T:
        if isinstance(obj, ResourceClaim):
            self._put(obj)
            self.version += 1
        return obj

    def update_status(self, obj: T) -> T:
        return self.update(obj)

    def create(self, obj: Any) -> Any:
        name = f"{obj.metadata.generate_name}{self.version}"
        meta = msgspec.structs.replace(obj.metadata, name=name, uid=name)
        return self.update(msgspec.structs.replace(obj, metadata=meta))

    def delete(self, obj: KubeObject) -> None:
        self._objects[obj.kind].pop((obj.namespace, obj.name))
        self.version += 1

    def bind(self, pod: Pod, node_name: str) -> None:
        pass

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        pass

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        pass

    def record_event(self, event: PodEvent) -> None:
        pass

    def clear_nomination(self, pod: Pod) -> None:
        pass  # the nominator drops it; the pod's status stays, as in a cluster whose watch lags behind


class NoBinding:
    """Runs nothing: the binding cycles of a case start and never proceed."""

    def run(
        self, work: Callable[[], Status | Awaitable[Status]], finished: Callable[[Status], None]
    ) -> None:
        pass


class ClaimBinding:
    """Runs PreBind without binding: the claims of the pod are written."""

    def run(
        self, work: Callable[[], Status | Awaitable[Status]], finished: Callable[[Status], None]
    ) -> None:
        status = work()
        assert isinstance(status, Status), "the cluster of a case has no delays"
        if not status.is_success:
            finished(status)


def run_case(case: dict[str, Any]) -> Iterator[tuple[str, list[Disagreement]]]:
    """For each pod of the case, in order: its name and the differences.

    Where the release leaves the order of ResourceSlices to chance, the case is run with others, too, and the first that
    agrees counts: the recorded decisions are then among the possible ones.
    """
    slices = [obj for obj in case["objects"] if obj["kind"] == ResourceSlice.kind]
    if TRIAL in case or not slices or case_gates(case).release.sorts_slices:
        yield from _run_once(case)
        return
    others = [obj for obj in case["objects"] if obj["kind"] != ResourceSlice.kind]
    slices.sort(key=_slice_order)
    chance = random.Random(0)
    first = found = list(_run_once({**case, "objects": [*others, *slices]}))
    for _ in range(MOST_ORDERS):
        if not any(differences for _, differences in found):
            break
        chance.shuffle(slices)
        found = list(_run_once({**case, "objects": [*others, *slices]}))
    else:
        found = first
    yield from found


def _slice_order(obj: dict[str, Any]) -> tuple[str, str, str]:
    spec = obj["spec"]
    return spec["driver"], spec["pool"]["name"], obj["metadata"]["name"]


def _run_once(case: dict[str, Any]) -> Iterator[tuple[str, list[Disagreement]]]:
    objects = [decode_object(obj) for obj in case["objects"]]
    pods: list[Any] = [decode_object(obj) for obj in case["pods"]]
    cluster = CaseCluster([*objects, *pods])
    gates = case_gates(case)
    scheduler = build_scheduler(
        case_config(case["config"], gates),
        cluster,
        feature_gates=gates,
        clock=ManualClock(),
        executor=ClaimBinding() if cluster.list(DeviceClass.kind) else NoBinding(),
        ties=FirstByName(),
        explain=True,
    )
    for obj in objects:
        if not isinstance(obj, Pod) or obj.node_name:
            scheduler.on_add(obj)
    running = {obj.key: obj for obj in objects if isinstance(obj, Pod) and obj.node_name}
    for key in case.get("deleted", ()):
        scheduler.on_delete(running[key])
    for pod in (*pods, *(o for o in objects if isinstance(o, Pod) and not o.node_name)):
        scheduler.queue.nominator.add(scheduler.as_read(pod))
    for pod, expected in zip(pods, case["expected"]["pods"], strict=True):
        before = allocations_of(cluster)
        record = decide(scheduler, scheduler.as_read(pod))
        note_claims(record, before, allocations_of(cluster))
        found = [
            Disagreement(case["id"], expected["pod"], path, ours, theirs)
            for path, ours, theirs in compare(record, expected)
        ]
        yield expected["pod"], found


def case_gates(case: dict[str, Any]) -> FeatureGates:
    """The default gates of the release that the case was recorded with, or those to try the case with."""
    trial = case.get(TRIAL)
    if isinstance(trial, FeatureGates):
        return trial
    return FeatureGates(release=find_release(case.get("release", DEFAULT_RELEASE.version)))


def case_config(
    raw: dict[str, Any] | None, gates: Mapping[str, bool] | None = None
) -> SchedulerConfiguration:
    """The configuration of a case: every node is judged, and every node is a preemption candidate."""
    config = default_config(gates) if raw is None else parse_config(raw, "config", gates)
    config = msgspec.structs.replace(
        config,
        percentage_of_nodes_to_score=None,
        profiles=tuple(
            msgspec.structs.replace(profile, percentage_of_nodes_to_score=None)
            for profile in config.profiles
        ),
    )
    given = [
        {entry["name"] for entry in profile.get("pluginConfig") or ()}
        for profile in (raw or {}).get("profiles") or [{}]
    ]
    for profile, names in zip(config.profiles, given, strict=True):
        if PREEMPTION not in names and PREEMPTION in profile.plugin_config:
            args = DefaultPreemptionArgs(
                min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=100
            )
            profile.plugin_config[PREEMPTION] = args  # type: ignore[index]  # a dict behind the Mapping
    return config


def decide(scheduler: Scheduler, pod: Pod) -> dict[str, Any]:
    """Our record for one pod, in the form of the expected ones."""
    profile = scheduler.profiles[pod.scheduler_name]
    gate = profile.run_pre_enqueue(pod)
    if not gate.is_success:
        return {"pod": pod.key, "preEnqueue": _status(gate)}
    attempt = scheduler.schedule(QueuedPodInfo(pod, 0.0))
    if attempt.nominated_node_name is not None and not attempt.node_name:
        scheduler.queue.nominator.add(pod, attempt.nominated_node_name)
    return _record(attempt)


def _record(attempt: Attempt) -> dict[str, Any]:
    told = attempt.explanation
    record: dict[str, Any] = {"pod": attempt.pod.key, "preEnqueue": None}
    if told is None or attempt.outcome is Outcome.ERROR:
        return {**record, "error": attempt.message}
    names = None if told.node_names is None else sorted(told.node_names)
    record["preFilter"] = {**_status(told.pre_filter), "nodeNames": names}
    record["filter"] = None
    if told.pre_filter.is_success:
        record["filter"] = {
            name: None if status.is_success else _status(status)
            for name, status in told.filter.items()
        }
    feasible = bool(told.totals)
    record["scores"] = {
        scored.plugin: {name: value * scored.weight for name, value in scored.normalized.items()}
        for scored in told.scores
    }
    record["totals"] = told.totals
    if not feasible:
        record["scores"] = record["totals"] = None
    record["host"] = attempt.node_name or None
    record["hostFromNomination"] = attempt.from_nomination
    record["fitError"] = attempt.fit_error or None
    record["unschedulablePlugins"] = sorted(attempt.unschedulable_plugins)
    record["message"] = attempt.message or None
    record["postFilter"] = _post_filter(attempt)
    return record


def _status(status: Status) -> dict[str, Any]:
    reasons = sorted(status.reasons)
    return {"plugin": status.plugin, "code": status.code.name, "reasons": reasons}


def _post_filter(attempt: Attempt) -> dict[str, Any] | None:
    told = attempt.explanation
    if told is None or told.post_filter is None:
        return None
    result, status = told.post_filter
    account = result.preemption
    record: dict[str, Any] = {
        "code": status.code.name,
        "nominatedNode": result.nominated_node_name,
        "victims": [],
        IN_ORDER: [],
        "evicted": [],
        "clearedNominations": [],
        "candidates": {},
        "rejected": {},
    }
    if account is not None:
        account.complete()
        record["candidates"] = {
            name: {**_victims(found), "pdbViolations": found.pdb_violations}
            for name, found in account.candidates.items()
        }
        record["rejected"] = {name: _status(status) for name, status in account.rejected.items()}
        record["clearedNominations"] = _keys(account.cleared)
        if account.chosen is not None:
            record.update(_victims(account.chosen))
            record["evicted"] = _keys(account.chosen.evicted)
    return record


def _victims(found: Victims) -> dict[str, list[str]]:
    """The victims on a node, by name and most important first."""
    return {"victims": _keys(found.pods), IN_ORDER: [pod.key for pod in found.pods]}


def allocations_of(cluster: CaseCluster) -> dict[str, AllocationResult]:
    """The allocation of each claim; the claim for extended resources is keyed by its name prefix."""
    found: dict[str, AllocationResult] = {}
    for claim in cluster.list(ResourceClaim.kind):
        if claim.allocation is not None:
            found[claim.key] = claim.allocation
    return found


def note_claims(
    record: dict[str, Any],
    before: dict[str, AllocationResult],
    after: dict[str, AllocationResult],
) -> None:
    """Add the claims that were allocated or deallocated to the record of a pod."""
    made = {key: after[key] for key in after if key not in before}
    if made:
        record["allocations"] = {
            EXTENDED if "-extended-resources-" in key else key: _allocation(allocation)
            for key, allocation in made.items()
        }
    gone = sorted(key for key in before if key not in after)
    if gone and record.get("postFilter"):
        record["postFilter"]["deallocated"] = gone


def _allocation(allocation: AllocationResult) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(allocation))
    devices = [
        {name: value for name, value in result.items() if name in COMPARED}
        for result in told["devices"]["results"]
    ]
    return {"devices": devices, "nodeSelector": told.get("nodeSelector")}


def _keys(pods: Iterable[Pod]) -> list[str]:
    return sorted(pod.key for pod in pods)


PLAIN = ("preEnqueue", "host", "hostFromNomination", "fitError", "unschedulablePlugins", "message")
DEEP = ("filter", "scores", "totals", "postFilter", "allocations")
COMPARED = {"request", "driver", "pool", "device", "adminAccess", "consumedCapacity"}
EXTENDED = "<extended-resources>"


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Each field that differs: path, ours, theirs."""
    if ("error" in ours) != ("error" in theirs):
        yield "error", ours.get("error"), theirs.get("error")
        return
    if "error" in ours:
        return  # error texts are not compared
    if ours["preEnqueue"] or theirs["preEnqueue"]:
        yield from _differences("preEnqueue", ours["preEnqueue"], theirs["preEnqueue"])
        return
    for name in ("code", "plugin", "reasons", "nodeNames"):
        mine, other = ours["preFilter"][name], theirs["preFilter"][name]
        if mine != other:
            yield f"preFilter.{name}", mine, other
    for name in PLAIN:
        mine, other = ours.get(name), theirs.get(name)
        if (mine or None) != (other or None):
            yield name, mine, other
    for name in DEEP:
        yield from _differences(name, ours.get(name), theirs.get(name))


IGNORED = {"postFilter.plugin", "postFilter.reasons"}
IN_ORDER = "victimsInOrder"
"""Compared only where it is recorded: elsewhere the order of victims does not matter."""
NOTHING = "nothing"
"""Sentinel for a missing key, which differs from None: a feasible node has the verdict None."""


def _differences(path: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted((ours.keys() - {IN_ORDER}) | theirs.keys()):
            below = f"{path}.{key}"
            if below not in IGNORED:
                yield from _differences(below, ours.get(key, NOTHING), theirs.get(key, NOTHING))
    elif ours != theirs:
        yield path, ours, theirs
