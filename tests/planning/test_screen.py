"""Guesses about fleets: where only amounts decide, the kernel's result equals that of a simulation."""

from typing import Any

import numpy as np
import pytest

from bayplan.amounts import kernel
from bayplan.planning import NodePool
from bayplan.planning.fleet import Fleet, NodeGroupKey
from bayplan.planning.fleet_check import NO_DEMANDS, Verifier
from bayplan.planning.node_probe import Probe, probe_workload
from bayplan.planning.plan_input import prepare_input
from bayplan.planning.screen import FEW_TIES, FleetScreen, bare_pod
from bayplan.testing.builders import make_pod

from .test_plan import POOL, SEEDED, SMALL, apart, make_daemon, make_deployment, make_type

pytestmark = pytest.mark.skipif(kernel.compiled is None, reason="the kernel is not built")


def probe_of(objects: list[Any]) -> Probe:
    return probe_workload(prepare_input(objects), [POOL], SEEDED)


def fleet_of(*numbers: int) -> Fleet:
    return Fleet({NodeGroupKey(i, ""): n for i, n in enumerate(numbers) if n})


def test_a_guess_is_what_a_simulation_finds_where_only_amounts_decide() -> None:
    sizes = ("100m", "300m", "900m", "1500m", "2500m")
    pods = [
        make_pod(f"p{i}", cpu=sizes[i * 7 % 5], memory=f"{1 + i % 3}Gi", priority=i % 2)
        for i in range(40)
    ]
    objects = [*pods, make_daemon("150m")]
    given = prepare_input(objects)
    probe = probe_workload(given, [POOL], SEEDED)
    verifier, screen = Verifier(given, probe, SEEDED, NO_DEMANDS), FleetScreen(probe, SEEDED)
    fleets = [fleet_of(0, 3), fleet_of(2, 5), fleet_of(9, 3), fleet_of(4, 9)]

    guesses = screen.missing(fleets)

    assert guesses is not None
    found = [int(verifier.verify(fleet).missing.sum()) for fleet in fleets]
    assert found[0] > found[1] > found[-1] == 0
    assert guesses.sum(axis=1).tolist() == pytest.approx(found, abs=1)  # equal nodes are drawn


def test_what_pods_demand_of_other_pods_is_left_out_of_a_guess() -> None:
    objects = [make_deployment("web", 6, "300m", affinity=apart("web"))]
    probe = probe_of(objects)

    guesses = FleetScreen(probe, SEEDED).missing([fleet_of(0, 1)])

    assert guesses is not None
    assert guesses.tolist() == [[0]]


@pytest.mark.parametrize(
    ("spec", "is_trusted"),
    [
        pytest.param({}, True, id="only amounts decide"),
        pytest.param({"affinity": apart("web")}, False, id="anti-affinity"),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            False,
            id="spread",
        ),
    ],
)
def test_guesses_are_trusted_only_where_no_pod_depends_on_others(
    spec: dict[str, Any], is_trusted: bool
) -> None:
    probe = probe_of([make_deployment("web", 6, "300m", **spec), make_deployment("a", 1, "1")])

    assert FleetScreen(probe, SEEDED).is_trusted == is_trusted


def test_a_bare_pod_keeps_what_it_demands_of_nodes() -> None:
    pod = make_pod(
        "p",
        node_selector={"disk": "ssd"},
        affinity=apart("p"),
        host_ports=[80],
        labels={"app": "p"},
        cpu="1",
    )

    bare = bare_pod(pod)

    assert bare.spec.node_selector == {"disk": "ssd"}
    assert bare.requests == pod.requests
    assert not bare.spec.has_pod_terms
    assert not bare.spec.host_ports
    assert not bare.labels


def test_a_guess_that_was_too_good_makes_the_next_ones_stricter() -> None:
    probe = probe_of([make_deployment("web", 8, "900m")])
    screen = FleetScreen(probe, SEEDED)
    full = fleet_of(0, 1)  # eight of 900m on eight cores
    assert np.array(screen.missing([full])).sum() == 0

    screen.learn(guessed=0, found=2)

    assert np.array(screen.missing([full])).sum() == 1


def test_a_fleet_is_steady_if_no_way_to_break_ties_leaves_a_pod_pending() -> None:
    # The first pod has the same score on both types; on the large one it takes the room of the second.
    probe = probe_of(
        [make_pod("first", cpu="10m", memory="1Ki"), make_pod("second", cpu="8", memory="1Ki")]
    )
    screen = FleetScreen(probe, SEEDED)

    lucky = [np.array(screen.missing([fleet_of(1, 1)], range(i, i + 1))).sum() for i in range(9)]
    steady = screen.with_room_for_ties(fleet_of(1, 1), FEW_TIES)

    assert set(lucky) == {0, 1}
    assert not screen.is_steady(fleet_of(1, 1), FEW_TIES)
    assert screen.is_unfit(fleet_of(1, 1))
    assert steady == fleet_of(1, 2)
    assert screen.is_steady(fleet_of(1, 2), FEW_TIES)


@pytest.mark.parametrize(
    ("numbers", "learned", "expected"),
    [
        pytest.param(
            [(1, 1), (0, 3), (1, 2)],
            0,
            [((1, 2), 0)],
            id="the cheapest that is steady, if there is one",
        ),
        pytest.param(
            [(0, 9), (0, 8), (0, 7)],
            9,
            [((0, 7), 0), ((0, 8), 0)],
            id="several that are cheap, if guesses were wrong",
        ),
        pytest.param([(3, 0)], 0, [], id="none that is unfit, if guesses are not too strict"),
        pytest.param([(3, 0)], 1, [((3, 0), 1)], id="the best that is unfit, if they may be"),
    ],
)
def test_fleets_to_simulate_are_chosen(
    numbers: list[tuple[int, int]], learned: int, expected: list[tuple[tuple[int, int], int]]
) -> None:
    probe = probe_of(
        [make_pod("first", cpu="10m", memory="1Ki"), make_pod("second", cpu="8", memory="1Ki")]
    )
    screen = FleetScreen(probe, SEEDED)
    for _ in range(learned):
        screen.learn(guessed=0, found=1)

    chosen = screen.choose([fleet_of(*one) for one in numbers], np.ones(2), 2, 1, FEW_TIES)

    assert chosen is not None
    assert chosen.fleets == [(fleet_of(*one), guess) for one, guess in expected]


def test_there_is_no_guess_for_pods_that_prefer_some_nodes() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = [{"weight": 1, "preference": term}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    pool = NodePool("p", (SMALL, make_type("fast", 8, 16, 0.4, labels={"disk": "ssd"})))
    given = prepare_input([make_deployment("web", 2, "1", affinity=affinity)])
    probe = probe_workload(given, [pool], SEEDED)

    screen = FleetScreen(probe, SEEDED)

    assert screen.missing([fleet_of(1, 1)]) is None
    assert not screen.is_trusted
    assert screen.choose([fleet_of(1, 1)], np.ones(1), 1, 1, FEW_TIES) is None
    assert screen.with_room_for_ties(fleet_of(1, 1), FEW_TIES) is None
    assert not screen.is_steady(fleet_of(1, 1), FEW_TIES)
