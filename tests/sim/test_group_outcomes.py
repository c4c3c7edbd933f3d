"""Pod groups in the report of a simulation: where they are, why they wait, and that waiting ends the run."""

from typing import Any

import pytest

from bayplan.sim import Simulation, SimulationReport
from bayplan.testing.builders import make_gang, make_node, make_pod
from tests.rig.groups import ALL_GROUP_GATES, TWO_ZONES

ZONE = "topology.kubernetes.io/zone"


def run(*objects: Any, gates: dict[str, bool] = ALL_GROUP_GATES) -> SimulationReport:
    return Simulation(list(objects), feature_gates=gates).run()


def test_a_group_that_fits_is_reported_with_its_domain_and_its_start() -> None:
    report = run(*TWO_ZONES, *make_gang("red", 3, topology_key=ZONE, cpu="1"))

    (group,) = report.groups
    assert (group.key, group.placed, group.members) == ("default/red", 3, 3)
    assert (len(group.domains), group.domains.total(), group.started_s) == (1, 3, 0)
    assert (group.has_started, group.cause) == (True, "")
    assert [p["members"] for p in group.to_dict()["placements"]] == [3, 3]


@pytest.mark.parametrize(
    ("objects", "cause"),
    [
        pytest.param(
            make_gang("red", 3, cpu="4"),
            "2 of 3 members fit; red-1 lacks cpu on every node",
            id="one member too many",
        ),
        pytest.param(
            make_gang("red", 4, cpu="4"),
            "2 of 4 members fit; red-1 and red-2 lack cpu on every node",
            id="two members too many",
        ),
        pytest.param(
            make_gang("red", 3, topology_key=ZONE, cpu="2"),
            f"2 of 3 members fit in {ZONE} one, the best of 2; red-1 lacks cpu on the only node",
            id="no domain is large enough",
        ),
        pytest.param(
            make_gang("red", 3, topology_key="rack", cpu="1"),
            "no node has the label rack, which the members must share: no feasible placements found",
            id="no node has the label",
        ),
        pytest.param(
            make_gang("red", 2, min_count=3, cpu="1"),
            "waiting for minCount pods from a gang to appear in scheduling queue (2 of 3 exist)",
            id="members are missing",
        ),
        pytest.param(
            make_gang("red", 2)[1:],
            'waiting for pods\'s pod group "red" to appear in scheduling queue '
            "(there is no such PodGroup)",
            id="the object is missing",
        ),
    ],
)
def test_a_group_that_waits_says_why(objects: list[Any], cause: str) -> None:
    report = run(*TWO_ZONES, *objects)

    (group,) = report.groups
    assert (group.has_started, group.cause) == (False, cause)
    assert not report.placed


def test_members_beyond_the_minimum_wait_for_their_own_reason() -> None:
    report = run(*TWO_ZONES, *make_gang("red", 3, min_count=2, cpu="4"))

    (group,) = report.groups
    assert (group.has_started, group.placed, group.members) == (True, 2, 3)
    assert group.cause == "2 of 3 members have nodes; red-2 lacks cpu on every node"


def test_running_members_count() -> None:
    group, *pods = make_gang("red", 2, cpu="1")

    report = run(*TWO_ZONES, group, pods[0].with_node("a"), pods[1])

    assert [(g.placed, g.members, g.started_s) for g in report.groups] == [(2, 2, 0)]


def test_groups_are_left_out_without_the_gate() -> None:
    report = run(*TWO_ZONES, *make_gang("red", 2), gates={})

    assert report.groups == []


def test_a_group_that_never_fits_is_tried_at_the_pace_of_its_backoff() -> None:
    report = run(*TWO_ZONES, *make_gang("red", 3, cpu="4"))

    assert max(result.attempts for result in report.pending) < 40


def test_a_group_starts_when_a_pod_ends() -> None:
    other = make_pod("other", cpu="4", annotations={"bayplan.dev/duration": "7m"})

    report = run(*TWO_ZONES, other, *make_gang("red", 2, cpu="4"))

    (group,) = report.groups
    assert group.started_s is not None
    assert 420 <= group.started_s <= 432


def test_of_many_domains_the_first_is_told() -> None:
    nodes = [make_node(f"n{i}", zone=f"z{i}", cpu="4") for i in range(6)]

    report = run(*nodes, *make_gang("red", 3, topology_key=ZONE, cpu="2"))

    (group,) = report.groups
    assert group.cause.startswith(f"2 of 3 members fit in the first {ZONE} by name; red-1 lacks")
