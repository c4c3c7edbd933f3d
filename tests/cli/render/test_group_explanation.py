"""The account of a pod group as text: headline, members, placements, preemption, and what would let it run."""

import io
from typing import Any

import pytest
from rich.console import Console

from bayplan.answers import explain_group
from bayplan.answers.stage import Stage
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.cli.render.group_explanation import MAX_CHANGES, MAX_PLACEMENTS, render_group_account
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_gang, make_node, make_object, make_pod
from tests.rig.groups import ALL_GROUP_GATES, TWO_ZONES, make_member, make_pod_group

ZONE = "topology.kubernetes.io/zone"


def lines_of(*objects: Any, everything: bool = False) -> list[str]:
    """The lines about the group `red`, without the spaces around them."""
    view = Stage(objects, Settings(feature_gates=ALL_GROUP_GATES), as_is=True).view()
    account = explain_group(view, "default", "red")
    out = io.StringIO()
    console = Console(file=out, width=500, color_system=None)
    render_group_account(console, account, everything=everything)
    return [line.strip() for line in out.getvalue().splitlines()]


def urgent_gang(size: int, cpu: str) -> list[Any]:
    """A gang with priority, and its class."""
    group, *pods = make_gang("red", size, cpu=cpu, priority=10)
    tree = to_dict(group)
    group = decode_object({**tree, "spec": {**tree["spec"], "priority": 10}})
    return [make_object("PriorityClass", "high", value=10), group, *pods]


def placed_gang(size: int, node: str) -> list[Any]:
    group, *pods = make_gang("red", size, cpu="1")
    return [group, *(pod.with_node(node) for pod in pods)]


@pytest.mark.parametrize(
    ("objects", "headline"),
    [
        pytest.param(
            make_gang("red", 2, topology_key=ZONE, cpu="3")[:2],
            "is held back  (1 member, minCount 2)",
            id="too few members",
        ),
        pytest.param(
            make_gang("red", 2, cpu="1"), "would start  (2 members, minCount 2)", id="it fits"
        ),
        pytest.param(
            [make_pod_group("red"), make_member("m", "red")],
            "would start  (1 member)",
            id="a group that is no gang",
        ),
        pytest.param(
            [
                make_node("c", zone="three", cpu="9"),
                *make_gang("red", 2, topology_key=ZONE, cpu="3"),
            ],
            f"would start  (2 members, minCount 2, {ZONE} three)",
            id="a zone for all members",
        ),
        pytest.param(
            make_gang("red", 2, topology_key=ZONE, cpu="3"),
            "is pending  (2 members, minCount 2)",
            id="no zone for all members",
        ),
        pytest.param(placed_gang(2, "a"), "is placed  (2 members, minCount 2)", id="it runs"),
        pytest.param(
            make_gang("red", 2)[:1], "has no members  (0 members, minCount 2)", id="no members"
        ),
        pytest.param(
            [make_pod("victim", cpu="1", node_name="a"), *urgent_gang(2, "4")],
            "would start once preempted pods are gone  (2 members, minCount 2)",
            id="it preempts",
        ),
    ],
)
def test_the_headline_has_the_verdict_and_the_facts(objects: list[Any], headline: str) -> None:
    assert lines_of(*TWO_ZONES, *objects)[0] == f"podgroup default/red {headline}"


def test_a_group_without_members_has_nothing_but_its_headline() -> None:
    assert len(lines_of(*TWO_ZONES, make_gang("red", 2)[0])) == 1


def test_a_group_that_is_held_back_has_the_cause_and_a_note_below_the_headline() -> None:
    lines = lines_of(*TWO_ZONES, *make_gang("red", 2, min_count=5))

    assert lines[1:3] == [
        "waiting for minCount pods from a gang to appear in scheduling queue (2 of 5 exist)",
        "note: members are held back; the rest describes what would happen otherwise",
    ]


def test_members_with_the_same_result_share_a_row() -> None:
    lines = lines_of(*TWO_ZONES, *placed_gang(2, "a"))

    assert [line.split() for line in lines[2:]] == [
        ["MEMBERS", "STATE", "NODE", "REASON"],
        ["red-0,", "red-1", "placed", "a"],
    ]


@pytest.mark.parametrize(
    ("everything", "names"),
    [
        pytest.param(False, "m-0, m-1, m-2 and 2 more", id="some"),
        pytest.param(True, "m-0, m-1, m-2, m-3, m-4", id="all of them"),
    ],
)
def test_many_members_are_named_in_full_on_request(everything: bool, names: str) -> None:
    members = [make_member(f"m-{i}", "red", node_name="a") for i in range(5)]

    lines = lines_of(*TWO_ZONES, make_pod_group("red", 5), *members, everything=everything)

    assert lines[3].split("  ")[0] == names


def test_a_member_that_does_not_fit_has_the_reasons_and_the_number_of_nodes() -> None:
    lines = lines_of(*TWO_ZONES, *make_gang("red", 3, cpu="4"))

    (refused,) = (line for line in lines if "does not fit" in line)
    assert refused.split()[-4:] == ["-", "2", "Insufficient", "cpu"]


def test_a_group_without_a_topology_has_no_placements() -> None:
    lines = lines_of(*TWO_ZONES, *make_gang("red", 2, cpu="1"))

    assert not any("NODES  MEMBERS" in line for line in lines)


