"""Repairing: move pods from nodes that the filters would reject today.

Labels and taints change and pods come and go, so an earlier placement may violate the rules now. A
cordon is no reason to move: pods on cordoned nodes stay until a drain.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.taints import Toleration
from ...framework import Status
from ...scheduler import Inquiry
from ..owners import is_daemon, is_static, is_there
from .moving import Mover
from .plan import Move

CORDON = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")


def misplaced_pods(mover: Mover) -> dict[str, tuple[Pod, str]]:
    """The pods that their own nodes would reject today, by key, with reasons; without daemons and
    static pods."""
    return {
        pod.key: (pod, status.message)
        for pod in _suspects(mover)
        if not (status := _status_at_home(mover, pod)).is_success
    }


def repairing_moves(mover: Mover, most: int) -> Iterator[Move]:
    """Moves that reduce the number of misplaced pods, one after the other."""
    misplaced = misplaced_pods(mover)
    given_up: set[str] = set()
    left = most
    while left:
        candidates = (
            (pod, why)
            for key, (pod, why) in misplaced.items()
            if key not in given_up and mover.is_movable(pod)
        )
        pod, why = next(candidates, (None, ""))
        if pod is None:
            return
        target = _move(mover, pod)
        now = misplaced_pods(mover) if target is not None else misplaced
        if target is None or len(now) >= len(misplaced):
            given_up.add(pod.key)
            if target is not None:
                mover.put_back([(pod, pod.node_name)])
            continue
        before, after = float(len(misplaced)), float(len(now))
        yield Move(pod.key, pod.node_name, target, before, after, target, why)
        misplaced, left = now, left - 1


def _move(mover: Mover, pod: Pod) -> str | None:
    """Place the pod where the scheduler would, excluding its own node; None when no other node
    accepts it."""
    source = mover.table.row_of[pod.node_name]
    with mover.lifted(pod) as waiting:
        rows = mover.landing_rows(waiting, source)
        if not len(rows):
            return None
        best = [row for row in sorted(mover.best_rows(waiting)) if row != source]
        row = best[0] if best else int(rows[0])
        mover.put(waiting, row)
    return mover.table.names[row]


def _suspects(mover: Mover) -> list[Pod]:
    """Candidates for misplaced pods, found per pod class: a pod whose node would accept a copy is not
    one.

    Requests for resources and ports are ignored, since the pod itself holds them; all pods of an
    overcommitted node are candidates.
    """
    table = mover.table
    refusing: dict[object, set[int]] = {}
    overfull = _overfull_rows(mover)
    found = []
    for pod in list(mover.pods()):
        if is_daemon(pod) or is_static(pod) or not is_there(pod):
            continue
        if pod.scheduler_name not in mover.scheduler.profiles:
            continue
        kind = pod.pod_class, pod.spec
        if kind not in refusing:
            probe = pod.replace(uid="rebalance/probe", name="probe", node_name="")
            accepted = Inquiry(mover.scheduler, probe.with_spec(_light(pod.spec))).rows
            everywhere = set(table.numbers(table.live_rows).tolist())
            refusing[kind] = everywhere - set(table.numbers(accepted).tolist())
        row = table.row_of[pod.node_name]
        if row in overfull or row in refusing[kind]:
            found.append(pod)
    return found


def _overfull_rows(mover: Mover) -> set[int]:
    table = mover.table
    rows = set((table.pod_count > table.max_pods).nonzero()[0].tolist())
    for name in table.requested:
        rows |= set((table.requested[name] > table.allocatable[name]).nonzero()[0].tolist())
    return rows


def _status_at_home(mover: Mover, pod: Pod) -> Status:
    """The rejections of the pod by its own node, as if it were new."""
    row = mover.table.row_of[pod.node_name]
    with mover.lifted(pod) as waiting:
        probe = waiting.with_spec(_uncordoned(waiting.spec))
        return Inquiry(mover.scheduler, probe).diagnosis.status_of(row)


def _light(spec: PodSpec) -> PodSpec:
    """The spec without requests and ports, tolerating a cordon."""
    containers = tuple(replace(c, resources=None, ports=None) for c in spec.containers or ())
    changes = {
        "containers": containers,
        "init_containers": None,
        "overhead": None,
        "resources": None,
    }
    return replace(_uncordoned(spec), **changes)


def _uncordoned(spec: PodSpec) -> PodSpec:
    return replace(spec, tolerations=(*(spec.tolerations or ()), CORDON))
