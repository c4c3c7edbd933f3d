"""Conformance of long runs: one scheduler processes a recorded history, and each decision is compared.

A case is a cluster and a list of steps: pods are tried, objects are applied and deleted in between.
The scheduler is built once, receives every change through its event handlers, and does not explain,
so that its cached results decide. After a difference the history continues as recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bayplan.api.pod import Pod, PodCondition
from bayplan.api.pod_groups import GroupPreemptor
from bayplan.api.wire.decode import decode_object
from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.errors import InputError
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler import Attempt, FirstByName, build_scheduler

from .cases import Disagreement, case_config, case_gates
from .witness import Witness

FIRST_START = datetime(2026, 4, 1, tzinfo=UTC)
COMPARED = (
    "pod",
    "host",
    "hostTotal",
    "hostFromNomination",
    "feasible",
    "digest",
    "fitError",
    "postFilter",
)
Record = dict[str, Any]


def is_long_run(case: dict[str, Any]) -> bool:
    """Whether the case is a history with attempts."""
    expected = case.get("expected")
    return "steps" in case and "objects" in case and isinstance(expected, dict)


def run_long_run(case: dict[str, Any]) -> Iterator[tuple[str, list[Disagreement]]]:
    """For each attempt of the case, in order: the pod and the differences."""
    history = RecordedHistory(case)
    records = iter(case["expected"]["pods"])
    for number, step in enumerate(case["steps"]):
        if "apply" in step:
            history.apply(step["apply"])
        elif "delete" in step:
            history.delete(step["delete"])
        else:
            expected = next(records)
            ours = history.schedule(number, step["schedule"])
            history.go_on(number, expected)
            name = f"step {number}: {expected['pod']}"
            yield (
                name,
                [
                    Disagreement(case["id"], name, field, ours[field], expected[field])
                    for field in COMPARED
                    if ours[field] != expected[field]
                ],
            )


class RecordedCluster(MemoryCluster):
    """A cluster in which the scheduler's writes have no effect: the recording determines the events."""

    def bind(self, pod: Pod, node_name: str) -> None:
        pass

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        pass

    def clear_nomination(self, pod: Pod) -> None:
        pass

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        pass

    def put(self, obj: Any) -> Any:
        """Add or replace the object."""
        there = self.get(obj.kind, obj.namespace, obj.name)
        return self.add(obj) if there is None else self.update(obj)

    def existing(self, case: str, kind: str, namespace: str, name: str) -> Any:
        """The object of that name; InputError that names the case if there is none."""
        found = self.get(kind, namespace, name)
        if found is None:
            where = f'{case}: {kind} "{namespace}/{name}"'
            raise InputError(f"{where}: expected an object that is there; got none")
        return found


