"""Rules on counts of pods per domain equal PodTopologySpread and InterPodAffinity node by node."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bayplan.amounts import kernel
from bayplan.api.pod import Pod
from bayplan.engine import Reason
from bayplan.engine.marks import GroupRules, MarksOfClasses
from bayplan.engine.row_groups import apply_rules
from bayplan.framework import GROUPS, CycleState, ScorePlugin
from bayplan.table import Ints, NodeTable, Rows, RowValues
from bayplan.testing.builders import make_node, make_pod
from tests.rig.mixed_cluster import PREFERRED, REQUIRED, even, near, on_disk, weighted

from .histories import HOST, ZONE, World

RACK = "rack"
"""A label that some nodes lack, and that is empty on some."""
NODES: list[dict[str, Any]] = [
    *({"zone": f"z{i % 3}", "labels": {RACK: f"r{i % 4}"}} for i in range(8)),
    {"zone": "z1", "labels": {RACK: ""}, "cpu": "2"},
    {"zone": "z1"},
    {"labels": {RACK: "r1", "disk": "ssd"}},
    {"zone": "", "labels": {"disk": "ssd"}},
    {"zone": "z2", "labels": {"disk": "ssd"}, "taints": ["gpu=yes:NoSchedule"]},
    {"zone": "z0", "labels": {"disk": "hdd"}, "taints": ["slow:PreferNoSchedule"]},
    {"zone": "z0", "labels": {HOST: "shared"}},
    {"zone": "z3", "labels": {HOST: "shared", "disk": "ssd"}, "memory": "2Gi"},
]
STEPS = 16
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
ON_SSD = {REQUIRED: {"nodeSelectorTerms": [on_disk("ssd")]}}
WISHES: dict[str, dict[str, Any]] = {
    "even over zones": {"spread": [even(ZONE, HARD)]},
    "even over zones and racks, with a skew": {
        "spread": [even(ZONE, HARD, maxSkew=2), even(RACK, HARD, maxSkew=3)]
    },
    "over six zones at least": {"spread": [even(ZONE, HARD, minDomains=6)]},
    "one per host, even over zones if possible": {"spread": [even(HOST, HARD), even(ZONE, SOFT)]},
    "even over zones and hosts if possible": {
        "spread": [even(ZONE, SOFT), even(HOST, SOFT, maxSkew=4)]
    },
    "even over racks and zones if possible": {
        "spread": [even(RACK, SOFT, maxSkew=3), even(ZONE, SOFT)]
    },
    "even over racks if possible, on nodes with ssd": {
        "spread": [even(RACK, SOFT)],
        "node_affinity": ON_SSD,
    },
    "even over all zones, on nodes with ssd": {
        "spread": [even(ZONE, HARD, nodeAffinityPolicy="Ignore")],
        "node_affinity": ON_SSD,
    },
    "even over zones, twice, with a node selector": {
        "spread": [even(ZONE, HARD), even(ZONE, SOFT)],
        "node_selector": {"disk": "ssd"},
    },
    "even over zones that are not tainted": {
        "spread": [even(ZONE, HARD, nodeTaintsPolicy="Honor"), even(HOST, SOFT)]
    },
    "even over zones of nodes with ssd": {"spread": [even(ZONE, HARD)], "node_affinity": ON_SSD},
    "even over all zones, with a node selector": {
        "spread": [even(ZONE, HARD, nodeAffinityPolicy="Ignore")],
        "node_selector": {"disk": "ssd"},
    },
    "even over zones by pods of another app": {
        "spread": [even(ZONE, HARD, "db")],
        "labels": {"app": "web"},
    },
    "even over a label that no node has, if possible": {"spread": [even("none", SOFT)]},
    "even over a label that no node has": {"spread": [even("none", HARD)]},
    "near web": {"affinity": {"podAffinity": {REQUIRED: [near("web")]}}},
    "near web by zone and by rack": {
        "affinity": {"podAffinity": {REQUIRED: [near("web"), near("web", RACK)]}}
    },
    "near its own kind, the first of it": {
        "affinity": {"podAffinity": {REQUIRED: [near("new", RACK)]}},
        "labels": {"app": "new"},
    },
    "near an app that is nowhere": {"affinity": {"podAffinity": {REQUIRED: [near("none")]}}},
    "away from web and db": {
        "affinity": {"podAntiAffinity": {REQUIRED: [near("web", HOST), near("db", RACK)]}}
    },
    "nearer to db and web, away from web, if possible": {
        "affinity": {
            "podAffinity": {PREFERRED: [weighted(7, near("db")), weighted(2, near("web", RACK))]},
            "podAntiAffinity": {PREFERRED: [weighted(50, near("web", HOST))]},
        }
    },
    "even over zones and nearer to db, if possible, with a toleration": {
        "spread": [even(ZONE, SOFT, maxSkew=2)],
        "affinity": {"podAffinity": {PREFERRED: [weighted(9, near("db", RACK))]}},
        "tolerations": ["gpu"],
    },
}
BOUND: list[dict[str, Any]] = [
    {"labels": {"app": "web"}, "cpu": "500m"},
    {"labels": {"app": "db"}, "cpu": "1"},
    {"labels": {"app": "db"}, "affinity": {"podAntiAffinity": {REQUIRED: [near("web", HOST)]}}},
    {
        "labels": {"app": "web"},
        "affinity": {
            "podAffinity": {REQUIRED: [near("web")], PREFERRED: [weighted(4, near("db", RACK))]}
        },
    },
    {"labels": {"app": "web"}, "terminating": True},
]


@pytest.mark.skipif(kernel.compiled is None, reason="rules are applied by the compiled kernel")
@pytest.mark.parametrize("seed", range(3))
def test_rules_come_to_what_the_plugins_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, world = random.Random(seed), World(nodes=0)
    for number in range(5 + 9 * seed):
        world.set_node(number, chance.choice(NODES))
    pods = [
        make_pod(f"new-{i}", **{"labels": {"app": "web"}, **wish})
        for i, wish in enumerate(WISHES.values())
    ]
    by_rules: list[GroupRules] = []

    def noted(*args: Any) -> None:
        by_rules.append(args[2])
        apply_rules(*args)

    monkeypatch.setattr("bayplan.engine.engine.apply_rules", noted)
    for step in range(STEPS):
        if step % 8 == 7:
            world.set_node(chance.randrange(len(world.nodes)), chance.choice(NODES))
        elif world.pods and chance.random() < 0.3:
            world.remove_pod(chance.choice(list(world.pods)))
        else:
            world.bind(f"p{step}", chance.randrange(len(world.nodes)), **chance.choice(BOUND))
        world.check_all(pods)

    assert len(by_rules) > 0.4 * STEPS * len(pods), "the rest fits nowhere"


CHANGES: list[tuple[int, dict[str, Any]]] = [
    (6, {"zone": "z0"}),
    (7, {"zone": "z3"}),
    (7, {"zone": "z1"}),
    (5, {"zone": "z3"}),
    (3, {"zone": "z2"}),
    (4, {"zone": "z1", "taints": ["gpu=yes:NoSchedule"]}),
    (8, {"zone": "z2", "labels": {HOST: "n2"}}),
    (8, {"zone": "z2"}),
    (9, {"labels": {RACK: "r1"}}),
    (9, {"zone": ""}),
    (9, {"zone": "z0", "labels": {"disk": "ssd"}}),
]
"""Added nodes, and other labels of nodes."""


@pytest.mark.skipif(kernel.compiled is None, reason="rules are applied by the compiled kernel")
@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
def test_rules_follow_nodes_that_come_and_go(wish: dict[str, Any]) -> None:
    world = World(nodes=0)
    for number in (*range(6), 10, 11, 12):
        world.set_node(number, {"zone": f"z{number % 3}"})
    for number in (0, 1, 1, 3, 4, 4):
        world.bind(f"p{len(world.pods)}", number, labels={"app": "web"}, cpu="100m")
    world.bind("carrier", 2, **BOUND[3])
    pod = make_pod("new", **{"labels": {"app": "web"}, **wish})
    world.check(pod)

    for number, change in CHANGES:
        world.set_node(number, change)
        world.check(pod)
        world.bind(f"q{len(world.pods)}", number, labels={"app": "web"}, cpu="100m")
        world.check(pod)
    for number in (7, 0, 3, 6):
        world.remove_node(number)
        world.check(pod)
    for number in range(20, 90):  # more rows than the columns have
        world.set_node(number, {"zone": f"z{number % 3}"})
    for number in (1, 4, 88, 89):
        world.bind(f"r{number}", number, labels={"app": "web"}, cpu="100m")
        world.check(pod)


@pytest.mark.skipif(kernel.compiled is None, reason="rules are applied by the compiled kernel")
def test_rules_hold_while_nodes_of_known_zones_come_and_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(nodes=0)
    for number in range(9):
        world.set_node(number, {"zone": f"z{number % 3}"})
    spread = [even(ZONE, HARD), even(ZONE, SOFT), even(HOST, SOFT)]
    pod = make_pod("new", labels={"app": "web"}, spread=spread)
    world.remove_node(8)
    world.check(pod)
    asked: list[Pod] = []
    monkeypatch.setattr(MarksOfClasses, "_find", lambda self, plan, pod: asked.append(pod))

    world.set_node(9, {"zone": "z2"})
    world.check(pod)
    world.remove_node(4)
    world.check(pod)

    assert not asked


def test_a_taint_that_a_spread_honours_is_seen() -> None:
    world = World(nodes=0)
    for number, zone in enumerate(("z1", "z1", "z2")):
        world.set_node(number, {"zone": zone})
        world.bind(f"p{number}", number, labels={"app": "web"})
    spread = [even(ZONE, HARD, nodeTaintsPolicy="Honor")]
    pod = make_pod("new", labels={"app": "web"}, spread=spread)
    assert world.check(pod).totals.keys() == {2}

    world.change_node(1, taints=["gpu=yes:NoSchedule"])

    assert world.check(pod).totals.keys() == {0, 2}


def test_the_reference_decides_when_no_node_is_within_the_limits() -> None:
    world, state = World(nodes=3), CycleState()
    nowhere = make_pod("new", labels={"app": "web"}, spread=[even("none", HARD)])
    world.cache.snapshot.update()

    assert world.engine.decide(state, nowhere) is Reason.NO_NODE


def test_pods_share_no_nodes_that_count_for_others_only() -> None:
    world = World(nodes=0)
    for number, wish in enumerate(NODES):
        world.set_node(number, wish)
    for number in (0, 3, 11, 12, 15):
        world.bind(f"p{number}", number, labels={"app": "web"})

    for i, wish in enumerate(WISHES.values()):  # by plugins without caches of earlier pods
        world.check(make_pod(f"new-{i}", **{"labels": {"app": "web"}, **wish}))


def test_nodes_without_a_host_name_are_no_host() -> None:
    world = World(nodes=4)
    world.cache.set_node(make_node("nameless", zone="z1").replace(labels={ZONE: "z1"}))
    world.bind("p0", 0, labels={"app": "web"})

    for i, wish in enumerate(WISHES.values()):
        world.check(make_pod(f"new-{i}", **{"labels": {"app": "web"}, **wish}))


def make_tainted() -> World:
    """Two nodes with a soft taint, and one with two."""
    world = World(nodes=0)
    for number, taints in enumerate([["a"], ["a"], ["a", "b"]]):
        soft = [f"{key}:PreferNoSchedule" for key in taints]
        world.set_node(number, {"zone": f"z{number % 2}", "taints": soft})
    return world


def test_scores_of_node_objects_change_when_a_node_is_full() -> None:
    world = make_tainted()
    pod = make_pod("new", cpu="1", labels={"app": "web"}, spread=[even(ZONE, SOFT)])
    before = world.check(pod)

    world.bind("full", 2, cpu="4")

    assert max(world.check(pod).totals.values()) < max(before.totals.values())


def test_scores_of_node_objects_change_when_a_rule_refuses_a_node() -> None:
    world = make_tainted()
    apart = {"podAntiAffinity": {REQUIRED: [near("db", HOST)]}}
    pod = make_pod("new", cpu="1", labels={"app": "web"}, affinity=apart)
    before = world.check(pod)

    world.bind("db", 2, labels={"app": "db"})

    assert max(world.check(pod).totals.values()) < max(before.totals.values())


class Zoned(ScorePlugin):
    """Scores by the zone, in groups, without rules."""

    name = "Zoned"
    scope = GROUPS

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues]:
        return [table.labels.column(ZONE).column]

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return table.labels.codes(ZONE)[rows] + 1


def test_a_plugin_without_rules_is_called_beside_rules() -> None:
    world = World(nodes=6, plugins=[Zoned])

    world.check(make_pod("new", labels={"app": "web"}, spread=[even(ZONE, SOFT)]))

    assert world.decided


class Crowded(ScorePlugin):
    """Scores by whether a node has pods, with a column of its own that is another array each time."""

    name = "Crowded"
    scope = GROUPS

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues]:
        class HasPods:
            @property
            def view(self) -> Ints:
                return (table.pod_count > 0).astype(np.int64)

        return [HasPods()]

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return (table.pod_count[rows] > 0) * 50


def test_a_column_of_a_plugin_may_have_another_array_each_time() -> None:
    world = World(nodes=6, plugins=[Crowded])
    pod = make_pod("new")
    world.check(pod)

    world.bind("full", 2)

    totals = world.check(pod).totals
    assert max(totals, key=lambda row: totals[row]) == 2
