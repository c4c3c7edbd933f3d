"""Plugins that declare little, declare it wrongly or fail: the engine decides as the reference."""

from typing import Any

import pytest

from bayplan.engine import Decision
from bayplan.framework import (
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
from bayplan.testing.builders import make_object, make_pod
from tests.engine.stale_world import WEB, decided, make_world

from .histories import ZONE, World
from .user_plugins import NOISY, Rare

pytestmark = pytest.mark.usefixtures("kernel_form")

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
    """Correct: reads the node object, which its scope allows."""

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

    assert decided(world).totals[6] > before.totals[6], "now one has nvme"


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


class SomeSizes(FilterPlugin):
    """Reads the whole pod when it asks for much, and nothing of it otherwise."""

    name = "SomeSizes"
    scope = NODE_ROW

    def spec_key(self, spec: Any) -> int | None:
        return None if spec.requests["cpu"] > 1500 else 0

    def filter_node(self, state: CycleState, pod: Any, node: NodeInfo) -> Status:
        is_web = pod.requests["cpu"] > 1500 and pod.labels.get("app") == "web"
        return unschedulable("not here") if is_web and node.name == "n4" else SUCCESS


def test_a_plugin_may_read_the_whole_pod_for_some_amounts_only() -> None:
    world = World("default", nodes=0, plugins=(SomeSizes,))
    for number in range(6):
        world.set_node(number, {})

    assert 4 in decided(world, cpu="1", **WEB).totals
    assert 4 in decided(world, cpu="2").totals
    assert 4 not in decided(world, cpu="2", **WEB).totals
    assert 4 in decided(world, cpu="2").totals


class SettledBySize(PreFilterPlugin, FilterPlugin):
    """PreFilter skips pods with small requests, which only depends on amounts."""

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
    """Fails while `is_broken`, after it judged some rows."""

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
    values = view.ranked.totals()

    world.lister.add(make_object("PodDisruptionBudget", "x", namespace="default"))

    again = world.decide(make_pod("new"))
    assert isinstance(again, Decision)
    assert again.ranked.totals() is values


class NotForAll(FilterPlugin, PreFilterPlugin):
    """Reads more than the row, and skips pods without the annotation."""

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
    """Keeps pods to one zone while there is a budget; does not declare the objects that its columns depend on."""

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
