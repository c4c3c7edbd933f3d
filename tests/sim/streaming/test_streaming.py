"""Streamed simulations: the same decisions and results as ordinary ones, without state of ended pods."""

import gc
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.cluster.memory.object_store import MOST_EVENTS
from bayplan.errors import InputError
from bayplan.sim import Simulation
from bayplan.sim.streaming import PodRow, StreamedSimulation, StreamReport, read_lines, write_rows
from bayplan.sim.streaming.running_use import BUCKETS, SampledSeries
from bayplan.sim.streaming.stream_report import QuantileSketch
from bayplan.sim.traces.trace_manifests import (
    HOSTNAME,
    Manifest,
    at_most,
    make_node,
    make_pod,
    times,
    write_lines,
)


def trace(pods: int, seed: int = 1, nodes: int = 6) -> list[Manifest]:
    """Pods of several shapes and priorities that are added and end; some do not fit at first, some never."""
    lots = random.Random(seed)
    found = [
        make_node(f"n{i}", {"cpu": "8", "memory": "32Gi"}, {"zone": f"z{i % 2}"})
        for i in range(nodes)
    ]
    at_s = 0.0
    for i in range(pods):
        at_s += lots.choice([0.0, 0.0, 1.0, 2.0, 2.5])
        duration_s = lots.choice([5.0, 10.0, 20.0, 60.0]) if i % 50 else None
        labels = {"app": f"a{i % 3}"}
        found.append(
            make_pod(
                f"p{i}",
                {"cpu": "100" if i % 97 == 96 else lots.choice(["1", "2", "3"])},
                annotations=times(at_s, duration_s),
                labels=labels,
                priority=lots.choice([0, 0, 0, 5]),
                spread=[at_most(2, HOSTNAME, labels)] if i % 7 == 0 else (),
            )
        )
    return found


def objects(manifests: list[Manifest]) -> list[Any]:
    return [decode_object(tree) for tree in manifests]


def streamed(manifests: list[Manifest], **more: Any) -> tuple[StreamReport, list[PodRow]]:
    rows: list[PodRow] = []
    simulation = StreamedSimulation(iter(objects(manifests)), rows.append, seed=1, **more)
    return simulation.run_stream(), rows


def test_rows_are_the_results_of_an_ordinary_simulation_pod_by_pod() -> None:
    manifests = trace(300)
    ordinary = Simulation(objects(manifests), seed=1).run()

    report, rows = streamed(manifests)

    expected = sorted(
        PodRow(
            result.pod.namespace,
            result.pod.name,
            result.attempt.outcome.value,
            result.attempt.node_name if result.is_placed else None,
            result.created_s,
            result.time_s,
            result.finished_s,
            result.deleted_s,
            result.attempts,
            result.attempt.message,
        )
        for result in ordinary.pods
    )
    victims = sorted((victim.name, victim.node_name) for victim, _ in ordinary.preempted)
    assert len(victims) > 10
    assert len(ordinary.pending) > 1
    assert sorted(row for row in rows if row.outcome != "preempted") == expected
    assert sorted((row.name, row.node) for row in rows if row.outcome == "preempted") == victims
    summary = ordinary.to_dict()["summary"]
    assert report.to_dict()["summary"] == {
        name: value for name, value in summary.items() if not name.startswith("podGroups")
    }


def test_sums_are_those_of_an_ordinary_simulation() -> None:
    manifests = trace(150, seed=2)
    ordinary = Simulation(objects(manifests), seed=1).run().to_dict()

    report, _ = streamed(manifests)

    found = report.to_dict()
    assert found["totals"] == ordinary["totals"]
    assert found["pendingGroups"] == ordinary["pendingGroups"]
    for series, expected in zip(found["useOverTime"], ordinary["useOverTime"], strict=True):
        assert series["name"] == expected["name"]
        assert series["peak"] == pytest.approx(expected["peak"], abs=2e-6)
        assert series["peakAt"] == expected["peakAt"]
        assert series["mean"] == pytest.approx(expected["mean"], abs=2e-6)
        assert series["samples"] == pytest.approx(expected["samples"], abs=0.02 * series["peak"])


