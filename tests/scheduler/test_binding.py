"""The binding cycle: after any failure past the choice of the node, all steps are undone."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.errors import ApiError
from bayplan.framework import SKIP, SUCCESS, Status, failure, wait
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_pod
from tests.rig.scenarios import DelayedResult
from tests.scheduler.binding_road import UNDONE, Road, Trouble, check_undone

pytestmark = pytest.mark.usefixtures("plugins_are_in_tree")

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
    """The release is announced after the pod is back, and not to it."""
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
