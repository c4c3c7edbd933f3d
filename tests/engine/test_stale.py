"""What makes answers stale: after each kind of change the engine decides anew, and otherwise than before."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from bayplan.amounts import kernel
from bayplan.engine import Decision, Reason
from bayplan.engine.class_view import ClassView
from bayplan.framework import (
    CLUSTER,
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PreFilterPlugin,
    ScorePlugin,
    Settled,
    Status,
    unschedulable,
)
from bayplan.runtime import PluginRunError
from bayplan.stamped_cache import Budget
from bayplan.table import changes, terms
from bayplan.testing.builders import make_object, make_pod
from bayplan.testing.devices import make_claim, make_class, make_device, make_slice
from bayplan.testing.storage import claim_volume
from tests.rig.mixed_cluster import (
    GPU,
    PREFERRED,
    REQUIRED,
    SERVICES,
    even,
    in_team,
    near,
    on_disk,
)

from .histories import HOST, ZONE, Outcome, World, pinned
from .user_plugins import NOISY, STRICT, Rare

WEB = {"labels": {"app": "web"}}
PREFERS_SSD = {"node_affinity": {PREFERRED: [{"weight": 9, "preference": on_disk("ssd")}]}}
SPREAD = {**WEB, "spread": [even(ZONE, "DoNotSchedule")]}
Change = Callable[[World], object]


@pytest.fixture(params=["compiled", "NumPy"], autouse=True)
def kernel_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form of the kernel."""
    if request.param == "NumPy":
        monkeypatch.setattr(kernel, "compiled", None)
    elif kernel.compiled is None:
        pytest.skip("the extension module is not built (make kernel)")


def make_world(profile: str = "default", count: int = 12) -> World:
    """Nodes in three zones, every other one with an ssd, with a pod on each third."""
    world = World(profile, nodes=0)
    for number in range(count):
        disk = {"disk": "ssd"} if number % 2 else {}
        world.set_node(number, {"zone": f"z{number % 3}", "cpu": "4", "labels": disk})
    for number in range(0, count, 3):
        world.bind(f"p{number}", number, cpu="1", **WEB)
    for number in range(4):
        world.bind(f"db{number}", 2, cpu="100m")
    return world


def decided(world: World, **wish: Any) -> Outcome:
    """What becomes of a pod; the engine and the reference agree on it."""
    return world.check(make_pod("new", **wish))


def renamed(world: World, old: int, new: int) -> None:
    """A node without pods goes, and another one takes its row."""
    wish = world.nodes[old]
    world.remove_node(old)
    world.set_node(new, wish)


def replaced(world: World, old: int, new: int) -> None:
    """A node goes, and another one takes its row."""
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
    """Two pods hold a port; one leaves, which frees it; an update of the other takes it again."""
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
    assert world.refused == 4, "the engine says so, not the reference"


def test_a_row_without_a_node_is_not_chosen_and_says_nothing() -> None:
    world = make_world()
    world.change_node(2, taints=["a:PreferNoSchedule"])
    for wish in ({}, PREFERS_SSD, {"cpu": "9"}):
        decided(world, **wish)

    world.bind("early", 30, cpu="1")  # the pod is there before its node
    world.remove_node(3)

    assert len(world.table) == 13
    for wish in ({}, PREFERS_SSD, {"cpu": "9"}, {"tolerations": [""]}):
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
    """The preferred node fills up: what is left is normalised without it."""
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
    """Only those that a pod on a node wants to be apart from have something to fear from it."""
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


def test_a_pod_with_a_node_of_its_own_in_sight_is_left_to_the_reference() -> None:
    world = make_world()
    decided(world, cpu="3")

    world.nominate("new", 4, cpu="3")
    assert 4 in decided(world, cpu="3").totals, "a pod leaves no room for itself"
    world.end_nomination("new")
    for own, reason in (
        ({"nominated_node_name": "n4"}, Reason.NOMINATED),
        ({"node_name": "n4"}, Reason.ASSIGNED),
    ):
        assert world.decide(make_pod("new", cpu="3", **own)) is reason


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


