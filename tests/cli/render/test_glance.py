"""The first lines of a report: groups of pending pods, totals, use over time, and node names without their suffix."""

import io
from typing import Any

import pytest
from rich.console import Console

from bayplan.answers.stage import Stage
from bayplan.cli.render.cluster_totals import render_totals, render_use, sparkline
from bayplan.cli.render.consoles import PIPE_WIDTH
from bayplan.cli.render.node_names import NodeNames, common_suffix
from bayplan.cli.render.pending_rows import render_pending
from bayplan.cli.render.run_tables import render_report
from bayplan.sim import Simulation
from bayplan.sim.pending_pods import PendingGroup
from bayplan.sim.totals import TotalsChange
from bayplan.sim.use_over_time import UseSeries
from bayplan.testing.builders import make_node, make_pod

SUFFIX = ".eu-west-1.compute.internal"


def printed(render: Any, *given: Any, width: int = 80, **options: Any) -> list[str]:
    out = io.StringIO()
    render(Console(file=out, width=width, color_system=None), *given, **options)
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("names", "suffix"),
    [
        pytest.param([f"a{SUFFIX}", f"b{SUFFIX}"], SUFFIX, id="all have it"),
        pytest.param([f"a{SUFFIX}"], SUFFIX, id="one name"),
        pytest.param([f"a{SUFFIX}", f"b{SUFFIX}", "c"], SUFFIX, id="most have it"),
        pytest.param([f"a{SUFFIX}", "b", "c"], "", id="few have it"),
        pytest.param(["a.x.example.com", "b.y.example.com"], ".example.com", id="the shared part"),
        pytest.param([f"a{SUFFIX}", f"b{SUFFIX}", "a"], "", id="names that would be equal"),
        pytest.param(["10.0.0.1", "10.0.1.1"], "", id="addresses"),
        pytest.param(["node-1", "node-2"], "", id="no dots"),
    ],
)
def test_the_suffix_that_names_share(names: list[str], suffix: str) -> None:
    assert common_suffix(names) == suffix


def test_the_suffix_is_left_out_of_texts_but_not_out_of_other_names() -> None:
    names = NodeNames(SUFFIX)

    assert names.in_text(f"a{SUFFIX} is drained; ask a{SUFFIX}.example") == (
        f"a is drained; ask a{SUFFIX}.example"
    )


def test_whole_names_are_printed_without_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=PIPE_WIDTH)

    assert NodeNames.of(console, [f"a{SUFFIX}", f"b{SUFFIX}"]).short(f"a{SUFFIX}") == f"a{SUFFIX}"


def make_group(**changes: Any) -> PendingGroup:
    fields: dict[str, Any] = {
        "workload": "shop/web",
        "kind": "Deployment",
        "pods": [f"shop/web-{i}" for i in range(9)],
        "of": 40,
        "waiting": 12,
        "message": "0/40 nodes are available: 40 Insufficient cpu.",
        "refusals": {"Insufficient cpu": 40},
    }
    return PendingGroup(**{**fields, **changes})


def test_a_group_is_one_line() -> None:
    assert printed(render_pending, [make_group()], NodeNames()) == [
        "PENDING",
        "shop/web (12 of 40 pods): 9 x Insufficient cpu on 40 nodes",
        "",
    ]


@pytest.mark.parametrize("width", [80, 100, 200, PIPE_WIDTH])
def test_a_line_has_the_reasons_that_there_is_room_for(width: int) -> None:
    refusals = {"Insufficient cpu": 40, "node(s) had untolerated taint(s)": 6}
    refusals |= {f"node(s) said no {i}": 1 for i in range(30)}

    line = printed(render_pending, [make_group(refusals=refusals)], NodeNames(), width=width)[1]

    assert len(line) <= min(width, 200)
    assert line.startswith("shop/web (12 of 40 pods): 9 x Insufficient cpu on 40 nodes")
    assert line.endswith(", …")
    assert width < 100 or "untolerated taint(s) on 6" in line


def test_details_are_broken_between_words() -> None:
    group = make_group(message=f"0/40 nodes are available: 40 {'very ' * 50}full.")

    lines = printed(render_pending, [group], NodeNames(), details=True, width=PIPE_WIDTH)

    assert max(map(len, lines)) <= 100
    assert " ".join(line.strip() for line in lines[2:-1]) == (
        f"{group.message} {', '.join(group.pods)}"
    )


def test_totals_have_what_is_free_on_other_nodes_apart() -> None:
    nodes = [
        make_node("a", cpu="4", memory="8Gi"),
        make_node("tainted", cpu="8", memory="8Gi", taints=["gpu=yes:NoSchedule"]),
        make_node("closed", cpu="2", memory="8Gi", unschedulable=True),
    ]
    before = Stage(nodes).totals()
    after = Stage([*nodes, make_pod("p", cpu="1", node_name="a")]).totals()

    lines = printed(render_totals, TotalsChange(before, after), width=100)

    assert lines[1].split() == [
        "RESOURCE",
        "IN",
        "USE",
        "FREE",
        "OF",
        "1",
        "TAINTED",
        "1",
        "CORDONED",
    ]
    assert lines[2].split() == ["cpu", "▓░░░░░░░░░", "0→7%", "4→3", "14", "8", "2"]


def test_use_over_time_has_peak_mean_and_a_picture() -> None:
    series = [
        UseSeries("cpu", [0.0, 30.0], [1.0, 0.5], 60.0),
        UseSeries("pending", [0.0, 15.0], [8.0, 0.0], 60.0),
    ]

    assert printed(render_use, series, 60.0) == [
        "OVER 1m       PEAK  AT  MEAN",
        f"cpu           100%  0s   75%  {'█' * 20}{'▅' * 20}",
        f"pending pods     8  0s     2  {'█' * 10}{'▁' * 30}",
        "",
    ]


def test_nothing_is_said_of_a_run_in_which_nothing_changed_after_the_start() -> None:
    assert printed(render_use, [UseSeries("cpu", [0.0], [0.5], 300.0)], 300.0) == []


def test_a_little_is_never_drawn_as_nothing() -> None:
    assert sparkline([0, 0.001, 0.5, 1], 1.0) == "▁▂▅█"


def test_equal_values_are_drawn_alike() -> None:
    assert sparkline([0.5 - 1e-12, 0.5, 0.5 + 1e-12], 1.0) == "▅▅▅"


def test_a_report_at_80_columns_keeps_pod_and_node() -> None:
    name = "notification-dispatcher-754fd7b96f-"
    nodes = [make_node(f"ip-10-1-0-{i}{SUFFIX}", cpu="4") for i in range(3)]
    pods = [make_pod(f"{name}{i}", cpu="1", namespace="kube-system") for i in range(9)]
    report = Simulation([*nodes, *pods]).run()

    lines = printed(render_report, report, wide=True, everything=True, details=True)

    assert max(map(len, lines)) <= 80
    assert lines[0] == f"Node names without {SUFFIX}"
    assert lines[2].split()[:3] == ["NAMESPACE", "POD", "NODE"]
    row = next(line for line in lines if f"{name}0 " in line).split()
    assert row[2].startswith("ip-10-1-0-")
    assert row[2].count(".") == 0
