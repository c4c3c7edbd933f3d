"""Output of SIGUSR2: cache and queue, and where they differ from the cluster."""

import pytest

from bayplan.scheduler.debugger import differences, dump
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario


@pytest.fixture
def scene() -> Scenario:
    made = Scenario(make_node("a", cpu="2"), make_node("b", cpu="2"))
    made.add(make_pod("p", cpu="2"), make_pod("q", cpu="3"))
    made.run()
    return made


def test_nodes_and_waiting_pods_are_listed(scene: Scenario) -> None:
    lines = list(dump(scene.scheduler))

    assert [line.split(":")[0] for line in lines] == ["node a", "node b", "pod default/q"]
    assert "'cpu': 2000" in lines[0]
    assert lines[0].endswith("1 pods: default/p")
    assert lines[1].endswith("0 pods: none")
    assert lines[2] == "pod default/q: 1 attempts, refused by NodeResourcesFit"


def test_nothing_differs_when_all_events_arrived(scene: Scenario) -> None:
    assert list(differences(scene.scheduler)) == []


def test_what_an_event_was_lost_for_is_named(scene: Scenario) -> None:
    scheduler = scene.scheduler
    scheduler.on_delete(make_node("b"))
    scheduler.on_add(make_node("c"))
    scheduler.on_delete(scene.pod("p"))
    scheduler.on_delete(scene.pod("q"))
    scheduler.on_add(make_pod("r", node_name="a"))

    assert sorted(differences(scheduler)) == [
        "node b is missing in the cache",
        "node c is in the cache and not in the cluster",
        "pod default/p is missing in the cache",
        "pod default/q is missing in the queue",
        "pod default/r is in the cache and not in the cluster",
    ]
