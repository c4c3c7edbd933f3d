"""Spare pods: room for more of the pods that waited with some seeds only."""

import numpy as np
import pytest

from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.fleet_check import Demands, Verifier
from bayplan.planning.fleet_search import SPARE_SHARE, FleetSearch
from bayplan.planning.node_probe import probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.pools import NodePool
from bayplan.planning.search_state import SearchState
from bayplan.planning.spare_pods import TiedPods, with_spare_pods
from bayplan.planning.time_budget import TimeBudget
from bayplan.testing.builders import make_pod
from tests.planning.test_plan import LARGE, POOL, SEEDED, SMALL, make_deployment

LAST, EARLY = make_pod("last", requests={"cpu": "1"}), make_pod("early", requests={"cpu": "500m"})


def spare_of(noted: list[list[str]], worth: tuple[float, float], most: float) -> list[str]:
    """The names of the pods that copies were made of."""
    probe = probe_workload(prepare_input([LAST, EARLY]), [POOL], SEEDED)
    pods, waiting = {one.pod.name: one.pod for one in probe.classes}, TiedPods()
    for names in noted:
        waiting.note([pods[name] for name in names])
    return [one.origin[2] for one in waiting.copies(probe, np.array(worth), most)]


@pytest.mark.parametrize(
    ("noted", "worth", "most", "expected"),
    [
        pytest.param([], (1.0, 1.0), 9.0, [], id="no pod waited"),
        pytest.param([["last"]], (1.0, 1.0), 0.9, [], id="a pod is worth more than may be spent"),
        pytest.param([["last"]], (1.0, 1.0), 3.5, ["last"] * 3, id="again and again"),
        pytest.param(
            [["last", "early"], ["early"]],
            (1.0, 1.0),
            3.0,
            ["early", "last", "early"],
            id="the one that waited more often comes first",
        ),
        pytest.param(
            [["last"], ["last"], ["early"]],
            (5.0, 1.0),
            2.0,
            ["early", "early"],
            id="those that are too dear are left out",
        ),
        pytest.param(
            [["early"]], (1.0, 0.0), 1.0, [], id="a pod that is worth nothing is not scarce"
        ),
        pytest.param([["early"]], (1.0, 1e-6), 1.0, ["early"] * 20, id="twenty at most"),
    ],
)
def test_copies(
    noted: list[list[str]], worth: tuple[float, float], most: float, expected: list[str]
) -> None:
    assert spare_of(noted, worth, most) == expected


def test_a_copy_comes_behind_its_pod_or_workload() -> None:
    given_ = prepare_input([make_deployment("web", 2, "1"), EARLY, LAST])
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, Demands(seeds=2))
    simulation, _ = verifier.run(Fleet({NodeGroupKey(1, ""): 3}))
    assert simulation is not None
    pods = {pod.name.split("-")[0]: pod for pod in simulation.cluster.list("Pod")}
    waiting = TiedPods()
    waiting.note([pods["web"], pods["early"]])

    spare = waiting.copies(probe, np.ones(len(probe.classes)), 2.0)
    workload = with_spare_pods(given_.workload, spare)

    assert [obj.name for obj in workload] == ["web", "spare-0", "early", "spare-1", "last"]


def tight_search(pool: NodePool) -> FleetSearch:
    """A search whose best fleet is a large node that eight pods fill, one of which waited with another seed."""
    given_ = prepare_input([make_deployment("web", 7, "1")])
    probe = probe_workload(given_, [pool], SEEDED)
    verifier = Verifier(given_, probe, SEEDED, Demands(seeds=2))
    search = FleetSearch(probe, verifier, Demands(seeds=2), SearchState(TimeBudget(20.0)))
    search._offer(verifier.verify(Fleet({NodeGroupKey(1, ""): 1})))
    simulation, _ = verifier.run(Fleet({NodeGroupKey(1, ""): 1}))
    assert simulation is not None
    verifier._waiting.note([next(iter(simulation.cluster.list("Pod")))])
    search._worth = np.full(len(probe.classes), search.state.price * SPARE_SHARE / 2)
    return search


def test_a_search_goes_on_with_room_for_spare_pods() -> None:
    search = tight_search(POOL)
    assert search.state.price == pytest.approx(LARGE.price)

    best = search.go_on_with_spare_room().best

    assert best is not None
    assert search.state.price == pytest.approx(0.36 + 0.10), "room for nine pods"
    assert [count_pods(search.verifier, best.fleet, seed) for seed in (0, 1, 2)] == [7, 9, 7]


def count_pods(verifier: Verifier, fleet: Fleet, further_seed: int) -> int:
    simulation, _ = verifier.run(fleet, further_seed)
    assert simulation is not None
    return len(list(simulation.cluster.list("Pod")))


def test_a_plan_stays_where_pools_have_no_node_for_spare_pods() -> None:
    search = tight_search(NodePool("p", (SMALL, LARGE), maximum=1))

    best = search.go_on_with_spare_room().best

    assert best is not None
    assert search.state.price == pytest.approx(LARGE.price)
    assert search.verifier.verify(best.fleet).is_good
