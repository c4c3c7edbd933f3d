"""The binding cycle: whatever goes wrong after the node is chosen, it is undone as if it had not been."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.errors import ApiError
from bayplan.framework import (
    SKIP,
    SUCCESS,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
    wait,
)
from bayplan.framework.events import ActionType, EventWithHint, Hint, wait_for
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import DelayedResult, Scenario, Scripted
from tests.runtime.in_tree import _plugins_are_in_tree  # noqa: F401

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
        """What is on each node."""
        table = self.scheduler.cache.table
        return {
            name: (table.requested.at(row), int(table.pod_count[row]), set(table.pods[row]))
            for name, row in table.row_of.items()
        }


# The good end


def test_every_point_is_called_once_and_in_order() -> None:
    road = Road()

    road.add(make_pod("p"))
    (attempt,) = road.run()

    assert (attempt.outcome, attempt.node_name) == (Outcome.BOUND, "a")
    assert road.calls() == [
        (plugin, point)
        for point in ("reserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind", "post_bind")
        for plugin in ("First", "Second")
    ]
    assert road.part_of("p") == "bound"
    assert [event.reason for event in road.events_of("p")] == ["Scheduled"]
    assert len(road.scheduler.queue.in_flight) == 0


def test_the_first_bind_plugin_that_does_not_skip_binds() -> None:
    road = Road()

    def bind(pod: Pod) -> Status:
        road.cluster.bind(pod, pod.node_name)
        return SUCCESS

    road.first.answers["bind"] = bind
    road.add(make_pod("p"))
    road.run()

    assert road.part_of("p") == "bound"
    assert ("Second", "bind") not in road.calls()


def test_binding_runs_beside_the_next_pods() -> None:
    road = Road()
    road.first.answers["pre_bind"] = lambda pod: DelayedResult(5) if pod.name == "p" else SUCCESS
    road.add(make_pod("p"), make_pod("q"))

    attempts = road.run()

    assert [attempt.outcome for attempt in attempts] == [Outcome.BINDING, Outcome.BOUND]
    assert (road.part_of("p"), road.part_of("q")) == ("assumed", "bound")
    road.advance(5)
    assert road.part_of("p") == "bound"
    assert attempts[0].outcome is Outcome.BOUND
    assert [attempt.pod.name for attempt in road.ended] == ["rival", "q", "p"]


def test_a_pod_that_waits_is_bound_when_allowed() -> None:
    road = Road()
    road.first.answers["permit"] = (wait("a moment"), 30)
    road.second.answers["permit"] = (wait("me too"), 60)
    road.add(make_pod("p"))

    (attempt,) = road.run()

    assert attempt.outcome is Outcome.WAITING
    assert road.part_of("p") == "waiting"
    waiting = road.scheduler.waiting_pods.get(road.pod("p").uid)
    assert waiting is not None
    waiting.allow("First")
    road.advance(45)
    assert road.part_of("p") == "waiting", "the timer of First ended with its permission"
    waiting.allow("Second")
    assert road.part_of("p") == "bound"
    road.advance(100)
    assert road.part_of("p") == "bound"
    assert ("First", "unreserve") not in road.calls()


# The bad ends


@dataclass
class Trouble:
    """What goes wrong, and what is left of it."""

    answers: dict[str, Any]
    message: str
    reason: str = "SchedulerError"
    rejectors: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    meanwhile: Callable[[Road], Any] = lambda road: None
    last: str = ""
    """The last call of a plugin before the undoing."""


def says_no(point: str) -> Trouble:
    return Trouble(
        {point: unresolvable("no")},
        "0/1 nodes are available: 1 no.",
        "Unschedulable",
        rejectors={"First"},
        last=point,
    )


def waits_then(meanwhile: Callable[[Road], Any], message: str, *rest: Any) -> Trouble:
    answers = {"permit": (wait("a moment"), 30)}
    return Trouble(answers, message, *rest, meanwhile=meanwhile, last="pre_bind_pre_flight")


def decide(how: str) -> Callable[[Road], None]:
    def do(road: Road) -> None:
        waiting = road.scheduler.waiting_pods.get("default/p")
        assert waiting is not None
        assert getattr(waiting, how)("Second", "made room")

    return do


IN_CYCLE = [
    pytest.param(says_no("reserve"), id="Reserve rejects"),
    pytest.param(
        Trouble({"reserve": failure("broken")}, 'running Reserve plugin "First": broken'),
        id="Reserve errs",
    ),
    pytest.param(
        Trouble({"reserve": RuntimeError("boom")}, 'running Reserve plugin "First": boom'),
        id="Reserve raises",
    ),
    pytest.param(
        Trouble({"reserve": wait("?")}, 'running Reserve plugin "First": ?'),
        id="Reserve says something odd",
    ),
    pytest.param(says_no("permit"), id="Permit denies"),
    pytest.param(
        Trouble(
            {"permit": pending("later")},
            "0/1 nodes are available: 1 later.",
            "Unschedulable",
            rejectors={"First"},
            waiting={"First"},
        ),
        id="Permit is pending",
    ),
    pytest.param(
        Trouble({"permit": failure("broken")}, 'running Permit plugin "First": broken'),
        id="Permit errs",
    ),
    pytest.param(
        Trouble({"permit": RuntimeError("boom")}, 'running Permit plugin "First": boom'),
        id="Permit raises",
    ),
]

IN_BINDING = [
    pytest.param(
        waits_then(
            lambda road: road.pass_time(30),
            "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin First.",
            "Unschedulable",
            {"First"},
        ),
        id="no plugin allows it in time",
    ),
    pytest.param(
        waits_then(
            decide("reject"),
            "0/1 nodes are available: 1 made room.",
            "Unschedulable",
            {"Second"},
        ),
        id="it is rejected while it waits",
    ),
    pytest.param(
        waits_then(decide("preempt"), "waiting on permit for pod: made room"),
        id="it is preempted while it waits",
    ),
    pytest.param(
        Trouble(
            {"pre_bind_pre_flight": failure("broken")},
            'running PreBindPreFlight "First": broken',
            last="pre_bind_pre_flight",
        ),
        id="PreBindPreFlight errs",
    ),
    pytest.param(
        Trouble(
            {"pre_bind_pre_flight": RuntimeError("boom")},
            'running PreBindPreFlight "First": boom',
            last="pre_bind_pre_flight",
        ),
        id="PreBindPreFlight raises",
    ),
    pytest.param(
        Trouble(
            {"pre_bind_pre_flight": unschedulable("no")},
            'PreBindPreFlight First returned "Unschedulable", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status",
            last="pre_bind_pre_flight",
        ),
        id="PreBindPreFlight rejects",
    ),
    # Past Permit nothing makes a pod unschedulable: it has no rejectors, and is tried again.
    pytest.param(
        Trouble({"pre_bind": unschedulable("no")}, "no", "Unschedulable", last="pre_bind"),
        id="PreBind rejects",
    ),
    pytest.param(
        Trouble({"pre_bind": failure("broken")}, 'running PreBind plugin "First": broken'),
        id="PreBind errs",
    ),
    pytest.param(
        Trouble({"pre_bind": RuntimeError("boom")}, 'running PreBind plugin "First": boom'),
        id="PreBind raises",
    ),
    pytest.param(
        Trouble({"pre_bind": DelayedResult(5, unschedulable("no"))}, "no", "Unschedulable"),
        id="PreBind rejects after a while",
    ),
    pytest.param(
        Trouble(
            {"pre_bind": DelayedResult(5, RuntimeError("boom"))},
            'running PreBind plugin "First": boom',
        ),
        id="PreBind raises after a while",
    ),
    pytest.param(
        Trouble(
            {"pre_bind": DelayedResult(5)},
            'running PreBind plugin "First": context canceled',
            meanwhile=lambda road: road.pre_binding.cancel("default/p", "made room for another"),
        ),
        id="it is preempted during PreBind",
    ),
    pytest.param(
        Trouble({"bind": failure("broken")}, 'running Bind plugin "First": broken', last="bind"),
        id="Bind errs",
    ),
    pytest.param(
        Trouble({"bind": unschedulable("no")}, "no", "Unschedulable", last="bind"),
        id="Bind rejects",
    ),
    pytest.param(
        Trouble(
            {"bind": DelayedResult(5, RuntimeError("boom"))}, 'running Bind plugin "First": boom'
        ),
        id="Bind raises after a while",
    ),
    pytest.param(
        Trouble(
            {"bind": DelayedResult(5, failure("timed out"))},
            'running Bind plugin "First": timed out',
        ),
        id="Bind errs after a while",
    ),
]


def check_undone(road: Road, trouble: Trouble, table: dict[str, Any]) -> None:
    """The pod is back in the queue, and nothing else tells that it had a node."""
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


@pytest.mark.parametrize("trouble", IN_CYCLE)
def test_a_failure_in_the_scheduling_cycle_is_undone(trouble: Trouble) -> None:
    road = Road()

    table = road.table()
    road.first.answers.update(trouble.answers)
    road.add(make_pod("p", cpu="2", nominated_node_name="a"))
    road.scheduler.schedule_one()

    check_undone(road, trouble, table)
    assert road.part_of("rival") == "unschedulable", "no other pod could have used its room"


@pytest.mark.parametrize("trouble", IN_BINDING)
def test_a_failure_in_the_binding_cycle_is_undone_and_others_are_told(trouble: Trouble) -> None:
    road = Road()
    table = road.table()
    road.first.answers.update(trouble.answers)
    road.add(make_pod("p", cpu="2", nominated_node_name="a"))
    road.scheduler.schedule_one()
    trouble.meanwhile(road)
    if isinstance(trouble.answers.get("pre_bind", trouble.answers.get("bind")), DelayedResult):
        assert road.part_of("p") == "assumed"
        assert road.table() != table
        assert road.part_of("rival") == "unschedulable"
        road.pass_time(5)

    check_undone(road, trouble, table)
    assert road.part_of("rival") in ("active", "backoff"), "there may be room now"


def test_a_pod_preempted_during_pre_bind_gives_its_room_back_at_once() -> None:
    road = Road()
    road.first.answers["pre_bind"] = DelayedResult(600)
    road.add(make_pod("p", cpu="2"))
    road.scheduler.schedule_one()

    assert road.pre_binding.cancel("default/p", "made room for another")
    road.pass_time(0)

    assert (road.part_of("p"), road.part_of("rival")) == ("backoff", "backoff")
    assert ("Second", "pre_bind") not in road.calls(), "PreBind does not go on"


def test_pre_bind_that_ends_well_after_it_was_cancelled_binds_nothing() -> None:
    road = Road()

    def stop(pod: Pod) -> Status:
        road.pre_binding.cancel(pod.uid, "made room for another")
        return SUCCESS

    road.second.answers["pre_bind"] = stop
    road.add(make_pod("p"))
    attempt = road.run()[0]

    assert attempt.message == "made room for another"
    assert ("First", "bind") not in road.calls()


def test_a_bind_that_the_cluster_refuses_is_undone() -> None:
    road = Road()
    table, bind = road.table(), road.cluster.bind

    def refuse(pod: Pod, node_name: str) -> None:
        raise ApiError("no route to host")

    road.cluster.bind = refuse
    road.add(make_pod("p", cpu="2", nominated_node_name="a"))
    road.scheduler.schedule_one()

    text = 'running Bind plugin "DefaultBinder": no route to host'
    check_undone(road, Trouble({}, text), table)
    assert road.part_of("rival") in ("active", "backoff")

    road.cluster.bind = bind
    road.settle()
    assert (road.part_of("p"), road.part_of("rival")) == ("bound", "bound")


def test_a_pod_that_was_rejected_is_not_moved_by_its_own_release() -> None:
    """The release is told after the pod is back, and not to it."""
    road = Road()
    road.first.answers["permit"] = (wait("a moment"), 30)
    road.add(make_pod("p", cpu="2"))
    road.run()

    road.advance(30)

    assert road.part_of("p") == "unschedulable"


def test_after_an_error_the_pod_is_tried_again_and_bound() -> None:
    road = Road()
    answers = iter([DelayedResult(2, failure("once")), RuntimeError("twice"), SUCCESS])
    road.first.answers["pre_bind"] = lambda pod: next(answers) if pod.name == "p" else SUCCESS
    road.add(make_pod("p"))

    road.settle()

    assert road.part_of("p") == "bound"
    messages = [attempt.message for attempt in road.ended if attempt.pod.name == "p"]
    plugin = 'running PreBind plugin "First": '
    assert messages == [f"{plugin}once", f"{plugin}twice", ""]
    assert [call for call in road.calls() if call[1] == "unreserve"] == UNDONE * 2


# nominatedNodeName, for those who watch


@pytest.mark.parametrize(
    ("answers", "nominated"),
    [
        pytest.param(
            {"pre_bind_pre_flight": SKIP, "bind": DelayedResult(5, SKIP)},
            "",
            id="only Bind takes time",
        ),
        pytest.param({"pre_bind": DelayedResult(5)}, "a", id="PreBind has work"),
        pytest.param(
            {"pre_bind_pre_flight": SKIP, "permit": (wait("a moment"), 5)}, "a", id="Permit waits"
        ),
    ],
)
def test_the_node_is_announced_when_binding_takes_time(
    answers: dict[str, Any], nominated: str
) -> None:
    road = Road()
    road.first.answers.update(answers)
    road.second.answers["pre_bind_pre_flight"] = SKIP
    road.add(make_pod("p"))

    road.scheduler.schedule_one()

    assert road.pod("p").nominated_node_name == nominated
    assert road.scheduler.queue.nominator.node_of(road.pod("p")) == "", "it is assumed already"
    assert road.part_of("p") in ("waiting", "assumed")
    road.advance(5)
    assert road.part_of("p") != "assumed"


def test_an_announcement_that_the_cluster_refuses_is_no_obstacle() -> None:
    road = Road()

    def refuse(*args: Any) -> None:
        raise ApiError("no route to host")

    road.cluster.patch_status = refuse
    road.add(make_pod("p"))
    road.run()

    assert road.part_of("p") == "bound"
