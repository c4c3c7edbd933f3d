"""Seeds of ties: plans are verified with several, and get nodes for those with which pods would wait."""

import numpy as np
import pytest

from bayplan.api.node import ZONE
from bayplan.api.pod import Pod
from bayplan.planning.first_fit import with_more
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.fleet_check import (
    MOST_OTHER_SEEDS,
    NO_DEMANDS,
    Demands,
    FleetVerdict,
    OtherSeeds,
    Verifier,
)
from bayplan.planning.node_probe import probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.planner import PlanRequest, plan_nodes, steadied, with_room_for
from bayplan.planning.pools import NodePool
from bayplan.sim.simulation import Simulation
from tests.planning.test_plan import POOL, SEEDED, make_deployment, make_type


class LuckyVerifier(Verifier):
    """Pods find a node with the first two seeds only."""

    def run(self, fleet: Fleet, further_seed: int = 0) -> tuple[Simulation | None, list[Pod]]:
        simulation, pending = super().run(fleet)
        assert simulation is not None
        return simulation, pending if further_seed < 2 else list(simulation.cluster.list("Pod"))


@pytest.mark.parametrize(
    ("seeds", "is_good"),
    [
        pytest.param(2, True, id="the seeds that are asked for suffice"),
        pytest.param(3, False, id="one seed more leaves pods pending"),
    ],
)
def test_every_pod_is_placed_with_as_many_seeds_as_are_asked_for(seeds: int, is_good: bool) -> None:
    given_ = prepare_input([make_deployment("web", 2, "1")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = LuckyVerifier(given_, probe, SEEDED, Demands(seeds=seeds))

    verdict = verifier.verify(Fleet({NodeGroupKey(0, ""): 1}))

    assert verdict.is_good == is_good
    assert verdict.missing.tolist() == [0 if is_good else 2]


def test_other_seeds_than_those_asked_for_are_tried() -> None:
    given_ = prepare_input([make_deployment("web", 2, "1")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = LuckyVerifier(given_, probe, SEEDED, Demands(seeds=1))
    fleet = Fleet({NodeGroupKey(0, ""): 1})

    assert verifier.try_other_seeds(fleet) == OtherSeeds(4, 1, 2), "three may fail"
    runs = verifier.runs
    assert verifier.try_other_seeds(fleet) == OtherSeeds(4, 1, 2)
    assert verifier.runs == runs + 3, "the one that held is not run again"


class SplitVerifier(Verifier):
    """With the second seed a pod of web waits, with the third two of db, with the fourth none."""

    def run(self, fleet: Fleet, further_seed: int = 0) -> tuple[Simulation | None, list[Pod]]:
        simulation, _ = super().run(fleet)
        assert simulation is not None
        of = {
            app: [p for p in simulation.cluster.list("Pod") if p.labels["app"] == app]
            for app in ("web", "db")
        }
        return simulation, {2: of["web"][:1], 3: of["db"]}.get(further_seed, [])


def test_of_each_class_the_most_pods_that_wait_with_one_seed_get_nodes() -> None:
    given_ = prepare_input([make_deployment("web", 2, "1"), make_deployment("db", 2, "2")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = SplitVerifier(given_, probe, SEEDED, Demands(seeds=1))

    found = verifier.try_other_seeds(Fleet({NodeGroupKey(1, ""): 2}))

    assert found.failed is not None
    assert sorted(found.failed.missing.tolist()) == [1, 2]
    assert found.most_pending == 2


class CrowdedVerifier(Verifier):
    """With the third of the other seeds two pods wait unless there are two nodes; with the fifth, unless three."""

    def run(self, fleet: Fleet, further_seed: int = 0) -> tuple[Simulation | None, list[Pod]]:
        simulation, pending = super().run(fleet)
        assert simulation is not None
        needed = {7: 2, 9: 3}.get(further_seed, 1)
        is_enough = sum(fleet.values()) >= needed
        return simulation, pending if is_enough else list(simulation.cluster.list("Pod"))


def test_a_plan_gets_nodes_for_other_seeds_until_all_hold() -> None:
    given_ = prepare_input([make_deployment("web", 2, "1")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = CrowdedVerifier(given_, probe, SEEDED, NO_DEMANDS)
    verdict = verifier.verify(Fleet({NodeGroupKey(0, ""): 1}))
    assert verdict.is_good

    steady, found = steadied(verdict, probe, verifier)

    assert found == OtherSeeds(MOST_OTHER_SEEDS, MOST_OTHER_SEEDS, 0)
    assert sum(steady.fleet.values()) == 3


def test_ctrl_c_after_the_search_gives_the_plan_that_it_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Verifier, "try_other_seeds", interrupt)

    found = plan_nodes(
        [make_deployment("a", 9, "1500m")], [POOL], SEEDED, PlanRequest(time_limit_s=20)
    )

    assert found.is_interrupted
    assert found.is_complete
    assert found.price > 0
    assert found.other_seeds is None


def test_pods_that_are_spread_need_nodes_in_the_zones_with_the_fewest() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    first = make_deployment("first", 1, "8")
    web = make_deployment("web", 2, "1", topologySpreadConstraints=[spread])
    types = (
        make_type("small", 2, 4, 0.1, zones=("a", "b")),
        make_type("large", 8, 32, 0.36, zones=("a", "b")),
    )
    given_ = prepare_input([first, web])
    probe = probe_workload(given_, [NodePool("p", types)], SEEDED)
    full = Fleet({NodeGroupKey(0, "a"): 1, NodeGroupKey(1, "b"): 1})

    verdict = Verifier(given_, probe, SEEDED, NO_DEMANDS).verify(full)

    assert [pod.labels["app"] for pod in verdict.pending] == ["web"], "skew keeps it out of zone a"
    assert verdict.zones == {"b"}


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param(frozenset[str](), "a", id="the one with the least cpu"),
        pytest.param(frozenset("b"), "b", id="one in which it helps"),
    ],
)
def test_further_nodes_come_into_a_zone(zones: frozenset[str], expected: str) -> None:
    pool = NodePool("p", (make_type("small", 2, 4, 0.1, zones=("a", "b")),))
    probe = probe_workload(prepare_input([make_deployment("web", 2, "1")]), [pool], SEEDED)
    full = Fleet({NodeGroupKey(0, "a"): 1, NodeGroupKey(0, "b"): 2})

    more = with_more(FleetVerdict(full, missing=np.array([1]), zones=zones), 1, probe)

    assert more == full.changed({NodeGroupKey(0, expected): 1})


def test_ties_are_drawn_otherwise_with_other_seeds() -> None:
    given_ = prepare_input([make_deployment("web", 3, "1")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, NO_DEMANDS)
    fleet = Fleet({NodeGroupKey(1, ""): 9})

    hosts = set()
    for seed in range(5):
        simulation, _ = verifier.run(fleet, seed)
        assert simulation is not None
        hosts.add(tuple(pod.node_name for pod in simulation.cluster.list("Pod")))

    assert len(hosts) > 1


class UnluckyVerifier(Verifier):
    """With another seed, pods wait on the cheapest fleet."""

    def run(self, fleet: Fleet, further_seed: int = 0) -> tuple[Simulation | None, list[Pod]]:
        simulation, pending = super().run(fleet)
        assert simulation is not None
        is_unlucky = further_seed == 8 and fleet == Fleet({NodeGroupKey(0, ""): 3})
        return simulation, list(simulation.cluster.list("Pod")) if is_unlucky else pending


def test_a_good_fleet_that_is_a_little_dearer_comes_before_more_nodes() -> None:
    given_ = prepare_input([make_deployment("web", 2, "1")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = UnluckyVerifier(given_, probe, SEEDED, NO_DEMANDS)
    cheapest, dearer, more = (
        verifier.verify(Fleet({NodeGroupKey(option, ""): count}))
        for option, count in ((0, 3), (1, 1), (1, 3))
    )
    assert cheapest.is_good
    assert more.is_good

    steady, found = steadied(cheapest, probe, verifier)

    assert steady is dearer
    assert found == OtherSeeds(MOST_OTHER_SEEDS, MOST_OTHER_SEEDS, 0)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(1000, 2, id="nodes for twice as many cost little beside so many"),
        pytest.param(3, 1, id="nodes for twice as many cost too much"),
    ],
)
def test_nodes_are_added_for_twice_the_pods_that_wait_if_they_cost_little(
    nodes: int, expected: int
) -> None:
    pool = NodePool("p", (make_type("small", 2, 4, 0.1),))
    probe = probe_workload(prepare_input([make_deployment("web", 9, "1500m")]), [pool], SEEDED)
    group = NodeGroupKey(0, "")

    more = with_room_for(FleetVerdict(Fleet({group: nodes}), missing=np.array([1])), probe)

    assert more == Fleet({group: nodes + expected})


@pytest.mark.parametrize(
    ("tried", "is_taken"),
    [
        pytest.param(64, True, id="it holds with as many seeds"),
        pytest.param(5, False, id="it was tried with a few seeds only"),
    ],
)
def test_a_fleet_with_more_nodes_is_taken_only_if_its_risk_is_less(
    tried: int, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_ = prepare_input([make_deployment("web", 2, "1")])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, NO_DEMANDS)
    first = verifier.verify(Fleet({NodeGroupKey(0, ""): 1}))
    failed = FleetVerdict(first.fleet, first.pending, missing=np.array([1]))
    found = iter([OtherSeeds(64, 62, 1, failed), OtherSeeds(2, 2), OtherSeeds(tried, tried)])
    monkeypatch.setattr(verifier, "try_other_seeds", lambda *_, **__: next(found))

    steady, _ = steadied(first, probe, verifier)

    assert (steady.fleet.size() > first.fleet.size()) is is_taken
