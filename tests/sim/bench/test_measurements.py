"""Comparison: regressions, growth of costs, and reading written reports."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.errors import InputError
from bayplan.sim.bench.growth_svg import draw_growth
from bayplan.sim.bench.measurements import (
    EventRun,
    LoadRun,
    PodRun,
    Run,
    best_of,
    compare,
    find_growth,
    read_report,
    write_report,
)


def make_run(workload: str = "a", nodes: int = 5000, **figures: Any) -> PodRun:
    cost = figures.pop("us_per_pod", 100.0)
    defaults = {"pods": 10, "placed": 10, "rounds": 10, "seconds": 1.0, "pods_per_s": 1e6 / cost}
    costs = {"p50_us": cost, "p99_us": 2 * cost, "mib_per_10k_pods": 17.0, "peak_mib": 80.0}
    return PodRun(workload=workload, nodes=nodes, us_per_pod=cost, **(defaults | costs | figures))


EVENT = EventRun(
    workload="e", event="b", nodes=5, waiting=3, events=2, us_per_event=7.5, moved_per_event=0.5
)
LOAD = LoadRun(
    workload="load",
    nodes=5,
    pods=9,
    mib=1.0,
    read_s=0.1,
    cluster_s=0.2,
    decision_s=0.3,
    seconds=0.6,
    peak_mib=50.0,
)


@pytest.mark.parametrize(
    ("before", "now", "slower", "faster", "bigger"),
    [
        pytest.param({}, {}, False, False, False, id="the same"),
        pytest.param({}, {"us_per_pod": 111.0}, True, False, False, id="slower"),
        pytest.param({}, {"us_per_pod": 109.0}, False, False, False, id="hardly slower"),
        pytest.param({}, {"us_per_pod": 90.0}, False, True, False, id="faster"),
        pytest.param({}, {"us_per_pod": 92.0}, False, False, False, id="hardly faster"),
        pytest.param({}, {"mib_per_10k_pods": 19.0}, False, False, True, id="more memory"),
        pytest.param(
            {"mib_per_10k_pods": 1.0}, {"mib_per_10k_pods": 1.9}, False, False, False, id="little"
        ),
    ],
)
def test_change_is_judged_by_the_threshold(
    before: dict[str, Any], now: dict[str, Any], slower: bool, faster: bool, bigger: bool
) -> None:
    (change,) = compare([make_run(**before)], [make_run(**now)], 0.1)

    assert (change.is_slower, change.is_faster, change.is_bigger) == (slower, faster, bigger)


def test_runs_are_compared_with_those_of_their_name_and_size() -> None:
    before: list[Run] = [make_run(nodes=1000), make_run("b"), EVENT, LOAD]
    now: list[Run] = [
        make_run(),
        make_run("b", us_per_pod=50.0),
        EVENT,
        LOAD,
        make_run("b", pods=7),
    ]

    changes = compare(before, now, 0.1)

    assert [change.by for change in changes] == [None, -0.5, 0, 0, None]


def test_best_of_several_is_taken_with_the_spread() -> None:
    repeats: list[list[Run]] = [
        [make_run(us_per_pod=cost), EVENT] for cost in (120.0, 100.0, 150.0)
    ]

    best, event = best_of(repeats)

    assert isinstance(best, PodRun)
    assert (best.us_per_pod, best.repeats, best.spread) == (100.0, 3, 0.5)
    assert (event.repeats, event.spread) == (3, 0)


def test_growth_is_found_where_sizes_differ() -> None:
    runs: list[Run] = [
        make_run(nodes=15_000, us_per_pod=300.0),
        make_run(nodes=1000, us_per_pod=100.0),
        make_run("b"),
        EVENT,
        make_run(nodes=5000, us_per_pod=150.0),
    ]

    (growth,) = find_growth(runs, PodRun)

    assert growth.workload == "a"
    assert [run.nodes for run in growth.runs] == [1000, 5000, 15_000]
    assert growth.factors(lambda run: run.us_per_pod) == [1.5, 2.0]


def test_a_written_report_reads_back(tmp_path: Path) -> None:
    runs: list[Run] = [make_run(), EVENT, LOAD]

    write_report(tmp_path / "a.json", runs)

    assert read_report(tmp_path / "a.json") == runs


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "a.json: expected a readable file; got No such file", id="nothing"),
        pytest.param("{", "a.json: expected a BenchReport in JSON", id="no JSON"),
        pytest.param("[]", "a.json: expected a BenchReport in JSON", id="a list"),
        pytest.param('{"runs": [{"measured": "x"}]}', "a.json: expected a BenchReport", id="a run"),
        pytest.param(
            '{"runs": [], "kind": "Pod"}',
            "a.json: expected a BenchReport of bayplan.dev/v1; got Pod",
            id="something else",
        ),
    ],
)
def test_an_invalid_report_is_rejected(tmp_path: Path, content: str | None, problem: str) -> None:
    file = tmp_path / "a.json"
    if content is not None:
        file.write_text(content)

    with pytest.raises(InputError) as error:
        read_report(file)

    assert problem in str(error.value)


def test_an_unwritable_report_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a writable file; got Is a directory"):
        write_report(tmp_path, [])


COSTS = st.lists(st.floats(0.2, 1e7), min_size=2, max_size=3)


@given(st.lists(COSTS, min_size=1, max_size=20))
def test_every_cost_is_within_its_chart(costs: list[list[float]]) -> None:
    runs = [
        make_run(f"w<{i}>", nodes, us_per_pod=cost)
        for i, each in enumerate(costs)
        for nodes, cost in zip((1000, 5000, 15_000), each, strict=False)
    ]

    picture = ET.fromstring(draw_growth(find_growth(runs, PodRun)))

    charts = [element for element in picture.iter() if element.tag.endswith("}g")]
    assert len(charts) == len(costs)
    assert {text.text for text in picture.iter() if text.get("class") == "text name"} == {
        f"w<{i}>" for i in range(len(costs))
    }
    for dot in (element for element in picture.iter() if element.tag.endswith("}circle")):
        assert 34 <= float(dot.attrib["cx"]) <= 176
        assert 30 <= float(dot.attrib["cy"]) <= 108


def test_an_empty_chart_is_rejected() -> None:
    with pytest.raises(InputError, match="--svg: expected runs at several numbers of nodes"):
        draw_growth([])
