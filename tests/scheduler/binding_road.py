"""Plugins at every extension point of a binding, and a record of their calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.api.pod import Pod
from bayplan.framework import unschedulable
from bayplan.framework.events import ActionType, EventWithHint, Hint, wait_for
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario, Scripted

UNDONE = [("Second", "unreserve"), ("First", "unreserve")]


class First(Scripted):
    name = "First"

    def events_to_register(self) -> Sequence[EventWithHint]:
        def for_rivals(pod: Pod, old: Any, new: Any) -> Hint:
            return Hint.QUEUE if pod.name == "rival" else Hint.SKIP

        return (wait_for("Pod", ActionType.Delete, for_rivals),)


class Second(First):
    name = "Second"


PROFILE = {
    "plugins": {
        "multiPoint": {"enabled": [{"name": "First"}, {"name": "Second"}]},
        "bind": {"enabled": [{"name": "First"}, {"name": "Second"}]},  # before DefaultBinder
    }
}


class Road(Scenario):
    """Two scripted plugins in one profile; `rival` was refused before.

    It would like the room of `p`, and is the more important: that a nomination ends does not concern it.
    """

    def __init__(self) -> None:
        super().__init__(make_node("a"), make_node("b"), profile=PROFILE, plugins=(First, Second))
        self.first, self.second = self.plugin(First), self.plugin(Second)
        self.second.journal = self.first.journal
        assert self.first.handle.pre_binding is not None
        self.pre_binding = self.first.handle.pre_binding
        self.first.answers["permit"] = unschedulable("not now")
        self.add(make_pod("rival", cpu="2", priority=1))
        self.run()
        self.first.answers.clear()
        self.first.journal.clear()
        assert self.part_of("rival") == "unschedulable"

    def pass_time(self, seconds: float) -> None:
        """Let timers fire; no pod is tried."""
        self.clock.advance(seconds)
        self.scheduler.run_timers()

    def calls(self, name: str = "p") -> list[tuple[str, str]]:
        return [(plugin, point) for plugin, point, pod in self.first.journal if pod == name]

    def table(self) -> dict[str, Any]:
        """Pods on each node."""
        table = self.scheduler.cache.table
        return {
            name: (table.requested.at(row), int(table.pod_count[row]), set(table.pods[row]))
            for name, row in table.row_of.items()
        }


# The bad ends


@dataclass
class Trouble:
    """The fault, and its remains."""

    answers: dict[str, Any]
    message: str
    reason: str = "SchedulerError"
    rejectors: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    meanwhile: Callable[[Road], Any] = lambda road: None
    last: str = ""
    """The last call of a plugin before the undoing."""


def check_undone(road: Road, trouble: Trouble, table: dict[str, Any]) -> None:
    """The pod is back in the queue, without other traces of its node."""
    queue, pod = road.scheduler.queue, road.pod("p")
    assert road.calls()[-2:] == UNDONE
    assert [call for call in road.calls() if call[1] == "unreserve"] == UNDONE
    assert ("First", "post_bind") not in road.calls()
    if trouble.last:
        assert road.calls()[-3][1] == trouble.last, "nothing is called after the failure"

    assert not road.scheduler.cache.has_pod(pod)
    assert road.table() == table
    assert len(road.scheduler.waiting_pods) == 0
    assert not road.pre_binding.cancel(pod.uid, "nothing is left to cancel")
    assert len(queue.in_flight) == 0

    info = queue.get(pod)
    assert info is not None
    assert (info.unschedulable_plugins, info.pending_plugins) == (
        trouble.rejectors,
        trouble.waiting,
    )
    assert info.pod is pod, "the queue has what the cluster has"
    assert road.part_of("p") == ("unschedulable" if trouble.rejectors else "backoff")
    assert (info.unschedulable_count, info.consecutive_errors_count) == (
        (1, 0) if trouble.rejectors else (0, 1)
    )

    assert (pod.nominated_node_name, queue.nominator.node_of(pod)) == ("", "")
    (condition,) = pod.status.conditions or ()
    assert (condition.type, condition.status) == ("PodScheduled", "False")
    assert (condition.reason, condition.message) == (trouble.reason, trouble.message)
    (event,) = road.events_of("p")
    assert (event.type, event.reason, event.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert event.note == trouble.message
    assert [attempt.message for attempt in road.ended[1:]] == [trouble.message]