class RecordedHistory:
    """The cluster of a case, its scheduler, and the kinds of steps."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._case = case["id"]
        self._cluster = RecordedCluster()
        for obj in case["objects"]:
            self._cluster.add(decoded(obj))
        gates = case_gates(case)
        self._scheduler = build_scheduler(
            case_config(case["config"], gates),
            self._cluster,
            clock=ManualClock(),
            ties=FirstByName(),
            feature_gates=gates,
        )
        self._witness = Witness(self._scheduler)
        self._cluster.watch(self._scheduler)
        self._pod: Pod | None = None
        """The pod of the last attempt."""

    def apply(self, tree: dict[str, Any]) -> None:
        """Add or update an object."""
        self._cluster.put(decoded(tree))
        self._on_change(tree["kind"])

    def delete(self, wanted: dict[str, Any]) -> None:
        """Delete an object."""
        kind, namespace, name = wanted["kind"], wanted.get("namespace", ""), wanted["name"]
        self._cluster.delete(self._cluster.existing(self._case, kind, namespace, name))
        self._on_change(wanted["kind"])

    def _on_change(self, kind: str) -> None:
        if kind == "Node":
            self._witness.show_images()

    def schedule(self, number: int, tree: dict[str, Any]) -> Record:
        """One attempt at a new or retried pod; return our record of it.

        The totals are computed before the attempt or, every other time, after it was reverted: then
        the attempt has to update the caches.
        """
        pod = self._pod = self._cluster.put(decoded(tree))
        looks_first = number % 2 == 0
        totals = self._witness.totals(pod) if looks_first else None
        self._witness.forget()
        attempt = self._scheduler.schedule(QueuedPodInfo(pod, 0.0))
        if totals is None:
            if attempt.node_name:
                self._scheduler.cache.forget_pod(self._scheduler.cache.get_pod(pod))
            totals = self._witness.totals(pod)
        record = self._record(attempt, totals.kept)
        if totals.kept != totals.anew:
            record["digest"] = f"{record['digest']}, recomputed {digest(totals.anew)}"
        return record

    def go_on(self, number: int, expected: Record) -> None:
        """Apply the recorded result of the last attempt: the pod runs, or nominations are set or
        cleared."""
        pod = self._pod
        assert pod is not None, "an attempt comes first"
        if expected["host"] is not None:
            self._start(pod, expected["host"], number)
        else:
            if self._scheduler.cache.is_assumed(pod):
                self._scheduler.cache.forget_pod(self._scheduler.cache.get_pod(pod))
            came = expected["postFilter"] or {"nominatedNode": "", "clearedNominations": []}
            if came["nominatedNode"] is not None:
                self._nominate(pod.key, came["nominatedNode"])
            for key in came["clearedNominations"]:
                self._nominate(key, "")
        account = self._witness.preemption
        for touched in (pod, *(() if account is None else account.cleared)):
            # Our attempt may have cleared a nomination that remains.
            current = self._cluster.existing(self._case, "Pod", touched.namespace, touched.name)
            self._scheduler.queue.nominator.add(current)

    def _start(self, pod: Pod, host: str, number: int) -> None:
        start = FIRST_START + timedelta(seconds=number)
        status = replace(
            pod.status,
            phase="Running",
            nominated_node_name="",
            start_time=start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        self._cluster.update(pod.with_node(host).with_status(status))

    def _nominate(self, key: str, node_name: str) -> None:
        pod = self._cluster.existing(self._case, "Pod", *key.split("/"))
        self._cluster.update(pod.with_status(replace(pod.status, nominated_node_name=node_name)))

    def _record(self, attempt: Attempt, totals: dict[str, int]) -> Record:
        host = attempt.node_name or None
        record: Record = {
            "pod": attempt.pod.key,
            "host": host,
            "hostTotal": None,
            "hostFromNomination": attempt.from_nomination,
            "feasible": 0,
            "digest": None,
            "fitError": attempt.fit_error or None,
            "postFilter": self._post_filter(),
        }
        if host is not None:
            # A node used without scoring, as the only or the nominated one, still has a total.
            record["hostTotal"] = totals.get(host) if attempt.score is None else attempt.score
            record["feasible"] = len(totals) if attempt.from_nomination else attempt.feasible_nodes
            record["digest"] = digest(totals)
        elif not attempt.fit_error:
            record["fitError"] = attempt.message  # an error instead of a rejection
        return record

    def _post_filter(self) -> Record | None:
        if self._witness.post_filter is None:
            return None
        result, _ = self._witness.post_filter
        account = result.preemption
        chosen = None if account is None else account.chosen
        return {
            "nominatedNode": result.nominated_node_name,
            "victims": [] if chosen is None else sorted(pod.key for pod in chosen.pods),
            "evicted": [] if chosen is None else sorted(pod.key for pod in chosen.evicted),
            "clearedNominations": [] if account is None else sorted(p.key for p in account.cleared),
        }


def digest(totals: dict[str, int]) -> str:
    """The totals by node name as a digest of sixteen letters."""
    lines = "".join(f"{name}={totals[name]}\n" for name in sorted(totals))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def decoded(tree: dict[str, Any]) -> Any:
    """The object without a version, so that the cluster assigns one."""
    return decode_object({**tree, "metadata": {**tree["metadata"], "resourceVersion": ""}})