# Plugins that declare less, or fail


class NotOnSsd(FilterPlugin):
    """Declares nothing."""

    name = "NotOnSsd"

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        return unschedulable("ssd") if node.labels.get("disk") == "ssd" else SUCCESS


def test_a_filter_on_one_node_sees_the_labels_that_the_node_has_now() -> None:
    world = World("default", nodes=0, plugins=(NotOnSsd,))
    for number in range(4):
        world.set_node(number, {})
    assert decided(world).totals.keys() == {0, 1, 2, 3}

    world.change_node(2, labels={"disk": "ssd"})
    assert decided(world).totals.keys() == {0, 1, 3}
    world.set_node(4, {"labels": {"disk": "ssd"}})
    assert decided(world).totals.keys() == {0, 1, 3}
    world.remove_node(2)
    world.set_node(5, {})
    assert decided(world).totals.keys() == {0, 1, 2, 3}, "n5 has the row of n2"


class NeedsNode(FilterPlugin):
    """Reads the node object, and may."""

    name = "NeedsNode"
    scope = NODE_ROW

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        assert node.table.nodes[node.row] is not None, "asked about a row without a node"
        return unschedulable("tired") if "tired" in node.labels else SUCCESS


def test_row_plugins_are_asked_about_rows_with_a_node_only() -> None:
    world = World("default", nodes=0, plugins=(NeedsNode,))
    for number in range(8):
        world.set_node(number, {"labels": {"tired": "yes"} if number == 3 else {}})
        world.bind(f"p{number}", number, cpu="1")
    decided(world)

    world.remove_node(5)
    world.bind("early", 20)

    assert list(decided(world).totals) == [0, 1, 2, 4, 6, 7]


def test_a_normalize_that_counts_is_run_when_all_scores_are_0_too() -> None:
    world = World("whole pod", nodes=0)
    for number in range(4):
        world.set_node(number, {})
    four = decided(world)

    world.set_node(4, {})

    assert decided(world).totals[0] != four.totals[0], "the fifth node makes the others commoner"


def test_a_normalize_that_counts_is_given_every_node() -> None:
    world = World("default", nodes=0, plugins=(Rare,))
    for number in range(9):
        world.set_node(number, {"labels": {"disk": "ssd" if number % 3 else "nvme"}})
    before = decided(world)
    assert before.totals[0] > before.totals[1], "three have nvme, six have ssd"

    for number in (0, 3):
        world.change_node(number, unschedulable=True)

    assert decided(world).totals[6] > before.totals[6], "and now one"


def test_a_normalize_that_counts_is_called_again_when_a_node_is_full() -> None:
    world = World("default", nodes=0, plugins=(Rare,))
    for number in range(9):
        world.set_node(number, {"cpu": "4", "labels": {"disk": "ssd" if number % 3 else "nvme"}})
    before = decided(world, cpu="1")
    assert decided(world, cpu="1") == before

    world.bind("q", 0, cpu="4")

    after = decided(world, cpu="1")
    assert after.totals[6] > before.totals[6], "two feasible nodes have nvme"
    world.remove_pod("q")
    assert decided(world, cpu="1").totals == before.totals


class ShareOfPrice(ScorePlugin):
    """Normalises by the sum of all scores."""

    name = "ShareOfPrice"
    scope = NODE_OBJECT

    def score_node(self, state: CycleState, pod: Any, node: NodeInfo) -> int:
        return int(node.labels.get("price", "1"))

    def normalize(self, scores: Any) -> Any:
        return scores * 100 // max(scores.sum(), 1)


