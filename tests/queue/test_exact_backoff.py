"""Feature gate SchedulerPopFromBackoffQ: attempts during backoff, the end of backoff, the time of PreEnqueue."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.framework import SUCCESS, ActionType, ClusterEvent, Status, unresolvable
from bayplan.framework.events import NODE
from bayplan.queue.backoff import QueueSettings
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.releases.feature_gates import FeatureGates
from bayplan.testing.builders import make_pod

NODE_ADDED = ClusterEvent(NODE, ActionType.Add)


class Bench:
    """A queue with one plugin that waits for nodes, and with a gate that a test can close."""

    def __init__(self, pops_from_backoff: bool) -> None:
        gates = FeatureGates({"SchedulerPopFromBackoffQ": pops_from_backoff})
        self.clock = ManualClock()
        self.clock.advance(0.25)
        self.gated: list[str] = []
        self.is_closed = False
        self.queue = SchedulingQueue(
            self.clock,
            lambda info: (-info.pod.priority, info.timestamp),
            self._gate,
            hints={"default-scheduler": [(NODE_ADDED, "Fit", None)]},
            settings=QueueSettings(gates=gates),
        )

    def _gate(self, pod: Pod) -> Status:
        self.gated.append(pod.name)
        return unresolvable("closed").by("Gate") if self.is_closed else SUCCESS

    def reject(self, *names: str, priorities: tuple[int, ...] = ()) -> None:
        """Let pods be rejected, and let an event bring them into backoff."""
        for i, name in enumerate(names):
            priority = priorities[i] if priorities else 0
            self.queue.add(make_pod(name, uid=name, priority=priority))
            info = self.pop()
            assert info is not None
            info.set_rejectors(("Fit",))
            self.queue.add_unschedulable_if_not_present(info)
            self.queue.move_all_to_active_or_backoff(NODE_ADDED, None, None)
            self.clock.advance(0.1)

    def pop(self) -> QueuedPodInfo | None:
        return self.queue.pop()

    def wait(self) -> float:
        """Advance to the next flush and run it; returns the seconds until then."""
        due = self.queue.next_timer()
        assert due is not None
        seconds = due - self.clock.monotonic()
        self.clock.advance(seconds)
        self.queue.flush_due()
        return round(seconds, 6)


@pytest.mark.parametrize(
    ("is_on", "popped"),
    [
        pytest.param(True, "p", id="on: a pod that backs off is tried when no other is ready"),
        pytest.param(False, None, id="off: backoff is waited for"),
    ],
)
def test_pods_that_back_off_are_popped(is_on: bool, popped: str | None) -> None:
    bench = Bench(is_on)
    bench.reject("p")

    info = bench.pop()

    assert (info.pod.name if info else None) == popped


@pytest.mark.parametrize(
    ("is_on", "seconds"),
    [
        # Rejected at 0.25 s after the full second, with a backoff of 1 s, and 0.1 s later now.
        pytest.param(True, 1.65, id="on: with the whole second in which backoff ends"),
        pytest.param(False, 1.9, id="off: at the first flush after the exact end"),
    ],
)
def test_when_backoff_ends(is_on: bool, seconds: float) -> None:
    bench = Bench(is_on)
    bench.reject("p")

    assert bench.wait() == seconds
    assert "default/p" in bench.queue.active.heap


def test_off_a_flush_between_two_ticks_releases_nothing() -> None:
    bench = Bench(False)
    bench.reject("p")
    bench.clock.advance(1.5)

    assert bench.queue.flush_due() == 0
    bench.clock.advance(0.4)
    assert bench.queue.flush_due() == 1


@pytest.mark.parametrize(
    ("is_on", "order"),
    [
        pytest.param(True, ["high", "low"], id="on: within a second by priority"),
        pytest.param(False, ["low", "high"], id="off: by the end of the backoff"),
    ],
)
def test_the_order_in_which_pods_leave_backoff(is_on: bool, order: list[str]) -> None:
    bench = Bench(is_on)
    bench.reject("low")
    bench.clock.advance(0)
    info = QueuedPodInfo(make_pod("high", uid="high", priority=9), bench.clock.timestamp())
    info.set_rejectors(("Fit",))
    bench.queue.add_unschedulable_if_not_present(info)
    bench.queue.move_all_to_active_or_backoff(NODE_ADDED, None, None)

    heap = bench.queue.backoff.rejected
    found = [heap.pop(), heap.pop()]

    assert [info.pod.name for info in found if info] == order


@pytest.mark.parametrize(
    ("is_on", "part"),
    [
        pytest.param(True, "unschedulable", id="on: PreEnqueue holds the pod before its backoff"),
        pytest.param(False, "backoff", id="off: it backs off first"),
    ],
)
def test_when_pre_enqueue_runs(is_on: bool, part: str) -> None:
    bench = Bench(is_on)
    bench.queue.add(make_pod("p", uid="p"))
    info = bench.pop()
    assert info is not None
    info.set_rejectors(("Fit",))
    bench.queue.add_unschedulable_if_not_present(info)
    bench.is_closed = True
    bench.gated.clear()

    bench.queue.move_all_to_active_or_backoff(NODE_ADDED, None, None)

    assert bench.gated == (["p"] if is_on else [])
    parts: dict[str, Any] = {
        "backoff": bench.queue.backoff,
        "unschedulable": bench.queue.unschedulable,
    }
    assert [name for name, pods in parts.items() if "default/p" in pods] == [part]
    if not is_on:
        bench.wait()
        assert bench.gated == ["p"]
        assert "default/p" in bench.queue.unschedulable


@pytest.mark.parametrize("is_on", [True, False])
def test_activation_ends_backoff(is_on: bool) -> None:
    bench = Bench(is_on)
    bench.reject("p")
    bench.gated.clear()

    bench.queue.activate([make_pod("p", uid="p")])

    assert "default/p" in bench.queue.active.heap
    assert bench.gated == ([] if is_on else ["p"])