def test_waiting_times_are_exact_to_a_hundredth() -> None:
    manifests = trace(150, seed=3)
    ordinary = Simulation(objects(manifests), seed=1).run()
    waits = sorted(result.time_s - result.created_s for result in ordinary.placed)

    report, _ = streamed(manifests)

    assert report.waits.count == len(waits)
    assert report.waits.mean == pytest.approx(sum(waits) / len(waits))
    assert report.waits.maximum == waits[-1]
    for share in (0.5, 0.9, 0.95, 0.99, 1.0):
        exact = float(np.percentile(waits, 100 * share))
        assert report.waits.quantile(share) == pytest.approx(exact, rel=0.0101)


def reachable_pods(root: object) -> set[str]:
    """The names of all pods that can be reached from an object by references."""
    seen, todo, names = {id(root)}, [root], set()
    while todo:
        for each in gc.get_referents(todo.pop()):
            if id(each) in seen or isinstance(each, type | ModuleType):
                continue
            seen.add(id(each))
            if isinstance(each, Pod):
                names.add(each.name)
            todo.append(each)
    return names


def test_nothing_is_kept_of_pods_that_have_ended() -> None:
    """Half-way through a long trace, only the present pods are in memory."""
    kept: list[int] = []

    def stream() -> Iterator[Any]:
        yield from objects(trace(0))
        for i in range(2000):
            priority = 5 if i % 40 == 0 else 0
            requests = {"cpu": "2" if i % 40 else "8"}
            note = times(float(i), 10.0)
            name = f"streamed-{i}"
            yield decode_object(make_pod(name, requests, annotations=note, priority=priority))
            if i == 1499:  # caches of the process may have pods of other simulations
                found = reachable_pods(simulation)
                kept.append(sum(name.startswith("streamed-") for name in found))

    simulation = StreamedSimulation(stream(), lambda row: None, seed=1)
    report = simulation.run_stream()

    assert report.pods + report.counts["preempted"] == 2000
    assert report.counts["preempted"] > 0
    # About 10 pods run and some wait at a time; others are in memory only if something keeps them.
    assert 0 < max(kept) < 60
    results, cluster = simulation._streamed, simulation.cluster
    assert (len(results._pods), len(results._created_s), len(results._victims)) == (0, 0, 0)
    assert (cluster.count("Pod"), len(cluster._deaths), len(cluster.evictions)) == (0, 0, 0)
    assert len(cluster.events) <= MOST_EVENTS


def make_job(name: str, at_s: float | None, completions: int, indexed: bool = False) -> Manifest:
    """A job whose pods run for five seconds, one at a time."""
    mode = {"completionMode": "Indexed"} if indexed else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": times(at_s, None)},
        "spec": {
            "completions": completions,
            "parallelism": 1,
            **mode,
            "template": {
                "metadata": {"annotations": times(None, 5.0)},
                "spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"},
            },
        },
    }


@pytest.mark.parametrize("indexed", [False, True])
def test_finished_pods_of_a_job_count_after_they_left(indexed: bool) -> None:
    jobs = [make_job(f"j{i}", 2.0 * i, 3, indexed) for i in range(1, 6)]
    manifests = [make_node("n", {"cpu": "8"}), *jobs]
    ordinary = Simulation(objects(manifests), seed=1).run()

    report, rows = streamed(manifests)

    assert len(rows) == report.counts["finished"] == 15
    assert sorted((row.name, row.created, row.time, row.finished) for row in rows) == sorted(
        (result.pod.name, result.created_s, result.time_s, result.finished_s)
        for result in ordinary.pods
    )


def test_nothing_is_kept_of_jobs_that_are_done() -> None:
    kept: list[int] = []

    def stream() -> Iterator[Any]:
        yield decode_object(make_node("n", {"cpu": "8"}))
        for i in range(400):
            yield decode_object(make_job(f"streamed-{i}", 5.0 * (i + 1), 2))
            if i == 299:
                found = reachable_pods(simulation)
                kept.append(sum(name.startswith("streamed-") for name in found))

    simulation = StreamedSimulation(stream(), lambda row: None, seed=1)
    report = simulation.run_stream()

    assert report.counts["finished"] == 800
    assert 0 < max(kept) < 20
    cluster, index = simulation.cluster, simulation._world._controllers._pods
    assert (cluster.count("Job"), cluster.count("Pod"), len(cluster._deaths)) == (0, 0, 0)
    assert (len(index._pods), len(index._owned), len(index._numbers)) == (0, 0, 0)


