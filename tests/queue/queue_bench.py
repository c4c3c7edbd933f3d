"""A scheduling queue with its clock, pods and plugins' events."""

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.framework import SUCCESS, Status, unresolvable
from bayplan.framework.events import NODE, POD, ActionType, ClusterEvent, Hint
from bayplan.queue.backoff import QueueSettings
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.testing.builders import make_pod

GATES_GONE = ClusterEvent(POD, ActionType.UpdatePodSchedulingGatesEliminated)


class Bench:
    """A queue with three rejecting plugins: Fit registers new nodes, Choosy has a hint for pods,
    Gates gates."""

    def __init__(self, settings: QueueSettings | None = None) -> None:
        self.clock = ManualClock()
        self.asked: list[str] = []
        self.gated: list[str] = []
        self.answer = Hint.SKIP
        self.queue = SchedulingQueue(
            self.clock,
            lambda info: (-info.pod.priority, info.timestamp),
            self._gate,
            hints={
                "default-scheduler": [
                    (ClusterEvent(NODE, ActionType.Add), "Fit", None),
                    (ClusterEvent(POD, ActionType.All), "Choosy", self._choose),
                    (GATES_GONE, "SchedulingGates", None),
                ]
            },
            settings=settings,
        )

    def _choose(self, pod: Pod, old: object, new: object) -> Hint:
        self.asked.append(pod.name)
        return self.answer

    def _gate(self, pod: Pod) -> Status:
        self.gated.append(pod.name)
        gated = unresolvable("waiting for scheduling gates: []").by("SchedulingGates")
        return gated if pod.spec.scheduling_gates else SUCCESS

    def add(self, *names: str) -> None:
        for name in names:
            self.queue.add(make_pod(name, uid=name))
            self.clock.advance(0.001)

    def pop(self) -> QueuedPodInfo:
        info = self.queue.pop()
        assert info is not None, "a pod was expected to be ready"
        return info

    def fail(self, *rejectors: str, pending: tuple[str, ...] = ()) -> QueuedPodInfo:
        """Pop the next pod and requeue it."""
        info = self.pop()
        self.give_back(info, *rejectors, pending=pending)
        return info

    def give_back(
        self, info: QueuedPodInfo, *rejectors: str, pending: tuple[str, ...] = ()
    ) -> str | None:
        info.set_rejectors(rejectors, pending)
        return self.queue.add_unschedulable_if_not_present(info)

    def on(self, event: ClusterEvent, new: object = None) -> int:
        return self.queue.move_all_to_active_or_backoff(event, None, new)

    def where(self, name: str) -> str:
        """The part of the queue that has a pod."""
        queue, key = self.queue, f"default/{name}"
        places = {
            "active": key in queue.active.heap,
            "backoff": key in queue.backoff.rejected,
            "error backoff": key in queue.backoff.errors,
            "unschedulable": key in queue.unschedulable,
            "in flight": name in queue.in_flight,
        }
        return ", ".join(place for place, is_here in places.items() if is_here)


def gated_pod(name: str = "p") -> Pod:
    return make_pod(name, uid=name, gates=["wait"])
