"""Stale answers: after each kind of change the engine gives a new decision, which differs."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from bayplan.engine.class_view import ClassView
from bayplan.stamped_cache import Budget
from bayplan.table import changes, terms
from bayplan.testing.builders import make_object
from bayplan.testing.devices import make_claim, make_class, make_device, make_slice
from tests.engine.stale_world import WEB, decided, make_world
from tests.rig.mixed_cluster import GPU, PREFERRED, REQUIRED, SERVICES, even, in_team, near, on_disk

from .histories import HOST, ZONE, World
from .user_plugins import NOISY, STRICT

pytestmark = pytest.mark.usefixtures("kernel_form")

PREFERS_SSD = {"node_affinity": {PREFERRED: [{"weight": 9, "preference": on_disk("ssd")}]}}
SPREAD = {**WEB, "spread": [even(ZONE, "DoNotSchedule")]}
Change = Callable[[World], object]


def renamed(world: World, old: int, new: int) -> None:
    """A node without pods is deleted, and another node gets its row."""
    wish = world.nodes[old]
    world.remove_node(old)
    world.set_node(new, wish)


def replaced(world: World, old: int, new: int) -> None:
    """A node is deleted, and another node gets its row."""
    world.remove_pod("p0")
    world.remove_node(old)
    world.set_node(new, {"zone": "z1", "cpu": "2"})


@pytest.mark.parametrize(
    ("profile", "wish", "change"),
    [
        pytest.param(
            "default", {"cpu": "1"}, lambda w: w.bind("q", 4, cpu="2"), id="a pod comes to a node"
        ),
        pytest.param("default", {"cpu": "1"}, lambda w: w.remove_pod("p3"), id="a pod leaves"),
        pytest.param(
            "whole pod",
            {"labels": {"app": "db"}},
            lambda w: [w.change_pod(f"db{i}", labels={"app": "db"}) for i in range(4)],
            id="pods have other labels",
        ),
        pytest.param(
            "whole pod",
            {},
            lambda w: w.change_pod("p3", annotations={NOISY: "5"}),
            id="a pod has other annotations",
        ),
        pytest.param(
            "default", {"cpu": "1"}, lambda w: w.change_node(5, cpu="8"), id="a node offers more"
        ),
        pytest.param("default", {}, lambda w: w.change_node(5, unschedulable=True), id="a cordon"),
        pytest.param(
            "default", {}, lambda w: w.change_node(5, taints=["a:NoSchedule"]), id="a taint"
        ),
        pytest.param(
            "default",
            {},
            lambda w: w.change_node(5, taints=["a:PreferNoSchedule"]),
            id="the first taint to be avoided",
        ),
        pytest.param(
            "default",
            {"node_selector": {"disk": "ssd"}},
            lambda w: w.change_node(4, labels={"disk": "ssd"}),
            id="a label that is selected",
        ),
        pytest.param(
            "default",
            PREFERS_SSD,
            lambda w: w.change_node(4, labels={"disk": "ssd"}),
            id="a label that is preferred",
        ),
        pytest.param(
            "default",
            SPREAD,
            lambda w: w.change_node(3, zone="z1"),
            id="a zone that pods are spread over",
        ),
        pytest.param("default", {}, lambda w: w.set_node(12, {}), id="a node comes"),
        pytest.param("default", {}, lambda w: w.remove_node(4), id="a node goes"),
        pytest.param("default", {}, lambda w: w.remove_node(3), id="a node goes before its pods"),
        pytest.param("default", {}, lambda w: replaced(w, 0, 20), id="another node takes its row"),
        pytest.param(
            "default",
            {"images": ["app:1"]},
            lambda w: w.change_node(4, images={"app:1": 900 << 20}),
            id="an image is pulled",
        ),
        pytest.param(
            "default",
            {"affinity": {"podAntiAffinity": {REQUIRED: [near("web", HOST, **in_team("x"))]}}},
            lambda w: w.cache.set_namespace("default", {"team": "x"}),
            id="a namespace has other labels",
        ),
        pytest.param(
            "default",
            WEB,
            lambda w: w.bind("q", 4, affinity={"podAntiAffinity": {REQUIRED: [near("web")]}}),
            id="a pod comes that wants no such pods near it",
        ),
        pytest.param(
            "default",
            {"cpu": "1", **WEB},
            lambda w: w.lister.add(SERVICES[0]),
            id="a service has its pods spread",
        ),
        pytest.param(
            "default",
            {"requests": {GPU: 1}},
            lambda w: w.lister.add(make_class("gpu", resource=GPU)),
            id="a device class stands for a resource",
        ),
        pytest.param("by spec", {}, lambda w: w.close("ssd"), id="an object that a plugin reads"),
        pytest.param(
            "default",
            {"cpu": "3"},
            lambda w: w.nominate("q", 4, cpu="2", priority=5),
            id="a pod is nominated",
        ),
        pytest.param(
            "by spec",
            {"cpu": "3", "annotations": {STRICT: "yes"}, "host_ports": [80]},
            lambda w: w.nominate("q", 4, host_ports=[80], priority=5),
            id="a pod is nominated that more than amounts matter to",
        ),
        pytest.param("anything", {}, lambda w: w.bind("q", 4), id="a plugin reads anything"),
    ],
)
def test_a_change_is_seen(profile: str, wish: dict[str, Any], change: Change) -> None:
    world = make_world(profile)
    before = decided(world, **wish)
    assert decided(world, **wish) == before

    change(world)

    assert decided(world, **wish) != before


def test_a_port_that_an_update_takes_again_is_seen() -> None:
    """Two pods hold a port; the deletion of one frees it, and an update of the other holds it again."""
    world = make_world()
    for name in ("one", "two"):
        world.bind(name, 4, host_ports=[80])
    world.remove_pod("one")
    before = decided(world, host_ports=[80])

    world.change_pod("two", resource_version="7")

    assert decided(world, host_ports=[80]) != before


@pytest.mark.parametrize(
    ("wish", "change"),
    [
        pytest.param({"cpu": "3"}, lambda w: w.end_nomination("q"), id="a nomination ends"),
        pytest.param(
            {"cpu": "3"}, lambda w: w.nominate("q", 7, cpu="2", priority=5), id="it is for another"
        ),
        pytest.param({"cpu": "3"}, lambda w: renamed(w, 4, 20), id="another node takes its row"),
        pytest.param({"cpu": "3"}, lambda w: w.change_node(4, cpu="8"), id="its node has room"),
    ],
)
def test_room_for_nominated_pods_follows(wish: dict[str, Any], change: Change) -> None:
    world = make_world()
    world.nominate("q", 4, cpu="2", priority=5)
    world.nominate("r", 5, cpu="2", priority=-5)
    before = decided(world, **wish)
    assert 4 not in before.totals
    assert 5 in before.totals, "of lower priority"

    change(world)

    assert decided(world, **wish) != before


def test_room_for_nominated_pods_depends_on_the_priority() -> None:
    world = make_world()
    world.nominate("q", 4, cpu="2", priority=5)

    assert 4 not in decided(world, cpu="3", priority=1).totals
    assert 4 in decided(world, cpu="3", priority=9).totals
    assert 4 not in decided(world, cpu="3", priority=1).totals


def test_a_pod_that_fits_nowhere_is_told_why_by_rows_as_they_are() -> None:
    world = make_world()
    wish = {"cpu": "5", "node_selector": {"disk": "ssd"}}
    before = decided(world, **wish)
    assert not before.totals

    world.change_node(3, unschedulable=True)
    cordoned = decided(world, **wish)
    assert cordoned.statuses[3] != before.statuses[3]
    world.change_node(5, cpu="2")
    world.change_node(6, labels={"disk": "ssd"})
    world.nominate("q", 7, cpu="2")
    assert decided(world, **wish).statuses != cordoned.statuses
    world.end_nomination("q")
    world.remove_node(7)
    assert 7 not in decided(world, **wish).statuses
    assert world.refused == 8, "the engine says so, both times, not the reference"


def test_a_row_without_a_node_is_not_chosen_and_says_nothing() -> None:
    world = make_world()
    world.change_node(2, taints=["a:PreferNoSchedule"])
    wishes: list[dict[str, Any]] = [{}, PREFERS_SSD, {"cpu": "9"}]
    for wish in wishes:
        decided(world, **wish)

    world.bind("early", 30, cpu="1")  # the pod is there before its node
    world.remove_node(3)

    assert len(world.table) == 13
    for wish in [*wishes, {"tolerations": [""]}]:
        decided(world, **wish)
    world.set_node(30, {"cpu": "4"})
    assert 12 in decided(world).totals


@pytest.mark.parametrize("profile", ["default", "room"])
def test_views_follow_a_table_that_outgrows_its_columns(profile: str) -> None:
    world = make_world(profile, count=60)
    wishes: list[dict[str, Any]] = [{"cpu": "1"}, PREFERS_SSD, SPREAD, {"requests": {GPU: 1}}]
    for number in range(60, 70):
        for wish in wishes:
            decided(world, **wish)
        world.set_node(number, {"cpu": "2", "zone": "z1", "extended": {GPU: number % 2}})
        world.bind(f"p{number}", number, cpu="1")

    assert world.table.size.capacity > 64
    for wish in wishes:
        decided(world, **wish)


def test_scores_of_node_objects_go_by_the_nodes_that_are_feasible_now() -> None:
    """The preferred node fills up: the others are normalised without it."""
    world = make_world()
    world.change_node(1, labels={"disk": "nvme"})
    preferred = [(90, "nvme"), (30, "ssd")]
    terms = [{"weight": weight, "preference": on_disk(disk)} for weight, disk in preferred]
    wish = {"cpu": "2", "node_affinity": {PREFERRED: terms}}
    before = decided(world, **wish)

    world.bind("q", 1, cpu="3")
    after = decided(world, **wish)
    assert 1 not in after.totals
    assert after.totals[5] > before.totals[5]

    world.remove_pod("q")
    assert decided(world, **wish) == before


def test_classes_that_share_answers_about_nodes_see_a_change_one_by_one() -> None:
    world = make_world()
    wishes = [{"cpu": str(cpu)} for cpu in (1, 2, 3)]
    before = [decided(world, **wish) for wish in wishes]

    world.change_node(5, unschedulable=True)

    for wish, known in zip(wishes, before, strict=True):
        assert decided(world, **wish) != known


def test_a_view_that_fell_far_behind_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "KEEP", 4)
    world = make_world()
    before = decided(world, cpu="1"), decided(world, **PREFERS_SSD)
    world.change_node(4, labels={"disk": "ssd"})
    for number in range(200):  # far more than are kept
        world.bind("q", 5 + number % 2, cpu="1")
        if number < 199:
            world.remove_pod("q")
        world.change_node(number % 2, cpu="7")

    assert world.table.row_changes.rows_since(100) is None
    assert decided(world, cpu="1") != before[0]
    assert decided(world, **PREFERS_SSD) != before[1]


def test_room_for_nominated_pods_that_fell_far_behind_is_found_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "KEEP", 4)
    world = make_world()
    world.nominate("q", 4, cpu="2", priority=5)
    before = decided(world, cpu="3")
    world.nominate("r", 5, cpu="2", priority=5)
    for _ in range(100):  # far more than are kept
        world.nominate("s", 4, cpu="1", priority=5)
        world.end_nomination("s")

    assert decided(world, cpu="3") != before


def test_pods_of_one_spec_that_pre_filter_tells_apart_have_answers_of_their_own() -> None:
    world = make_world("by spec")
    world.change_node(2, labels={"disk": "hdd"})
    for number in range(3):
        world.bind(f"q{number}", 5, cpu="100m")
    strict = {"annotations": {STRICT: "yes"}}

    for _ in range(2):
        loose, picky = decided(world), decided(world, **strict)
        assert {2, 5} & loose.totals.keys() == {2, 5}
        assert not {2, 5} & picky.totals.keys()
        world.bind(f"r{_}", 7, cpu="100m")


@pytest.mark.parametrize("key", [ZONE, HOST])
def test_counts_of_pods_that_are_dropped_are_not_used(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world()
    spread = {**WEB, "spread": [even(key, "DoNotSchedule")]}
    before = decided(world, **spread)
    monkeypatch.setattr(terms, "MAX_CELLS", 64)
    for app in ("a", "b", "c"):
        decided(world, labels={"app": app}, spread=[even(ZONE, "DoNotSchedule", app)])
    assert world.table.terms.dropped

    for number in (1, 4):
        world.bind(f"q{number}", number, **WEB)

    assert decided(world, **spread) != before


def test_pods_of_one_spec_with_other_labels_or_elsewhere_are_grouped_by_themselves() -> None:
    """Only pods that the anti-affinity of a pod on a node selects depend on it."""
    world = make_world()
    terms = [near("web")]
    world.bind("alone", 4, affinity={"podAntiAffinity": {REQUIRED: terms}})
    owner: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs"}
    owner["uid"] = "r"
    owner["controller"] = True
    world.lister.add(
        make_object(
            "ReplicaSet",
            "rs",
            namespace="default",
            spec={"selector": {"matchLabels": {"app": "web"}}},
        )
    )

    for _ in range(2):
        assert 4 in decided(world).totals
        assert 4 in decided(world, namespace="other", **WEB).totals
        assert 4 not in decided(world, **WEB).totals
        pod = make_object(
            "Pod",
            "owned",
            namespace="default",
            metadata={"labels": {"app": "web"}, "uid": "o", "ownerReferences": [owner]},
            spec={"containers": [{"name": "c"}]},
        )
        world.check(pod)
        world.bind(f"more{_}", 7, **WEB)


def test_specs_that_were_alike_differ_once_a_node_has_an_image_of_one() -> None:
    app, web = {"images": ["app:1"]}, {"images": ["web:1"]}
    world = make_world()
    for wish in (app, web, app, web):
        decided(world, **wish)

    world.change_node(4, images={"app:1": 900 << 20})

    assert decided(world, **app).totals[4] > decided(world, **web).totals[4]


def test_a_node_that_changes_sees_how_common_its_image_is_now() -> None:
    """kube-scheduler counts the nodes that have an image when the node itself changes, as by a pod that comes."""
    world = make_world()
    world.change_node(4, images={"app:1": 900 << 20})
    before = decided(world, images=["app:1"])
    for number in range(5, 12):
        world.change_node(number, images={"app:1": 900 << 20})
    assert decided(world, images=["app:1"]).totals[4] == before.totals[4]

    world.bind("q", 4)

    assert decided(world, images=["app:1"]).totals[4] > before.totals[4]


def test_a_resource_that_devices_stand_for_is_left_to_them_while_they_do() -> None:
    world = make_world()
    devices = make_slice("s", make_device("d0"), make_device("d1"), node="n4")
    gpu = make_class("gpu", resource=GPU)
    world.lister.add(devices)
    wish = {"requests": {GPU: 1}}
    assert not decided(world, **wish).totals

    for _ in range(2):
        world.lister.add(gpu)
        assert decided(world, **wish).totals.keys() == {4}
        world.lister.remove(gpu)
        assert not decided(world, **wish).totals


def test_views_for_former_plans_are_not_kept() -> None:
    world = make_world()
    gpu = make_class("gpu", resource=GPU)

    def count_views() -> int:
        decided(world, requests={GPU: 1})
        gc.collect()
        return sum(isinstance(thing, ClassView) for thing in gc.get_objects())

    world.lister.add(gpu)
    before = count_views()
    for _ in range(4):
        world.lister.remove(gpu)
        count_views()
        world.lister.add(gpu)

    assert count_views() == before


def test_a_resource_that_devices_stand_for_is_scored_by_devices_in_use() -> None:
    world = make_world("gpus")
    for number in (4, 5):
        devices = (make_device(f"d{i}") for i in range(4))
        world.lister.add(make_slice(f"s{number}", *devices, node=f"n{number}"))
    world.change_node(7, extended={GPU: 4})
    wish = {"requests": {GPU: 1}}
    assert decided(world, **wish).totals.keys() == {7}

    world.lister.add(make_class("gpu", resource=GPU))
    before = decided(world, **wish).totals
    in_use = make_claim("other", devices=["n4/d0", "n4/d1"])
    world.lister.add(in_use)
    with_claim = decided(world, **wish).totals
    world.lister.remove(in_use)

    assert before.keys() == {4, 5, 7}
    assert with_claim[4] > before[4]
    assert with_claim[5] == before[5]
    assert decided(world, **wish).totals == before


def test_views_that_are_dropped_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "MOST_CELLS", 30)  # two views of twelve rows
    world = make_world()
    for number in range(8):
        for cpu in (1, 2, 3):
            decided(world, cpu=str(cpu))
        world.bind(f"q{number}", number, cpu="1")
