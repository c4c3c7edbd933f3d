"""Failures on the way to a binding: every step is undone, and other pods are notified."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.framework import failure, unresolvable, unschedulable, wait
from bayplan.framework.status import pending
from bayplan.testing.builders import make_pod
from tests.rig.scenarios import DelayedResult
from tests.scheduler.binding_road import Road, Trouble, check_undone

pytestmark = pytest.mark.usefixtures("plugins_are_in_tree")


def says_no(point: str) -> Trouble:
    return Trouble(
        {point: unresolvable("no")},
        "0/1 nodes are available: 1 no.",
        "Unschedulable",
        rejectors=frozenset({"First"}),
        last=point,
    )


def waits_then(meanwhile: Callable[[Road], Any], message: str, **more: Any) -> Trouble:
    answers = {"permit": (wait("a moment"), 30)}
    return Trouble(answers, message, meanwhile=meanwhile, last="pre_bind_pre_flight", **more)


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
            rejectors=frozenset({"First"}),
            waiting=frozenset({"First"}),
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
            reason="Unschedulable",
            rejectors=frozenset({"First"}),
        ),
        id="no plugin allows it in time",
    ),
    pytest.param(
        waits_then(
            decide("reject"),
            "0/1 nodes are available: 1 made room.",
            reason="Unschedulable",
            rejectors=frozenset({"Second"}),
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
    # After Permit a failure does not make a pod unschedulable: it has no rejectors, and is retried.
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
