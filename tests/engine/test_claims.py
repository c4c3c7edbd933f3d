"""Pods that differ in the claims they name form one class; plugins that may read the names distinguish them."""

from typing import Any

import pytest

from bayplan.config.load import parse_config
from bayplan.config.types import Profile
from bayplan.framework import (
    CLUSTER,
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Status,
    unschedulable,
)
from bayplan.framework.interface import Scope
from bayplan.table import NodeTable
from bayplan.testing.builders import make_pod
from bayplan.testing.storage import claim_volume, make_claim, make_csi_node, make_volume
from tests.rig.mixed_cluster import PROFILES

from . import histories
from .histories import Outcome, World, pinned

CLAIMS = ("a", "b", "c")


class ReadsClaims(FilterPlugin):
    """Refuses pods on n2 that name claim b."""

    name = "ReadsClaims"

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        is_refused = "b" in pod.spec.claims and node.name == "n2"
        return unschedulable("not with b") if is_refused else SUCCESS


def reading_claims(scope: Scope) -> type[FilterPlugin]:
    """The plugin with another scope; it declares nothing about the pod."""
    return type("ReadsClaimsBy", (ReadsClaims,), {"scope": scope})


class QuietWithoutB(ReadsClaims):
    """Has no effect on pods that do not name claim b."""

    scope = GROUPS

    def row_groups(self, pod: Any, table: NodeTable) -> Any:
        return None if "b" in pod.spec.claims else ()


def make_world(*plugins: type[FilterPlugin]) -> World:
    """Four nodes, and three claims whose volumes can be reached from everywhere."""
    world = World("default", nodes=0, plugins=plugins)
    for number in range(4):
        world.set_node(number, {})
    for name in CLAIMS:
        claim = make_claim(name, volume=f"pv-{name}")
        world.lister.add(claim)
        world.lister.add(make_volume(f"pv-{name}", claim=claim, driver="disks"))
    return world


def make_profile(points: dict[str, Any]) -> Profile:
    """A profile of these plugins and no others."""
    tree = {"profiles": [{"plugins": {"multiPoint": points}}]}
    (profile,) = parse_config({**PROFILES, **tree}, "test").profiles
    return profile


def decided(world: World, *claims: str, **wish: Any) -> Outcome:
    """Result of a pod with these claims; the engine and the reference agree on it."""
    volumes = [claim_volume(name) for name in claims]
    return world.check(make_pod("new", spec={"volumes": volumes}, **wish))


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(reading_claims(NODE_OBJECT), id="an answer by node objects"),
        pytest.param(reading_claims(NODE_ROW), id="an answer by rows"),
        pytest.param(reading_claims(GROUPS), id="an answer by groups"),
        pytest.param(reading_claims(CLUSTER), id="an answer by anything"),
        pytest.param(QuietWithoutB, id="no effect on some pods"),
    ],
)
def test_a_plugin_that_declares_nothing_may_read_the_names_of_claims(
    plugin: type[FilterPlugin],
) -> None:
    world = make_world(plugin)

    for _ in range(2):
        assert decided(world, "a").totals.keys() == {0, 1, 2, 3}
        assert decided(world, "b").totals.keys() == {0, 1, 3}
        assert decided(world, "c").totals.keys() == {0, 1, 2, 3}
    assert not world.declined


def test_a_filter_reads_the_claims_of_a_pod_that_names_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = reading_claims(NODE_OBJECT)
    names = ("PrioritySort", "DefaultBinder", "NodeAffinity", plugin.name)
    points = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}
    monkeypatch.setattr(histories, "make_profile", lambda *args: make_profile(points))
    world = make_world(plugin)

    assert decided(world, "a", node_affinity=pinned("n2")).totals.keys() == {2}
    assert decided(world, "b", node_affinity=pinned("n1")).totals.keys() == {1}
    assert not decided(world, "b", node_affinity=pinned("n2")).totals
    assert decided(world, "b").totals.keys() == {0, 1, 3}


def test_pods_that_name_different_claims_are_of_one_class() -> None:
    world = make_world()
    first, second = (make_pod("new", spec={"volumes": [claim_volume(c)]}) for c in ("a", "b"))

    assert first.spec is not second.spec
    assert first.pod_class is second.pod_class
    assert decided(world, "a").totals == decided(world, "b").totals


def test_a_node_that_is_full_of_volumes_is_refused_and_the_best_of_the_others_taken() -> None:
    world = make_world()
    assert decided(world, "b").totals.keys() == {0, 1, 2, 3}

    world.lister.add(make_csi_node("n1", {"disks": 1}))
    assert decided(world, "b").totals.keys() == {0, 1, 2, 3}
    world.bind("p", 1, spec={"volumes": [claim_volume("a")]})

    assert decided(world, "b").totals.keys() == {0, 2, 3}
    world.remove_pod("p")
    assert decided(world, "b").totals.keys() == {0, 1, 2, 3}
    world.lister.add(make_csi_node("n1", {"disks": 0}))
    assert decided(world, "b").totals.keys() == {0, 2, 3}
