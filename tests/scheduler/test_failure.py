"""The failure handler: back to the queue, the condition, the event."""

from typing import Any

import pytest

from bayplan.errors import ApiError
from bayplan.framework import unschedulable
from bayplan.scheduler.failure import NOTE_LIMIT, shortened
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import DelayedResult, Scenario, Scripted


def make_scenario(*objects: Any) -> Scenario:
    return Scenario(*objects, plugins=(Scripted,))


def test_an_unschedulable_pod_waits_with_its_rejectors_and_a_condition() -> None:
    scenario = make_scenario(make_node("a", cpu="1"))
    scenario.add(make_pod("p", cpu="2", priority=3).replace(generation=7))

    scenario.run()

    assert scenario.part_of("p") == "unschedulable"
    info = scenario.scheduler.queue.get(scenario.pod("p"))
    assert info is not None
    assert info.unschedulable_plugins == {"NodeResourcesFit"}
    (condition,) = scenario.pod("p").status.conditions or ()
    text = "0/1 nodes are available: 1 Insufficient cpu. "
    assert (condition.type, condition.status) == ("PodScheduled", "False")
    assert condition.reason == "Unschedulable"
    assert condition.message.startswith(text)
    assert condition.observed_generation == 7
    (event,) = scenario.events_of("p")
    assert (event.type, event.reason, event.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert event.reporting_controller == "default-scheduler"
    assert event.note == condition.message


def test_without_nodes() -> None:
    scenario = make_scenario()
    scenario.add(make_pod("p", nominated_node_name="gone"))

    scenario.run()

    (condition,) = scenario.pod("p").status.conditions or ()
    assert (condition.reason, condition.message) == (
        "Unschedulable",
        "no nodes available to schedule pods",
    )
    assert scenario.pod("p").nominated_node_name == ""
    # No plugin refused it, so it counts as an error: it backs off and is tried again.
    assert scenario.part_of("p") == "backoff"


def test_the_same_failure_again_writes_nothing_new() -> None:
    scenario = make_scenario(make_node("a", cpu="1"))
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()
    version = scenario.pod("p").resource_version

    scenario.scheduler.queue.activate([scenario.pod("p")])
    scenario.run()

    assert scenario.pod("p").resource_version == version
    assert len(scenario.events_of("p")) == 2


def slow_failure(scenario: Scenario) -> None:
    """Let `p` fail in PreBind after five seconds; the test acts meanwhile."""
    scenario.plugin(Scripted).answers["pre_bind"] = DelayedResult(5, unschedulable("no"))
    scenario.add(make_pod("p"))
    scenario.run()
    assert scenario.part_of("p") == "assumed"


def end(scenario: Scenario) -> None:
    scenario.clock.advance(5)
    scenario.scheduler.run_timers()


def test_a_pod_that_is_gone_does_not_come_back() -> None:
    scenario = make_scenario(make_node("a"))
    slow_failure(scenario)

    scenario.cluster.delete(scenario.pod("p"))
    end(scenario)

    assert len(scenario.scheduler.queue) == 0
    assert len(scenario.scheduler.queue.in_flight) == 0
    (event,) = scenario.events_of("p")
    assert event.note == "no"
    assert scenario.scheduler.is_settled


def test_a_pod_that_another_placed_does_not_come_back() -> None:
    scenario = make_scenario(make_node("a"), make_node("b"))
    slow_failure(scenario)

    scenario.cluster.bind(scenario.pod("p"), "b")
    end(scenario)

    assert scenario.part_of("p") == "bound"
    assert scenario.pod("p").node_name == "b"
    table = scenario.scheduler.cache.table
    assert {name: int(table.pod_count[row]) for name, row in table.row_of.items()} == {
        "a": 0,
        "b": 1,
    }


def test_a_pod_recreated_under_the_same_name_is_another() -> None:
    scenario = make_scenario(make_node("a"))
    slow_failure(scenario)
    scenario.plugin(Scripted).answers.clear()

    scenario.cluster.delete(scenario.pod("p"))
    scenario.add(make_pod("p", uid="another"))
    end(scenario)

    assert scenario.part_of("p") == "active"
    assert scenario.events_of("p") == [], "there is no event for a pod that is gone"
    assert not scenario.pod("p").status.conditions
    (attempt,) = scenario.run()
    assert attempt.number == 1
    assert scenario.part_of("p") == "bound"


def test_a_pod_recreated_under_the_same_name_and_bound_is_left_alone() -> None:
    scenario = make_scenario(make_node("a"))
    slow_failure(scenario)

    scenario.cluster.delete(scenario.pod("p"))
    scenario.add(make_pod("p", uid="another", node_name="a"))
    end(scenario)

    assert not scenario.pod("p").status.conditions
    (event,) = scenario.events_of("p")
    assert event.regarding.uid != "another"
    assert len(scenario.scheduler.queue.in_flight) == 0


def test_the_queue_gets_the_pod_as_it_is_now() -> None:
    scenario = make_scenario(make_node("a"))
    slow_failure(scenario)

    scenario.change("p", labels={"new": "yes"})
    end(scenario)

    info = scenario.scheduler.queue.get(scenario.pod("p"))
    assert info is not None
    assert info.pod is scenario.pod("p")
    assert info.pod.labels == {"new": "yes"}


def test_a_condition_that_cannot_be_written_is_no_obstacle() -> None:
    scenario = make_scenario(make_node("a", cpu="1"))

    def refuse(*args: Any) -> None:
        raise ApiError("no route to host")

    scenario.cluster.patch_status = refuse
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()

    assert scenario.part_of("p") == "unschedulable"


@pytest.mark.parametrize("length", [0, 1, NOTE_LIMIT])
def test_a_note_that_fits_is_kept(length: int) -> None:
    assert shortened("x" * length) == "x" * length


def test_a_long_note_is_cut_but_the_condition_is_not() -> None:
    scenario = make_scenario(make_node("a"))
    reason = "x" * 2000
    scenario.plugin(Scripted).answers["permit"] = unschedulable(reason)
    scenario.add(make_pod("p"))

    scenario.scheduler.schedule_one()

    (event,) = scenario.events_of("p")
    assert len(event.note) == NOTE_LIMIT == 1024
    assert event.note.startswith("0/1 nodes are available: 1 xxx")
    assert event.note.endswith("xxx ...")
    (condition,) = scenario.pod("p").status.conditions or ()
    assert condition.message == f"0/1 nodes are available: 1 {reason}."