def zones(count: int) -> list[Any]:
    """One node per zone."""
    return [make_node(f"n{i}", zone=f"z{i:02}", cpu="4") for i in range(count)]


def placement_rows(*nodes: Any, everything: bool = False) -> list[list[str]]:
    """The words of each line of the table of placements."""
    gang = make_gang("red", 2, topology_key=ZONE, cpu="1")
    lines = lines_of(*nodes, *gang, everything=everything)
    start = next(i for i, line in enumerate(lines) if line.startswith(ZONE))
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [line.split() for line in lines[start:end]]


def test_placements_have_their_scores_and_the_chosen_one_is_first() -> None:
    rows = placement_rows(make_node("a", zone="one", cpu="8"), make_node("b", zone="two", cpu="2"))

    plugins = ["NodeResourcesFit", "PodGroupPodsCount"]
    assert rows[0] == [ZONE, "NODES", "MEMBERS", "TOTAL", *plugins]
    chosen, other = rows[1:]
    assert (chosen[:4], other[:3]) == (["★", "two", "1", "2"], ["one", "1", "2"])
    assert int(chosen[4]) == int(chosen[5]) + int(chosen[6]) > int(other[3])


def test_a_placement_without_room_has_no_scores() -> None:
    small = make_node("small", zone="z9", cpu="1")

    rows = placement_rows(*zones(2), small)

    assert rows[-1] == ["z9", "1", "1", "-", "-", "-"]


def test_where_one_placement_is_possible_no_scores_are_shown() -> None:
    rows = placement_rows(*zones(1), make_node("small", zone="z9", cpu="1"))

    assert rows == [
        [ZONE, "NODES", "MEMBERS"],
        ["★", "z00", "1", "2"],
        ["z9", "1", "1"],
    ]


@pytest.mark.parametrize(
    ("count", "everything", "shown", "last"),
    [
        pytest.param(MAX_PLACEMENTS, False, MAX_PLACEMENTS, "z09", id="as many as are shown"),
        pytest.param(MAX_PLACEMENTS + 2, True, MAX_PLACEMENTS + 2, "z11", id="all of them"),
    ],
)
def test_all_placements_are_shown(count: int, everything: bool, shown: int, last: str) -> None:
    rows = placement_rows(*zones(count), everything=everything)

    assert (len(rows) - 1, rows[-1][0]) == (shown, last)


def test_more_placements_are_counted() -> None:
    rows = placement_rows(*zones(MAX_PLACEMENTS + 2))

    assert len(rows) == MAX_PLACEMENTS + 2  # the headings, and the line that counts
    assert " ".join(rows[-1]) == "… 2 more; --all shows them"


@pytest.mark.parametrize(
    ("objects", "line"),
    [
        pytest.param(
            [make_pod("victim", cpu="1", node_name="a"), *urgent_gang(2, "4")],
            "it would push out default/victim",
            id="a pod would be preempted",
        ),
        pytest.param(
            make_gang("red", 3, cpu="4"),
            "preemption does not help: No preemption victims found for incoming preemptor",
            id="there is no pod to preempt",
        ),
    ],
)
def test_the_result_of_preemption_is_told(objects: list[Any], line: str) -> None:
    assert line in lines_of(*TWO_ZONES, *objects)


def test_nothing_is_said_of_a_preemption_that_was_not_tried() -> None:
    lines = lines_of(*TWO_ZONES, *make_gang("red", 2, cpu="1"))

    assert not any("preemption" in line or "push out" in line for line in lines)


def test_the_message_of_the_condition_stands_before_the_ways() -> None:
    lines = lines_of(*TWO_ZONES, *make_gang("red", 3, cpu="4"))

    message = next(i for i, line in enumerate(lines) if "placements are available" in line)
    assert lines[message + 1 : message + 3] == ["", "WHAT WOULD LET THE GROUP RUN"]


def test_a_way_that_adds_nodes_is_told_by_its_goal_alone() -> None:
    assert "add 1 node like a" in lines_of(*TWO_ZONES, *make_gang("red", 3, cpu="4"))


def test_another_way_has_its_changes_after_its_goal() -> None:
    lines = lines_of(*TWO_ZONES, *make_gang("red", 3, cpu="4"))

    goal = "let the gang begin with 2 members"
    assert f"{goal}: make PodGroup red again with minCount 2" in lines


def changes_shown(count: int, *, everything: bool = False) -> list[str]:
    """The changes named in the way that lets a gang run whose members each want more than a node has."""
    nodes = [make_node(f"n{i}", cpu="4") for i in range(count)]
    members = [make_member(f"m-{i}", "red", cpu=str(5 + i)) for i in range(count)]
    lines = lines_of(*nodes, make_pod_group("red", count), *members, everything=everything)
    return lines[-1].partition(": ")[2].split("; ")


@pytest.mark.parametrize(
    ("count", "everything"),
    [
        pytest.param(MAX_CHANGES, False, id="as many as are shown"),
        pytest.param(MAX_CHANGES + 3, True, id="all of them"),
    ],
)
def test_all_changes_of_a_way_are_named(count: int, everything: bool) -> None:
    changes = changes_shown(count, everything=everything)

    assert len(changes) == count
    assert all(change.startswith(("raise cpu on ", "request ")) for change in changes)


def test_more_changes_of_a_way_are_counted() -> None:
    changes = changes_shown(MAX_CHANGES + 3)

    assert (len(changes), changes[-1]) == (MAX_CHANGES + 1, "and 3 more")