def test_a_normalize_that_counts_is_called_again_when_raw_scores_change() -> None:
    world = World("default", nodes=0, plugins=(ShareOfPrice,))
    for number in range(4):
        world.set_node(number, {"labels": {"price": "10" if number else "20"}})
    before = decided(world)

    world.change_node(0, labels={"price": "90"})  # as many groups, of the same sizes

    assert decided(world).totals[1] < before.totals[1]


class SomeSpecs(FilterPlugin):
    """Reads the whole pod when it has a priority, and nothing of it otherwise."""

    name = "SomeSpecs"
    scope = NODE_OBJECT

    def spec_key(self, spec: Any) -> int | None:
        return None if spec.priority else 0

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        is_refused = pod.priority and pod.labels.get("app") == "web" and node.name == "n4"
        return unschedulable("not here") if is_refused else SUCCESS


def test_a_plugin_may_read_the_whole_pod_for_some_specs_only() -> None:
    world = World("default", nodes=0, plugins=(SomeSpecs,))
    for number in range(6):
        world.set_node(number, {})

    assert 4 in decided(world, **WEB).totals
    assert 4 in decided(world, priority=5).totals
    assert 4 not in decided(world, priority=5, **WEB).totals
    assert 4 in decided(world, priority=5).totals
    assert 4 in decided(world, **WEB).totals


class SettledBySize(PreFilterPlugin, FilterPlugin):
    """PreFilter skips pods that ask for little, which only the amounts tell."""

    name = "SettledBySize"

    def settled(self, spec: Any) -> Settled:
        return Settled(pre_filter=SKIP if spec.requests["cpu"] < 1500 else SUCCESS, commits=False)

    def pre_filter(self, state: CycleState, pod: Any, table: Any) -> Status:
        return SKIP if pod.requests["cpu"] < 1500 else SUCCESS

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        return unschedulable("not here") if node.name == "n4" else SUCCESS


class KeyedBySize(FilterPlugin):
    name = "KeyedBySize"
    scope = NODE_OBJECT

    def spec_key(self, spec: Any) -> int:
        amount: int = spec.requests["cpu"]
        return amount

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        is_refused = pod.requests["cpu"] > 1500 and node.name == "n4"
        return unschedulable("not here") if is_refused else SUCCESS


@pytest.mark.parametrize("plugin", [SettledBySize, KeyedBySize])
def test_a_declaration_may_read_the_amounts_of_a_spec(plugin: type[FilterPlugin]) -> None:
    world = World("default", nodes=0, plugins=(plugin,))
    for number in range(6):
        world.set_node(number, {})

    assert 4 in decided(world, cpu="1").totals
    assert 4 not in decided(world, cpu="2").totals
    assert 4 in decided(world, cpu="1").totals


def test_amounts_of_zero_are_no_amounts() -> None:
    world = make_world()

    for amount in ("1", "0", "2"):
        decided(world, requests={"cpu": amount, "memory": amount})


class Faulty(FilterPlugin, ScorePlugin):
    """Fails while `is_broken`, after it was asked about some rows."""

    name = "Faulty"
    is_broken = False

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        if self.is_broken and node.name == "n5":
            raise RuntimeError("broken")
        return unschedulable("no") if "no" in node.labels or len(node.pods) > 2 else SUCCESS

    def score_node(self, state: CycleState, pod: Any, node: NodeInfo) -> int:
        return len(node.labels)


class FaultyRow(Faulty):
    scope = NODE_ROW


class FaultyObject(Faulty):
    scope = NODE_OBJECT

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        if self.is_broken and node.name == "n5":
            raise RuntimeError("broken")
        return unschedulable("no") if "no" in node.labels else SUCCESS


