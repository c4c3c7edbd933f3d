"""Pods that name their node: the engine's answers for them are those of the reference."""

from typing import Any

import pytest

from bayplan.engine import Reason
from bayplan.framework import (
    CLUSTER,
    NODE_OBJECT,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    ScorePlugin,
    Status,
    unschedulable,
)
from bayplan.testing.builders import make_pod
from bayplan.testing.storage import claim_volume
from tests.engine.stale_world import decided, make_world
from tests.rig.mixed_cluster import even

from .histories import ZONE, World, pinned

pytestmark = pytest.mark.usefixtures("kernel_form")


def test_pods_that_name_their_node_have_the_answers_of_their_class() -> None:
    world = make_world()
    full, tainted = (
        make_pod("full", cpu="1", node_affinity=pinned("n4")),
        make_pod("tainted", cpu="1", node_affinity=pinned("n5")),
    )
    assert world.check(full).totals.keys() == {4}
    assert world.check(tainted).totals.keys() == {5}
    assert world.pinned == 2, "the engine decides"

    world.bind("q", 4, cpu="4")
    world.change_node(5, taints=["a:NoSchedule"])

    assert not world.check(full).totals
    assert not world.check(tainted).totals
    world.remove_pod("q")
    assert world.check(full).totals.keys() == {4}
    world.nominate("r", 4, cpu="4")
    assert not world.check(full).totals


def test_a_pod_of_the_same_class_that_names_no_node_counts_the_pods_of_all_nodes() -> None:
    world = World("default", nodes=0)
    for number in range(4):
        world.set_node(number, {"zone": f"z{number % 2}"})
    spread: dict[str, Any] = {"labels": {"app": "web"}, "spread": [even(ZONE, "ScheduleAnyway")]}
    for number in range(3):
        world.bind(f"q{number}", 0, **spread)

    assert world.check(make_pod("one", node_affinity=pinned("n3"), **spread)).totals.keys() == {3}
    assert len(set(world.check(make_pod("other", **spread)).totals.values())) > 1


def test_a_host_port_of_a_nominated_pod_is_taken() -> None:
    world = make_world()
    pod = make_pod("new", host_ports=[80], node_affinity=pinned("n4"))
    assert world.check(pod).totals.keys() == {4}

    world.nominate("q", 4, host_ports=[80])

    assert not world.check(pod).totals


def test_a_pod_with_a_node_of_its_own_in_sight_is_left_to_the_reference() -> None:
    world = make_world()
    decided(world, cpu="3")

    world.nominate("new", 4, cpu="3")
    assert 4 in decided(world, cpu="3").totals, "a pod leaves no room for itself"
    world.end_nomination("new")
    nominated = make_pod("new", cpu="3", nominated_node_name="n4")
    assert world.decide(nominated) is Reason.NOMINATED
    assert world.decide(make_pod("new", cpu="3", node_name="n4")) is Reason.ASSIGNED


def test_a_pod_whose_status_says_what_it_uses_is_left_to_the_reference() -> None:
    world = make_world()
    before = decided(world, cpu="1")
    more = {"name": "container-0", "resources": {"requests": {"cpu": "3500m"}}}

    assert decided(world, cpu="1", status={"containerStatuses": [more]}) != before


def test_a_pod_is_left_to_the_reference_for_a_reason() -> None:
    world = make_world("by spec")
    world.nominate("q", 4, cpu="2")

    assert world.decide(make_pod("new", cpu="9")) is Reason.NO_NODE
    unbound = make_pod("new", spec={"volumes": [claim_volume("missing")]})
    assert world.decide(unbound) is Reason.PRE_FILTER


class NamesNothing(FilterPlugin):
    """By spec: refuses pods that name their node."""

    name = "NamesNothing"
    scope = NODE_OBJECT

    def spec_key(self, spec: Any) -> bool:
        return bool(spec.pin)

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        return unschedulable("it names a node") if pod.spec.pin else SUCCESS


def test_a_plugin_may_read_that_a_pod_names_its_node() -> None:
    world = World("default", nodes=0, plugins=(NamesNothing,))
    for number in range(4):
        world.set_node(number, {})

    assert decided(world).totals
    assert not world.check(make_pod("new", node_affinity=pinned("n2"))).totals
    assert decided(world).totals


class OnlyWhereNamed(FilterPlugin):
    """Reads the whole pod: refuses pods on n2 that name it, and all others elsewhere."""

    name = "OnlyWhereNamed"
    scope = NODE_OBJECT

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        is_refused = bool(pod.spec.pin) == (node.name == "n2")
        return unschedulable("not here") if is_refused else SUCCESS


class OnlyWhereNamedLive(OnlyWhereNamed):
    scope = CLUSTER


class ReadsAll(ScorePlugin):
    """Declares nothing about the pod."""

    name = "ReadsAll"
    scope = NODE_OBJECT

    def score_node(self, state: CycleState, pod: Any, node: NodeInfo) -> int:
        return len(pod.labels)


@pytest.mark.parametrize("plugin", [OnlyWhereNamed, OnlyWhereNamedLive])
def test_a_filter_that_reads_the_whole_pod_is_asked_about_the_node_that_a_pod_names(
    plugin: type[FilterPlugin],
) -> None:
    world = World("default", nodes=0, plugins=(plugin,))
    for number in range(4):
        world.set_node(number, {})

    assert decided(world).totals.keys() == {2}
    assert not world.check(make_pod("new", node_affinity=pinned("n2"))).totals
    assert not world.pinned
    # The engine has a refusal of n1 for pods like it, and leaves this one to the reference.
    assert world.check(make_pod("new", node_affinity=pinned("n1"))).totals.keys() == {1}


def test_a_score_that_reads_the_whole_pod_does_not_matter_to_pods_that_name_their_node() -> None:
    world = World("default", nodes=0, plugins=(ReadsAll,))
    for number in range(4):
        world.set_node(number, {})

    assert world.check(make_pod("new", node_affinity=pinned("n2"))).totals.keys() == {2}
    assert world.pinned == 1, "the engine decides"
