"""TopologyPlacementGenerator with levels that nest: the smallest domain that fits is taken."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.api.pod_groups import PREFERRED_TOPOLOGY as PREFERRED
from bayplan.errors import BayplanError
from bayplan.testing.builders import make_node
from tests.rig.groups import PLACEMENT_GATES, group_scenario, make_member, make_pod_group
from tests.rig.scenarios import Scenario

LEVELS = ["rack", "block", "zone"]
ARGS = {"TopologyPlacementGenerator": {"levels": LEVELS}}


def nodes() -> list[Any]:
    """Two zones with two blocks of two racks of two nodes each, for one pod each. Racks are numbered by block."""
    return [
        make_node(
            f"{zone}{block}{rack}{i}",
            cpu="1",
            labels={"zone": zone, "block": f"{zone}-{block}", "rack": str(rack)},
        )
        for zone in "ab"
        for block in (1, 2)
        for rack in (1, 2)
        for i in (1, 2)
    ]


def make_scenario(count: int, *, args: dict[str, Any] = ARGS, **group: Any) -> Scenario:
    """A gang of `count` pods in an empty cluster."""
    scenario = group_scenario(
        *nodes(), make_pod_group("g", count, **group), gates=PLACEMENT_GATES, args=args
    )
    scenario.add(*(make_member(f"m{i}", cpu="1") for i in range(count)))
    return scenario


def preferring(level: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {PREFERRED: level}}}


def schedule(scenario: Scenario) -> Any:
    """The account of one cycle of the group."""
    scenario.scheduler.schedule_one()
    return scenario.ended[-1].group


@pytest.mark.parametrize(
    ("count", "chosen"),
    [
        pytest.param(2, "a/a-1/1", id="a rack"),
        pytest.param(3, "a/a-1", id="a block, when no rack is large enough"),
        pytest.param(8, "a", id="a zone"),
    ],
)
def test_the_smallest_domain_that_fits(count: int, chosen: str) -> None:
    scenario = make_scenario(count, topology=["zone"])

    account = schedule(scenario)

    assert account.chosen.name == chosen
    assert all(scenario.pod(f"m{i}").node_name for i in range(count))


def test_without_levels_the_constraint_alone_counts() -> None:
    account = schedule(make_scenario(2, topology=["zone"], args={}))

    assert account.chosen.name == "a"
    assert [trial.placement.name for trial in account.placements] == ["a", "b"]


@pytest.mark.parametrize(
    ("count", "topology", "tried"),
    [
        pytest.param(3, "rack", 8, id="a rack holds two"),
        pytest.param(5, "block", 12, id="a block holds four"),
        pytest.param(9, "zone", 14, id="a zone holds eight"),
    ],
)
def test_no_domain_larger_than_the_constraint_is_tried(
    count: int, topology: str, tried: int
) -> None:
    scenario = make_scenario(count, topology=[topology])

    account = schedule(scenario)

    assert account.chosen is None
    assert account.status.message.startswith(f"0/{tried} placements are available")
    assert not any(scenario.pod(f"m{i}").node_name for i in range(count))


def test_a_constraint_that_is_no_level_is_as_in_kube_scheduler() -> None:
    args = {"TopologyPlacementGenerator": {"levels": ["rack"]}}
    account = schedule(make_scenario(2, topology=["block"], args=args))

    assert [t.placement.name for t in account.placements] == ["a-1", "a-2", "b-1", "b-2"]


@pytest.mark.parametrize(
    ("count", "preferred", "chosen"),
    [
        pytest.param(2, "rack", "a/a-1/1", id="a rack"),
        pytest.param(2, "block", "a/a-1", id="a block, although a rack is large enough"),
        pytest.param(5, "rack", "a", id="a zone, when nothing smaller is large enough"),
        pytest.param(12, "rack", "", id="anywhere in the end"),
    ],
)
def test_a_preferred_level(count: int, preferred: str, chosen: str) -> None:
    scenario = make_scenario(count, **preferring(preferred))

    account = schedule(scenario)

    assert account.chosen.name == chosen
    assert all(scenario.pod(f"m{i}").node_name for i in range(count))


@pytest.mark.parametrize(
    ("count", "chosen"), [pytest.param(2, "a/a-1", id="fits"), pytest.param(5, None, id="does not")]
)
def test_a_preferred_level_below_a_required_one(count: int, chosen: str | None) -> None:
    account = schedule(make_scenario(count, topology=["block"], **preferring("block")))

    assert (account.chosen and account.chosen.name) == chosen


@pytest.mark.parametrize(
    ("args", "group", "message"),
    [
        pytest.param(
            ARGS,
            preferring("row"),
            f'annotation {PREFERRED}: expected one of rack, block, zone; got "row"',
            id="an unknown level",
        ),
        pytest.param(
            {},
            preferring("rack"),
            f"annotation {PREFERRED}: expected one of the levels of the profile, which has none; "
            'got "rack"',
            id="a profile without levels",
        ),
        pytest.param(
            ARGS,
            {"topology": ["rack"], **preferring("zone")},
            f"annotation {PREFERRED}: expected rack, the topology constraint, or a level below it; "
            'got "zone"',
            id="a level above the constraint",
        ),
    ],
)
def test_a_preferred_level_that_cannot_be(
    args: dict[str, Any], group: dict[str, Any], message: str
) -> None:
    account = schedule(make_scenario(2, args=args, **group))

    assert account.status.message == f"pod group default/g: {message}"


@pytest.mark.parametrize(
    ("placed", "count", "chosen"),
    [
        pytest.param(["b211"], 1, "b/b-2/1", id="in one rack: there"),
        pytest.param(["b211", "b221"], 2, "b/b-2", id="in two racks: in their block"),
        pytest.param(["a111", "b221"], 1, None, id="in two zones: an error"),
    ],
)
def test_members_that_have_nodes(placed: list[str], count: int, chosen: str | None) -> None:
    scenario = group_scenario(
        *nodes(),
        make_pod_group("g", count, topology=["zone"]),
        *(make_member(f"old-{name}", cpu="1", node_name=name) for name in placed),
        gates=PLACEMENT_GATES,
        args=ARGS,
    )
    scenario.add(*(make_member(f"m{i}", cpu="1") for i in range(count)))

    account = schedule(scenario)

    assert (account.chosen and account.chosen.name) == chosen
    assert ("more than 1 domain" in account.status.message) is (chosen is None)


def test_nodes_without_a_level_are_in_no_domain_below_it() -> None:
    scenario = group_scenario(
        make_node("n", cpu="2", labels={"rack": "1", "zone": "a"}),
        make_pod_group("g", 1, topology=["zone"]),
        gates=PLACEMENT_GATES,
        args=ARGS,
    )
    scenario.add(make_member("m", cpu="1"))

    account = schedule(scenario)

    assert [trial.placement.name for trial in account.placements] == ["a"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param({"level": ["rack"]}, "unknown field `level`", id="an unknown field"),
        pytest.param({"levels": "rack"}, "Expected `array`", id="no list"),
        pytest.param(
            {"levels": ["rack", "rack"]}, "expected different labels", id="twice the same"
        ),
        pytest.param({"levels": [""]}, "expected different labels", id="an empty label"),
    ],
)
def test_arguments_that_are_refused(args: dict[str, Any], message: str) -> None:
    with pytest.raises(BayplanError, match=message):
        group_scenario(gates=PLACEMENT_GATES, args={"TopologyPlacementGenerator": args})