@pytest.mark.parametrize("plugin", [Faulty, FaultyRow, FaultyObject])
def test_nothing_half_judged_is_kept_of_a_plugin_that_fails(
    plugin: type[Faulty], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World("default", nodes=0, plugins=(plugin,))
    for number in range(16):
        world.set_node(number, {"zone": "z1"})
    before = decided(world)

    monkeypatch.setattr(plugin, "is_broken", True)
    for number in (4, 5, 6):
        world.change_node(number, labels={"no": "yes"} if number != 5 else {"more": "yes"})
        world.bind(f"q{number}", number, cpu="1")
    for _ in range(2):
        with pytest.raises(PluginRunError, match=r'running "Faulty" filter plugin: .*broken'):
            world.decide(make_pod("new"))
    monkeypatch.setattr(plugin, "is_broken", False)

    after = decided(world)
    assert before.totals.keys() - after.totals.keys() == {4, 6}


@pytest.mark.parametrize(
    "hook", ["spec_key", "cluster_key", "row_groups", "amount_rules", "settled", "normalize"]
)
def test_a_declaration_that_fails_names_its_plugin(hook: str) -> None:
    def fail(*args: Any) -> Any:
        raise RuntimeError("broken")

    scope = {"row_groups": GROUPS, "normalize": NODE_OBJECT}.get(hook, NODE_ROW)
    own: dict[str, Any] = {hook: fail, "scope": scope, "pre_filter": lambda *args: SKIP}
    broken = type("Broken", (Faulty, PreFilterPlugin), own)
    world = World("default", nodes=0, plugins=(broken,))
    for number in range(4):
        world.set_node(number, {})

    with pytest.raises(PluginRunError, match='plugin "Faulty"'):
        world.decide(make_pod("new"))


def test_objects_that_no_plugin_reads_leave_views_as_they_are() -> None:
    world = make_world()
    world.decide(make_pod("new"))  # a view is cached when its class comes for the second time
    view = world.decide(make_pod("new"))
    assert isinstance(view, Decision)
    values = view.totals

    world.lister.add(make_object("PodDisruptionBudget", "x", namespace="default"))

    again = world.decide(make_pod("new"))
    assert isinstance(again, Decision)
    assert again.totals is values


class NotForAll(FilterPlugin, PreFilterPlugin):
    """Reads more than the row, and has nothing to say about pods without the annotation."""

    name = "NotForAll"

    def pre_filter(self, state: CycleState, pod: Any, table: Any) -> Status:
        return SUCCESS if NOISY in pod.annotations else SKIP

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        return SUCCESS if node.name.endswith("1") else unschedulable("another node")


@pytest.mark.parametrize(
    ("annotations", "feasible"),
    [
        pytest.param({}, 4, id="its only live filter is skipped"),
        pytest.param({NOISY: "1"}, 1, id="the filter is asked"),
    ],
)
def test_a_filter_that_pre_filter_skips_is_left_out(
    annotations: dict[str, str], feasible: int
) -> None:
    world = World("default", nodes=0, plugins=(NotForAll,))
    for number in range(4):
        world.set_node(number, {"cpu": "4"})

    found = decided(world, annotations=annotations)

    assert len(found.totals) == feasible


class ByBudget(FilterPlugin):
    """Keeps pods to one zone while there is a budget; does not say which objects its columns depend on."""

    name = "ByBudget"
    scope = GROUPS

    def row_groups(self, pod: Any, table: Any) -> Any:
        is_on = list(self.handle.lister.list("PodDisruptionBudget"))
        return [table.labels.column(ZONE).column] if is_on else []

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        is_on = list(self.handle.lister.list("PodDisruptionBudget"))
        refuses = is_on and node.labels.get(ZONE) != "z1"
        return unschedulable("another zone") if refuses else SUCCESS


def test_columns_that_may_depend_on_any_object_are_asked_for_again_after_any_change() -> None:
    world = World("default", nodes=0, plugins=(ByBudget,))
    for number in range(6):
        world.set_node(number, {"zone": f"z{number % 2}"})
    assert len(decided(world).totals) == 6

    world.lister.add(make_object("PodDisruptionBudget", "x", namespace="default"))

    assert len(decided(world).totals) == 3
