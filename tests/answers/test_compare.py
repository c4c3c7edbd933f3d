"""Compare: metrics are correct, and equal schedulers give equal results."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.answers.compare import Comparison, Contender, compare
from bayplan.config.load import load_config
from bayplan.errors import InputError
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PACK = load_config(EXAMPLES / "compare" / "most-allocated.yaml")


def run(objects: list[Any], *configs: Any, **options: Any) -> Comparison:
    schedulers = [(f"c{i}", Settings(config)) for i, config in enumerate(configs)]
    return compare(objects, schedulers, **options)


def test_spreading_and_packing_leave_different_free_resources() -> None:
    objects = [make_node("a"), make_node("b"), *(make_pod(f"p{i}", cpu="1") for i in range(4))]

    found = run(objects, None, PACK)

    spread, pack = ({m.name: m.mean for m in c.metrics.values()} for c in found.contenders)
    assert (spread["emptyNodes"], pack["emptyNodes"]) == (0, 1)
    assert (spread["cpuSpread"], pack["cpuSpread"]) == (0.0, 0.5)
    assert spread["cpuUtilisation"] == pack["cpuUtilisation"] == 0.5
    assert spread["placed"] == pack["placed"] == 4
    assert len(found.differences()) == 2


def test_waiting_time_is_counted() -> None:
    short = {"bayplan.dev/duration": "10s"}
    objects = [
        make_node("a", cpu="1"),
        make_pod("first", cpu="1", annotations=short),
        make_pod("second", cpu="1", annotations=short),
    ]

    found = run(objects, None)

    metrics = found.contenders[0].metrics
    assert metrics["maxLatency"].mean >= 10
    assert metrics["meanLatency"].mean == pytest.approx(metrics["maxLatency"].mean / 2)


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=25)
def test_a_scheduler_compared_with_itself_shows_no_difference(
    cpus: list[int], nodes: int, seeds: int
) -> None:
    objects: list[Any] = [make_node(f"n{i}") for i in range(nodes)]
    objects += [make_pod(f"p{i}", cpu=str(cpu)) for i, cpu in enumerate(cpus)]

    found = run(objects, PACK, PACK, seeds=seeds)

    first, second = found.contenders
    pairs = [(each, second.metrics[name]) for name, each in first.metrics.items()]
    assert [a.name for a, b in pairs if a != b and a.measure.is_repeatable] == []
    assert not any(
        each.is_significant
        for name, each in found.against_first(second).items()
        if first.metrics[name].measure.is_repeatable
    )
    assert found.differences() == []
    assert found.seeds == list(range(seeds))


def test_seeds_give_mean_and_deviation() -> None:
    objects = [make_node("a"), make_node("b", cpu="5"), make_pod("p"), make_pod("q", cpu="4")]

    found = run(objects, None, seeds=6)

    for metric in found.contenders[0].metrics.values():
        assert len(metric.values) == 6
        assert min(metric.values) - 1e-9 <= metric.mean <= max(metric.values) + 1e-9


def test_differences_are_paired_by_seed() -> None:
    found = run([make_node("a"), make_node("b"), make_pod("p"), make_pod("q")], None, PACK, seeds=3)

    first, second = found.contenders
    differences = found.against_first(second)
    assert differences["emptyNodes"].is_significant
    assert not differences["placed"].is_significant
    assert not any(each.is_significant for each in found.against_first(first).values())
    row = next(row for row in found.shown_rows() if row["metric"] == "emptyNodes")
    assert row["significant"] == "c1"


def test_one_run_says_nothing_about_significance() -> None:
    found = run([make_node("a"), make_node("b"), make_pod("p"), make_pod("q")], None, PACK)

    assert not any(d.is_significant for d in found.against_first(found.contenders[1]).values())
    assert all(metric.margin is None for metric in found.contenders[0].metrics.values())


def test_an_empty_comparison_is_rejected() -> None:
    with pytest.raises(InputError, match="expected at least one scheduler"):
        run([make_node("a")])


def test_pods_that_are_in_one_run_only_do_not_land_elsewhere() -> None:
    # An autoscaler evicts pods, and their replacements have other names.
    one = Contender("one", {}, {"default/a": "n1", "default/b": "n1", "default/old": "n1"})
    two = Contender("two", {}, {"default/a": "n2", "default/b": "n1", "default/new": ""})

    answer = Comparison([one, two], [0])

    assert [(each.pod, each.nodes) for each in answer.differences()] == [
        ("default/a", ("n1", "n2"))
    ]
    assert answer.other_pod_count() == 2
    assert answer.headline() == "one, two: 1 of 2 pods land elsewhere"