def test_a_job_that_is_suspended_or_not_done_stays() -> None:
    suspended = make_job("suspended", 1.0, 2)
    suspended["spec"]["suspend"] = True
    rows: list[PodRow] = []
    manifests = [make_node("n", {"cpu": "8"}), make_job("long", 1.0, 100), suspended]
    simulation = StreamedSimulation(iter(objects(manifests)), rows.append)

    simulation.run_stream(until_s=52.0)

    assert len([row for row in rows if row.finished is not None]) == 10
    assert sorted(job.name for job in simulation.cluster.list("Job")) == ["long", "suspended"]


def test_a_stream_that_is_not_sorted_is_an_error() -> None:
    late = make_pod("late", {"cpu": "1"}, annotations=times(60.0, 1.0))
    early = make_pod("early", {"cpu": "1"}, annotations=times(30.0, 1.0))

    with pytest.raises(InputError) as caught:
        streamed([make_node("n", {"cpu": "8"}), late, early])

    problem = "expected objects sorted by time; got 30 s after 60 s"
    assert str(caught.value) == f"stream: Pod default/early: {problem}"


def test_until_stops_the_stream() -> None:
    manifests = [make_node("n", {"cpu": "8"})]
    manifests += [
        make_pod(f"p{i}", {"cpu": "1"}, annotations=times(i + 1.0, 1.0)) for i in range(9)
    ]
    rows: list[PodRow] = []

    report = StreamedSimulation(iter(objects(manifests)), rows.append).run_stream(until_s=4.0)

    assert (report.pods, report.counts["finished"], report.time_s) == (4, 3, 4.0)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_files_of_lines_are_read_as_they_were_written(name: str, tmp_path: Path) -> None:
    file, manifests = tmp_path / name, trace(40)
    opened = gzip.open if name.endswith(".gz") else open
    with opened(file, "wt") as stream:
        assert write_lines(stream, manifests) == 46

    assert [obj.name for obj in read_lines(file)] == [
        each["metadata"]["name"] for each in manifests
    ]


BROKEN = [
    pytest.param("{", "line 2: ", id="a line that is cut off"),
    pytest.param(
        '{"kind": "Event", "apiVersion": "v1"}',
        "line 2: expected an object that",
        id="a kind that is not used",
    ),
]


@pytest.mark.parametrize(("line", "error"), BROKEN)
def test_a_wrong_line_is_named(line: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(f"{json.dumps(make_node('n', {'cpu': '1'}))}\n{line}\n")

    with pytest.raises(InputError) as caught:
        list(read_lines(file))

    assert str(caught.value).startswith(f"{file}: {error}")


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.jsonl", "rows.jsonl.gz"])
def test_rows_are_written_in_the_form_that_the_name_says(name: str, tmp_path: Path) -> None:
    row = PodRow("default", "p", "Bound", "n", 1.0, 2.5, 3.0, None, 1, "")
    with write_rows(tmp_path / name) as sink:
        sink(row)

    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    if ".jsonl" in name:
        assert json.loads(text) == row._asdict()
    else:
        assert text == f"{','.join(PodRow._fields)}\ndefault,p,Bound,n,1.0,2.5,3.0,,1,\n"


def test_quantiles_of_equal_numbers_are_that_number() -> None:
    sketch = QuantileSketch()
    for _ in range(10):
        sketch.add(1.0)

    assert {sketch.quantile(share) for share in (0.01, 0.5, 1.0)} == {1.0}


def test_quantiles_count_zeros() -> None:
    sketch = QuantileSketch()
    for value in (0.0, 0.0, 0.0, 5.0):
        sketch.add(value)

    numbers = (0.0, 0.0, 0.0, 5.0)
    exact = {f"p{each}": float(np.percentile(numbers, each)) for each in (50, 95, 99)}
    assert sketch.quantile(0.6) == 0.0
    assert sketch.to_dict() == pytest.approx({"mean": 1.25, "max": 5.0, **exact}, abs=1e-6)


def test_a_series_that_outgrows_its_parts_keeps_mean_and_samples() -> None:
    series = SampledSeries("cpu")
    for second in range(5000):
        series.add(float(second), second + 1.0, second / 5000)

    assert len(series._sums) <= BUCKETS
    assert series.mean == pytest.approx(0.4999)
    assert (series.peak, series.peak_at_s) == (4999 / 5000, 4999.0)
    assert series.samples(4) == pytest.approx([0.1249, 0.3749, 0.6249, 0.8749], abs=2e-3)
