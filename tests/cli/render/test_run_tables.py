"""Tables: bars, durations, and omissions on a terminal."""

import io

import pytest
from rich.console import Console

from bayplan.api.pod import Pod
from bayplan.cli.render.plugin_results import render_explanation
from bayplan.cli.render.run_tables import MAX_NODES, MAX_PODS, render_report
from bayplan.cli.render.tables import duration, make_bar
from bayplan.framework import SUCCESS, unschedulable
from bayplan.scheduler import Attempt, Explanation, Outcome, PluginScore
from bayplan.sim import NodeUse, PodResult, SimulationReport
from tests.rig.trees import node_of


def make_console(width: int = 80) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("before", "after", "bar"),
    [
        pytest.param(0, 0, "░░░░░░░░░░", id="empty"),
        pytest.param(0.5, 0.5, "█████░░░░░", id="no change"),
        pytest.param(0.2, 0.6, "██▓▓▓▓░░░░", id="more"),
        pytest.param(0.6, 0.2, "██▒▒▒▒░░░░", id="less"),
        pytest.param(0, 0.001, "▓░░░░░░░░░", id="a little is not nothing"),
        pytest.param(0, 0.999, "▓▓▓▓▓▓▓▓▓░", id="nearly full is not full"),
        pytest.param(1, 1, "██████████", id="full"),
        pytest.param(1.3, 1.3, "██████████", id="overcommitted"),
    ],
)
def test_bars(before: float, after: float, bar: str) -> None:
    assert "".join(piece for piece, _ in make_bar(before, after)) == bar


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0031, "3 ms"), (1.25, "1.2 s"), (75.4, "1 min 15 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def make_report(pods: int, nodes: int, pending: int = 0) -> SimulationReport:
    placed = [
        PodResult(Attempt(Pod(f"p{i}"), Outcome.BOUND, node_name="n0", score=7))
        for i in range(pods)
    ]
    waiting = [
        PodResult(Attempt(Pod(f"w{i}"), Outcome.UNSCHEDULABLE, message=f"reason {i // 5}"))
        for i in range(pending)
    ]
    uses = [
        NodeUse(node_of(f"n{i}", extended={"example.com/gpu": "2"}), {}, {"cpu": 2000}, 0, i)
        for i in range(nodes)
    ]
    return SimulationReport(placed + waiting, uses, running=0, seconds=0.003)


def test_long_tables_are_cut_with_a_hint() -> None:
    console = make_console()

    render_report(console, make_report(MAX_PODS + 1234, MAX_NODES + 1, 60))

    text = text_of(console)
    assert "default    pods without an owner  1,334   1,274         1\n" in text
    assert "1,274 pods placed; --all shows each\n" in text
    assert "… and 1 more node; --all shows them" in text
    assert "default/w0 and 4 more pods: reason 0\n" in text
    assert "\nn0 " not in text
    assert text.splitlines()[-1] == "1,274 of 1,334 pods placed, 60 pending, 3 ms"


def test_each_pod_has_a_line_as_long_as_there_are_few() -> None:
    console = make_console()

    render_report(console, make_report(MAX_PODS, 1))

    assert f"default    p{MAX_PODS - 1}  n0        7    0s\n" in text_of(console)


def test_everything_is_shown_when_asked_for() -> None:
    console = make_console()

    render_report(console, make_report(MAX_PODS + 2, MAX_NODES + 2, 60), everything=True)

    text = text_of(console)
    assert "--all" not in text
    assert f"p{MAX_PODS + 1} " in text
    assert "\nn0 " in text
    assert "reason 11" in text


def test_other_resources_are_shown_where_they_are_used() -> None:
    report = make_report(0, 1)
    report.nodes[0].after = {**report.nodes[0].after, "example.com/gpu": 1}
    console = make_console()

    render_report(console, report)

    lines = text_of(console).splitlines()
    assert lines[0].split()[-1] == "GPU"
    assert lines[1].rstrip().endswith("0→1 of 2")


def test_preempted_pods_are_named() -> None:
    report = make_report(1, 1)
    report.preempted.append((Pod("victim", node_name="n0"), Pod("urgent")))
    console = make_console()

    render_report(console, report)

    assert "default/victim  n0    default/urgent" in text_of(console)
    assert "1 of 1 pod placed, 1 preempted, 3 ms" in text_of(console)


def make_explanation(feasible: int, refused: int) -> Explanation:
    fit = unschedulable("Insufficient cpu").by("NodeResourcesFit")
    verdicts = {f"n{i}": SUCCESS for i in range(feasible)}
    verdicts |= {f"r{i}": fit for i in range(refused)}
    scores = {f"n{i}": i // 2 for i in range(feasible)}
    return Explanation(
        SUCCESS,
        None,
        [],
        verdicts,
        scores=[
            PluginScore("NodeResourcesFit", 2, scores, scores),
            PluginScore("ImageLocality", 1, dict.fromkeys(scores, 5), dict.fromkeys(scores, 5)),
        ],
        totals={name: points * 2 + 5 for name, points in scores.items()},
    )


def explain(attempt: Attempt, everything: bool = False) -> list[str]:
    console = make_console()
    render_explanation(console, attempt, everything)
    return [line.rstrip() for line in text_of(console).splitlines()]


def test_equal_nodes_share_a_row_and_the_winner_is_marked() -> None:
    attempt = Attempt(Pod("a"), Outcome.BOUND, node_name="n4", explanation=make_explanation(5, 5))

    lines = explain(attempt)

    assert lines[0] == "default/a → n4  (score 9, 2 ahead of n2)"
    assert [line.split() for line in lines[4:8]] == [
        ["NODE", "TOTAL", "×2"],
        ["★", "n4", "9", "4"],
        ["n2,", "n3", "7", "2"],
        ["n0,", "n1", "5", "0"],
    ]
    assert lines[8].strip() == "the same for all: ImageLocality 5"
    assert lines[10].split(maxsplit=2) == [
        "5",
        "NodeResourcesFit",
        "Insufficient cpu  r0, r1, r2 and 2 more",
    ]


def test_a_draw_is_called_a_draw() -> None:
    attempt = Attempt(Pod("a"), Outcome.BOUND, node_name="n1", explanation=make_explanation(2, 0))

    assert explain(attempt)[0] == "default/a → n1  (score 5, drawn among 2 equals)"


def test_a_long_table_of_scores_is_cut() -> None:
    attempt = Attempt(
        Pod("a"), Outcome.BOUND, node_name="n99", explanation=make_explanation(100, 0)
    )

    cut, whole = explain(attempt), explain(attempt, everything=True)

    assert any(line.strip() == "… 80 more with 83 or less" for line in cut)
    assert len(whole) > len(cut)
    assert not any("more with" in line for line in whole)


def test_a_pod_that_was_never_tried_has_its_message() -> None:
    lines = explain(Attempt(Pod("a"), Outcome.GATED, message="waits"))

    assert lines == ["default/a is gated", "  waits"]


def test_a_refusal_before_any_node_was_looked_at() -> None:
    explanation = Explanation(unschedulable("claim is missing"), None, [], {})
    attempt = Attempt(Pod("a"), Outcome.UNSCHEDULABLE, message="0/1", explanation=explanation)

    assert explain(attempt) == [
        "default/a is unschedulable",
        "  PreFilter: claim is missing",
        "  0/1",
    ]
