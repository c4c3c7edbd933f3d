"""Bench of events: what it costs that something happens in the cluster while many pods wait.

Requeueing is not polling: an event that no plugin waits for on behalf of a pod must not even look at the pod.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..api.decode import decode_object
from .bench import Bench, in_own_process
from .workloads import plain_node, plain_pod

ACCELERATOR = "example.com/accelerator"
WAIT_FOR_TPU = 100
USELESS_EVENTS = 1000
USEFUL_EVENTS = 20
CROWDED_EVENTS = 2


@dataclass(frozen=True, slots=True)
class EventRun:
    """What one kind of event costs, on average."""

    event: str
    waiting: int
    events: int
    us_per_event: float
    moved_per_event: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_events(nodes: int, pods: int) -> list[EventRun]:
    """Measure each kind of event in a process of its own."""
    return [
        *in_own_process(measure_events, nodes, pods),
        in_own_process(measure_crowd, nodes, pods),
    ]


def measure_events(nodes: int, pods: int) -> list[EventRun]:
    """Most pods wait for a node with a GPU, some for one with a TPU: plain pods go, then nodes with a TPU come."""
    bench = Bench()
    bench.add(decode_object(plain_node(number)) for number in range(nodes))
    bench.add(decode_object(_running(number, nodes)) for number in range(USELESS_EVENTS))
    bench.add(decode_object(_choosy(number)) for number in range(pods))
    bench.schedule_all()
    useless = [_delete(bench, f"running-{number:06d}") for number in range(USELESS_EVENTS)]
    useful = [_add_tpu_node(bench, number) for number in range(USEFUL_EVENTS)]
    return [
        _summary("a pod goes, all wait for a GPU or TPU node", pods, useless),
        _summary(f"a TPU node comes, {WAIT_FOR_TPU} wait for one", pods, useful),
    ]


def measure_crowd(nodes: int, pods: int) -> EventRun:
    """All pods wait for room: every pod that goes is worth a try of each, as in kube-scheduler."""
    bench = Bench()
    bench.add(decode_object(plain_node(number)) for number in range(nodes))
    bench.add(decode_object(_running(number, nodes)) for number in range(CROWDED_EVENTS))
    bench.add(decode_object(_huge(number)) for number in range(pods))
    bench.schedule_all()
    measured = [_delete(bench, f"running-{number:06d}") for number in range(CROWDED_EVENTS)]
    return _summary("a pod goes, all wait for room", pods, measured)


def _delete(bench: Bench, name: str) -> tuple[float, int]:
    pod: Any = bench.cluster.get("Pod", "default", name)
    before, start = _waiting(bench), time.perf_counter()
    bench.cluster.delete(pod)
    return _measured(bench, before, start)


def _add_tpu_node(bench: Bench, number: int) -> tuple[float, int]:
    node = plain_node(900_000 + number)
    node["metadata"]["labels"][ACCELERATOR] = "tpu"
    node["status"]["allocatable"]["pods"] = "1"
    added: Any = decode_object(node)
    before, start = _waiting(bench), time.perf_counter()
    bench.cluster.add(added)
    return _measured(bench, before, start)


def _waiting(bench: Bench) -> int:
    return len(bench.scheduler.queue.unschedulable)


def _measured(bench: Bench, before: int, start: float) -> tuple[float, int]:
    """Seconds since `start`, and how many pods were moved; these are tried before the next event."""
    seconds = time.perf_counter() - start
    moved = before - _waiting(bench)
    bench.schedule_all()
    return seconds, moved


def _summary(event: str, waiting: int, measured: Iterable[tuple[float, int]]) -> EventRun:
    seconds, moved = zip(*measured, strict=True)
    return EventRun(
        event=event,
        waiting=waiting,
        events=len(seconds),
        us_per_event=round(1e6 * sum(seconds) / len(seconds), 1),
        moved_per_event=round(sum(moved) / len(moved), 1),
    )


def _running(number: int, nodes: int) -> dict[str, Any]:
    pod = plain_pod(number)
    pod["metadata"]["name"] = f"running-{number:06d}"
    pod["spec"]["nodeName"] = f"node-{number % nodes:06d}"
    return pod


def _choosy(number: int) -> dict[str, Any]:
    """Wants a node with a GPU, or one of the first with a TPU; there is none yet."""
    pod = plain_pod(number)
    pod["spec"]["nodeSelector"] = {ACCELERATOR: "tpu" if number < WAIT_FOR_TPU else "gpu"}
    return pod


def _huge(number: int) -> dict[str, Any]:
    """Wants more than any node has."""
    pod = plain_pod(number)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "33"
    return pod
