"""Number and choice of the nodes that are tried, and the start of the next search."""

from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.config.load import parse_config
from bayplan.engine import Engine
from bayplan.scheduler import Attempt, Scheduler, build_scheduler
from bayplan.scheduler.find_nodes import num_feasible_nodes_to_find
from bayplan.testing.builders import make_node, make_pod
from tests.rig.first_found import FirstFound
from tests.rig.scenarios import attempts_of

V1 = {
    1: 1,
    50: 50,
    99: 99,
    100: 100,
    101: 100,
    125: 100,
    200: 100,
    250: 120,
    300: 144,
    500: 230,
    999: 429,
    1000: 420,
    2000: 680,
    5000: 500,
    5624: 337,
    5625: 281,
    6000: 300,
    10000: 500,
}


@pytest.mark.parametrize(("nodes", "enough"), V1.items())
def test_how_many_are_enough_adapts_to_the_size_of_the_cluster(nodes: int, enough: int) -> None:
    assert num_feasible_nodes_to_find(0, nodes) == enough


@pytest.mark.parametrize(
    ("nodes", "percentage", "enough"),
    [
        (500, 30, 150),
        (1000, 5, 100),
        (1000, 100, 1000),
        (150, 10, 100),
        (300, 70, 210),
        (99, 1, 99),
    ],
)
def test_how_many_are_enough_by_percentage(nodes: int, percentage: int, enough: int) -> None:
    assert num_feasible_nodes_to_find(percentage, nodes) == enough


def make_config(percentage: int | None, *plugins: str) -> Any:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *plugins)]
    everywhere = {"disabled": [{"name": "*"}], "enabled": enabled}
    tree: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": everywhere}}],
    }
    if percentage is not None:
        tree["percentageOfNodesToScore"] = percentage
    return parse_config(tree, "test")


class Bench:
    """150 nodes n000...n149 in one zone; one pod fits on each that is not cordoned."""

    def __init__(self, percentage: int | None, *plugins: str, cordoned: int = 0) -> None:
        self.cluster = MemoryCluster()
        for i in range(150):
            self.cluster.add(make_node(f"n{i:03}", unschedulable=i < cordoned, pods=3))
        self.scheduler: Scheduler = build_scheduler(
            make_config(percentage, "NodeUnschedulable", *plugins),
            self.cluster,
            clock=ManualClock(),
            ties=FirstFound(),
        )
        self.cluster.watch(self.scheduler)
        self._pods = 0

    def schedule(self, **wishes: Any) -> Attempt:
        self._pods += 1
        self.cluster.add(make_pod(f"p{self._pods}", **wishes))
        attempt = self.scheduler.schedule_one()
        assert attempt is not None
        return attempt


def test_every_node_is_looked_at_unless_a_percentage_is_set() -> None:
    attempt = Bench(None, "NodeResourcesFit").schedule()

    assert attempt.feasible_nodes == 150


def test_a_percentage_limits_the_search_and_the_next_one_goes_on_from_there() -> None:
    """100 of 150 nodes are enough: the searches begin at 0, 100, 200 mod 150 = 50, 150 mod 150 = 0."""
    bench = Bench(50, "TaintToleration")

    attempts = [bench.schedule() for _ in range(4)]

    assert [attempt.feasible_nodes for attempt in attempts] == [100] * 4
    assert [attempt.node_name for attempt in attempts] == ["n000", "n100", "n050", "n000"]


def test_a_search_that_finds_too_few_has_seen_all_nodes() -> None:
    bench = Bench(50, "TaintToleration", cordoned=60)

    attempts = [bench.schedule() for _ in range(2)]

    assert [attempt.feasible_nodes for attempt in attempts] == [90, 90]
    assert [attempt.node_name for attempt in attempts] == ["n060", "n060"]


def test_without_scoring_one_node_is_enough() -> None:
    bench = Bench(50)

    attempts = [bench.schedule() for _ in range(3)]

    assert [attempt.feasible_nodes for attempt in attempts] == [1, 1, 1]
    assert [attempt.node_name for attempt in attempts] == ["n000", "n001", "n002"]


def test_a_hundred_percent_is_every_node_and_is_left_to_the_engine() -> None:
    bench = Bench(100, "TaintToleration")
    (profile,) = bench.scheduler.profiles.values()

    attempts = [bench.schedule() for _ in range(2)]

    assert [attempt.feasible_nodes for attempt in attempts] == [150, 150]
    assert [attempt.node_name for attempt in attempts] == ["n000", "n000"]
    assert Engine(profile, bench.scheduler.cache.table).applies


def test_of_a_hundred_percent_one_node_is_enough_without_scoring() -> None:
    bench = Bench(100)

    attempts = [bench.schedule() for _ in range(2)]

    assert [attempt.feasible_nodes for attempt in attempts] == [1, 1]
    assert [attempt.node_name for attempt in attempts] == ["n000", "n001"]


def test_nodes_refused_on_the_way_count_as_looked_at() -> None:
    bench = Bench(50, cordoned=10)

    attempts = [bench.schedule() for _ in range(2)]

    assert [attempt.node_name for attempt in attempts] == ["n010", "n011"]


def test_a_pod_that_fits_nowhere_is_told_about_all_nodes() -> None:
    bench = Bench(50, "NodeResourcesFit", cordoned=3)

    attempt = bench.schedule(cpu="100")

    reasons = "147 Insufficient cpu, 3 node(s) were unschedulable"
    assert attempt.message == f"0/150 nodes are available: {reasons}."


def test_a_narrowed_search_judges_the_named_nodes_only() -> None:
    named = [{"key": "metadata.name", "operator": "In", "values": ["n120"]}]
    terms = {"nodeSelectorTerms": [{"matchFields": named}]}
    wish = {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    attempt = Bench(50, "NodeAffinity").schedule(node_affinity=wish)

    assert attempt.node_name == "n120"
    assert attempt.feasible_nodes == 1


def test_nodes_of_each_zone_are_looked_at_in_turn() -> None:
    cluster = MemoryCluster()
    for i in range(120):
        cluster.add(make_node(f"n{i:03}", zone="big" if i < 110 else "small"))
    scheduler = build_scheduler(
        make_config(10, "TaintToleration"), cluster, clock=ManualClock(), ties=FirstFound()
    )
    cluster.watch(scheduler)
    names = []
    for i in range(2):
        cluster.add(make_pod(f"p{i}"))
        names += [attempt.node_name for attempt in attempts_of(scheduler)]

    assert names == ["n000", "n090"], "10 of the first 20 looked at are of the small zone"


def test_nodes_refused_after_the_last_taken_count_as_looked_at() -> None:
    """kube-scheduler stops when it finds one node too many: the nodes before that one were looked at."""
    bench = Bench(50, "NodeAffinity")
    bench.cluster.update(make_node("n000", labels={"disk": "ssd"}))
    bench.cluster.update(make_node("n003", labels={"disk": "ssd"}))
    exists = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    wish = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [exists]}}
    scheduler = bench.scheduler
    scheduler.profiles["default-scheduler"].scoring.scores = ()  # one node is enough

    names = [bench.schedule(node_affinity=wish).node_name, bench.schedule().node_name]

    assert names == ["n000", "n003"]
