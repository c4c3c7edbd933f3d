"""The time limit of a search: the time that counts, and that no simulation begins without enough time left."""

import pytest

from bayplan.api.pod import Pod
from bayplan.planning import fleet_check
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.fleet_check import NO_DEMANDS, OtherSeeds, Verifier
from bayplan.planning.fleet_search import FleetSearch
from bayplan.planning.node_plan import NodePlan
from bayplan.planning.node_probe import probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.planner import PlanRequest, search_plan, steadied
from bayplan.planning.search_state import SearchState
from bayplan.planning.time_budget import TimeBudget
from bayplan.sim.simulation import Simulation
from tests.planning.test_plan import POOL, SEEDED, make_deployment


class FakeClock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def budget_of(limit_s: float, clock: FakeClock, spent_s: float = 0.0) -> TimeBudget:
    return TimeBudget(limit_s, spent_s, clock)


def test_time_of_workers_and_time_before_the_search_count_for_the_limit() -> None:
    clock = FakeClock()
    budget = budget_of(60.0, clock, spent_s=1.5)

    clock.now_s += 4.0
    budget.add(2.0)

    assert budget.spent_s() == pytest.approx(7.5)


@pytest.mark.parametrize(
    ("noted", "spent_s", "runs", "expected"),
    [
        pytest.param([], 9.9, 5, True, id="no simulation has been timed"),
        pytest.param([], 10.0, 0, False, id="the limit has been reached"),
        pytest.param([1.0], 3.9, 5, True, id="five and the one for the answer"),
        pytest.param([1.0], 4.0, 5, False, id="no time for the one for the answer"),
        pytest.param([1.0, 3.0], 4.9, 1, True, id="one of them may be the longest"),
        pytest.param([1.0, 3.0], 5.0, 1, False, id="no time for the longest"),
        pytest.param([9.0, *[1.0] * 8], 7.9, 1, True, id="only the last ones count"),
    ],
)
def test_has_time_for(noted: list[float], spent_s: float, runs: int, expected: bool) -> None:
    budget = budget_of(10.0, FakeClock(), spent_s)
    for seconds in noted:
        budget.note_run(seconds)

    assert budget.has_time_for(runs) is expected


class SlowBudget(TimeBudget):
    """Every simulation takes a second."""

    def __init__(self, limit_s: float) -> None:
        self.clock = FakeClock()
        super().__init__(limit_s, now=self.clock)

    def note_run(self, seconds: float) -> None:
        self.clock.now_s += 1.0
        super().note_run(1.0)


class CrowdedVerifier(Verifier):
    """Two pods wait with the seventh seed unless there are nine nodes."""

    def run(self, fleet: Fleet, further_seed: int = 0) -> tuple[Simulation | None, list[Pod]]:
        simulation, pending = super().run(fleet)
        assert simulation is not None
        is_short = further_seed == 6 and fleet.size() < 9
        return simulation, list(simulation.cluster.list("Pod")) if is_short else pending


@pytest.fixture(autouse=True)
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulations in workers would not move the clock."""
    monkeypatch.setattr(fleet_check, "count_workers", lambda: 0)


def slow_search(limit_s: float) -> tuple[FleetSearch, Verifier, TimeBudget]:
    given_, budget = prepare_input([make_deployment("web", 2, "1")]), SlowBudget(limit_s)
    probe = probe_workload(given_, [POOL], SEEDED)
    verifier = CrowdedVerifier(given_, probe, SEEDED, NO_DEMANDS, budget)
    return FleetSearch(probe, verifier, NO_DEMANDS, SearchState(budget)), verifier, budget


@pytest.mark.parametrize("limit_s", [1.0, 2.0, 6.0, 7.0, 9.0, 13.0, 22.0, 60.0])
def test_no_seed_is_tried_for_which_there_is_no_time(limit_s: float) -> None:
    search, verifier, budget = slow_search(limit_s)
    verdict = verifier.verify(Fleet({NodeGroupKey(0, ""): 1}))
    assert verdict.is_good
    verified_s = budget.spent_s()

    steadied(verdict, search.probe, verifier)

    assert verified_s == 5.0
    assert budget.spent_s() <= max(verified_s, limit_s - 1.0), "the answer needs a second"


def test_no_other_seed_is_tried_when_the_limit_is_over() -> None:
    search, verifier, _ = slow_search(6.0)
    verdict = verifier.verify(Fleet({NodeGroupKey(0, ""): 1}))

    assert steadied(verdict, search.probe, verifier) == (verdict, OtherSeeds(0, 0, 0))


@pytest.mark.parametrize("limit_s", [16.0, 30.0])
def test_time_for_a_fleet_with_more_nodes_is_left_once_pods_wait_with_a_seed(
    limit_s: float,
) -> None:
    search, verifier, _ = slow_search(limit_s)
    verdict = verifier.verify(Fleet({NodeGroupKey(0, ""): 8}))

    steady, others = steadied(verdict, search.probe, verifier)

    assert steady.fleet.size() == 9
    assert others.tried > 0
    assert others.is_steady


@pytest.mark.parametrize(
    ("limit_s", "expected"),
    [
        pytest.param(11.0, 5.0, id="no time for five simulations and that for the answer"),
        pytest.param(11.1, 10.0, id="time for them"),
    ],
)
def test_a_search_verifies_no_fleet_for_which_there_is_no_time(
    limit_s: float, expected: float
) -> None:
    search, verifier, budget = slow_search(limit_s)
    search._offer(verifier.verify(Fleet({NodeGroupKey(1, ""): 1})))

    search._run(search._improve, limit_s)

    assert budget.spent_s() == expected


def plan_within(limit_s: float, spent_s: float) -> NodePlan:
    given_ = prepare_input([make_deployment("web", 2, "1")])
    state = SearchState(budget_of(limit_s, FakeClock(), spent_s))
    return search_plan(given_, [POOL], SEEDED, PlanRequest(), state)


def test_a_limit_that_is_too_short_for_a_plan_is_named() -> None:
    found = plan_within(5.0, spent_s=6.0)

    assert found.groups, "the first plan is verified in any case"
    assert found.other_seeds == OtherSeeds(0, 0, 0)
    assert found.notices[0] == (
        "the time limit of 5 s is too short: the first plan was verified after 6.0 s of processor time, "
        "and a simulation takes 0.0 s"
    )


def test_a_limit_that_is_kept_is_not_named() -> None:
    assert not plan_within(5.0, spent_s=0.0).notices
