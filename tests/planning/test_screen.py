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
from bayplan.planning.screen import FleetScreen, bare_pod
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


def test_there_is_no_guess_for_pods_that_prefer_some_nodes() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = [{"weight": 1, "preference": term}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    pool = NodePool("p", (SMALL, make_type("fast", 8, 16, 0.4, labels={"disk": "ssd"})))
    given = prepare_input([make_deployment("web", 2, "1", affinity=affinity)])
    probe = probe_workload(given, [pool], SEEDED)

    assert FleetScreen(probe, SEEDED).missing([fleet_of(1, 1)]) is None
