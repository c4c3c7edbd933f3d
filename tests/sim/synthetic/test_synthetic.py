"""Synthetic workloads: arrivals, distributions, failures, and models fitted to traces."""

from collections import Counter
from math import log
from pathlib import Path
from random import Random
from statistics import fmean, median, pstdev
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.api.pod_stages import DURATION
from bayplan.cli.main import app
from bayplan.errors import InputError
from bayplan.manifests.timeline import CREATED_AT
from bayplan.sim import Simulation
from bayplan.sim.synthetic import fit_model, generate, parse_model, read_model
from bayplan.sim.synthetic.distributions import DrawnNumber
from bayplan.sim.synthetic.processes import (
    ArrivalProcess,
    Bursts,
    DayCurve,
    FailureRate,
    failure_events,
    joined,
)
from bayplan.sim.traces import decoded_objects
from bayplan.sweeps import Sweep
from bayplan.sweeps.document import parse_sweep
from bayplan.sweeps.worker import Worker
from bayplan.testing.builders import make_node, make_pod

EXAMPLE = Path(__file__).parents[3] / "examples" / "synthetic" / "day.yaml"
HOUR, DAY = 3600.0, 86400.0
MODEL: dict[str, Any] = {
    "apiVersion": "bayplan.dev/v1",
    "kind": "WorkloadModel",
    "duration": "2h",
    "nodes": [{"count": 4, "resources": {"cpu": "8", "memory": "32Gi"}, "zones": ["a", "b"]}],
    "arrivals": {"perHour": 30},
    "jobs": [{"name": "job", "requests": {"cpu": "1"}, "duration": "10m"}],
}


@pytest.mark.parametrize(
    ("distribution", "mean", "deviation_of_logs"),
    [
        pytest.param(
            DrawnNumber("lognormal", (10, 0.5)), 10 * 2.718281828**0.125, 0.5, id="lognormal"
        ),
        pytest.param(DrawnNumber("exponential", (7,)), 7, None, id="exponential"),
        pytest.param(DrawnNumber("pareto", (2, 3)), 3, 1 / 3, id="Pareto"),
        pytest.param(DrawnNumber("geometric", (4,)), 4, None, id="geometric"),
        pytest.param(DrawnNumber("values", (1, 5), (3, 1)), 2, None, id="values with weights"),
    ],
)
def test_numbers_are_drawn(
    distribution: DrawnNumber, mean: float, deviation_of_logs: float | None
) -> None:
    random = Random(1)
    numbers = [distribution.draw(random) for _ in range(20_000)]
    assert fmean(numbers) == pytest.approx(mean, rel=0.03)
    if deviation_of_logs is not None:
        assert pstdev(map(log, numbers)) == pytest.approx(deviation_of_logs, rel=0.03)


def test_a_tail_is_cut_off_not_piled_up() -> None:
    random, distribution = Random(1), DrawnNumber("pareto", (1, 1), highest=10)
    numbers = [distribution.draw(random) for _ in range(5000)]
    assert max(numbers) <= 10
    assert median(numbers) == pytest.approx(1 / (1 - 0.5 * 0.9), rel=0.05)


def variation(times: list[float], windows: int) -> float:
    counts = Counter(int(at_s / HOUR / 100 * windows) for at_s in times)
    numbers = [counts[i] for i in range(windows)]
    return pstdev(numbers) ** 2 / fmean(numbers)


def test_arrivals_are_poisson_and_bursts_are_not() -> None:
    single = ArrivalProcess(100)
    bursty = ArrivalProcess(50, bursts=Bursts(per_hour=2, mean_jobs=25, within_s=30))
    plain, grouped = (list(each.times(100 * HOUR, Random(2))) for each in (single, bursty))
    assert len(plain) == pytest.approx(10_000, rel=0.03)
    assert len(grouped) == pytest.approx(10_000, rel=0.1)
    assert variation(plain, 1000) == pytest.approx(1, abs=0.15)
    assert variation(grouped, 1000) > 5
    assert grouped == sorted(grouped)


def test_arrivals_follow_the_day() -> None:
    process = ArrivalProcess(60, DayCurve(0.8, peak_s=14 * HOUR))
    times = list(process.times(10 * DAY, Random(3)))
    by_hour = Counter(int(at_s % DAY / HOUR) for at_s in times)
    assert len(times) == pytest.approx(14_400, rel=0.03)
    assert by_hour[14] == pytest.approx(60 * 1.8 * 10, rel=0.1)
    assert by_hour[2] == pytest.approx(60 * 0.2 * 10, rel=0.3)


def test_nodes_fail_by_their_time_between_failures_and_zones_as_a_whole() -> None:
    model = parse_model(MODEL, "test")
    nodes = [each for each in generate(model) if each["kind"] == "Node"]
    rates = FailureRate(2 * DAY, HOUR), FailureRate(30 * DAY, HOUR)
    events = failure_events(nodes, (rates[0], None), 1000 * DAY, Random(4))
    removed = [name for event in events for name in event.get("remove", ())]
    assert len(removed) == pytest.approx(4 * 1000 / (2 + 1 / 24), rel=0.1)
    assert sum("add" in event for event in events) == len(removed)
    zones = failure_events(nodes, (None, rates[1]), 1000 * DAY, Random(4))
    together = Counter(event["at"] for event in zones if "remove" in event)
    assert set(together.values()) == {2}, "both nodes of the zone"


def test_outages_that_overlap_are_one() -> None:
    assert joined([(5, 9), (1, 6), (20, 20.1), (21.5, 23)]) == [(1, 9), (20, 23)]


def test_a_seed_determines_the_workload_and_parts_are_drawn_apart() -> None:
    model = read_model(EXAMPLE)
    first = list(generate(model, 1))
    assert first == list(generate(model, 1))
    assert first != list(generate(model, 2))
    without = parse_model({**MODEL, "failures": {"nodes": {"mtbf": "10m"}}}, "test")
    jobs = [each for each in generate(without, 5) if each["kind"] == "Job"]
    assert jobs == [e for e in generate(parse_model(MODEL, "test"), 5) if e["kind"] == "Job"]


def test_jobs_without_a_duration_stay() -> None:
    model = parse_model({**MODEL, "jobs": [{"name": "job", "requests": {"cpu": "1"}}]}, "test")
    objects = list(decoded_objects(generate(model, 3)))
    found = Simulation(objects, seed=0).run().measures()
    assert found["placed"] == 32, "all cores of four nodes"
    assert "maxSlowdown" not in found


def test_jobs_of_failed_nodes_begin_again_and_are_completed() -> None:
    model = parse_model({**MODEL, "failures": {"nodes": {"mtbf": "40m", "repair": "5m"}}}, "test")

    report = Simulation(list(decoded_objects(generate(model, 3))), seed=0).run()

    found = report.measures()
    jobs = sum(each["kind"] == "Job" for each in generate(model, 3))
    lost = [result for result in report.pods if result.deleted_s is not None]
    assert lost, "some node failed with a pod"
    assert len(report.pods) == jobs + len(lost)
    assert found["p50JobCompletion"] == pytest.approx(600, abs=1)
    assert found["maxJobCompletion"] > 610


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Model"}, 'kind: expected WorkloadModel; got "Model"'),
        (
            {"duration": "soon"},
            'duration: expected a duration such as 90s, 5m or 1h30m; got "soon"',
        ),
        ({"nodes": []}, "nodes: expected a list with at least one entry; got an empty list"),
        ({"arrivals": {}}, "arrivals: expected perHour above 0, or bursts; got neither"),
        (
            {"arrivals": {"perHour": -1}},
            "arrivals.perHour: expected a number that is not negative; got -1",
        ),
        (
            {"arrivals": {"perHour": 1, "diurnal": {"swing": 2}}},
            "arrivals.diurnal.swing: expected a number from 0 to 1; got 2",
        ),
        ({"speed": 1}, "speed: expected one of apiVersion, kind, duration"),
        ({"failures": {"nodes": {"mtbf": 0}}}, "failures.nodes.mtbf: expected"),
    ],
)
def test_faults_have_a_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_model({**MODEL, **change}, "m.yaml")
    assert str(error.value).startswith(f"m.yaml: {message}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"normal": {"mean": 1}}, "expected a number or one of values, exponential"),
        ({"pareto": {"min": "1m"}}, "pareto: expected min, alpha, and max if wanted; got min"),
        ({"pareto": {"min": "1m", "alpha": 0}}, "pareto.alpha: expected a number above 0; got 0"),
        ({"values": ["1m"], "weights": [1, 2]}, "weights: expected as many numbers as values"),
        ({"pareto": {"min": "1m", "alpha": 1, "max": "1s"}}, "pareto.max: expected 60 or more"),
    ],
)
def test_faults_of_distributions_have_a_place(value: Any, message: str) -> None:
    job = {**MODEL["jobs"][0], "duration": value}
    with pytest.raises(InputError) as error:
        parse_model({**MODEL, "jobs": [job]}, "m.yaml")
    assert (
        str(error.value)
        .replace("duration: ", "duration.")
        .startswith(f"m.yaml: jobs[0].duration.{message}")
    )


def trace(times: list[float], durations: DrawnNumber) -> list[Any]:
    random = Random(9)
    notes = (
        {CREATED_AT: f"{at_s:.3f}s", DURATION: f"{durations.draw(random):.3f}s"} for at_s in times
    )
    pods = [
        make_pod(f"p{i}", cpu="1" if i % 4 else "4", annotations=each)
        for i, each in enumerate(notes)
    ]
    return [make_node("a", cpu="8"), make_node("b", cpu="8"), make_node("c", cpu="4"), *pods]


def test_a_fitted_model_has_rate_day_and_durations_of_the_trace() -> None:
    process = ArrivalProcess(40, DayCurve(0.6, peak_s=9 * HOUR))
    times = list(process.times(5 * DAY, Random(8)))

    found = fit_model(trace(times, DrawnNumber("lognormal", (600, 0.9))))

    model = parse_model(found, "fitted")
    assert model.arrivals.per_hour == pytest.approx(40, rel=0.05)
    assert model.arrivals.bursts is None
    assert model.arrivals.curve is not None
    assert model.arrivals.curve.swing == pytest.approx(0.6, abs=0.08)
    assert model.arrivals.curve.peak_s == pytest.approx(9 * HOUR, abs=HOUR)
    assert [each.count for each in model.nodes] == [2, 1]
    assert [each.share for each in model.jobs] == pytest.approx(
        [len(times) * 3 / 4, len(times) / 4], rel=0.01
    )
    duration = model.jobs[0].duration
    assert duration is not None
    assert duration.kind == "lognormal"
    assert duration.parameters == pytest.approx((600, 0.9), rel=0.1)


def test_heavy_tails_and_bursts_are_recognised() -> None:
    process = ArrivalProcess(20, bursts=Bursts(1, 30, 20))
    times = list(process.times(100 * HOUR, Random(8)))

    found = fit_model(trace(times, DrawnNumber("pareto", (60, 1.2))))

    duration = found["jobs"][0]["duration"]["pareto"]
    assert duration["alpha"] == pytest.approx(1.2, rel=0.1)
    bursts = found["arrivals"]["bursts"]
    assert bursts["perHour"] == pytest.approx(1, rel=0.25)
    assert bursts["jobs"] == pytest.approx(30, rel=0.3)
    assert found["arrivals"]["perHour"] == pytest.approx(20, rel=0.25)
    assert "diurnal" not in found["arrivals"]


def test_a_trace_without_times_cannot_be_fitted() -> None:
    with pytest.raises(InputError, match="expected pods that are created at different times"):
        fit_model([make_node("a"), make_pod("p"), make_pod("q")])


def test_the_commands_draw_and_fit(tmp_path: Path) -> None:
    drawn, fitted = tmp_path / "drawn.jsonl", tmp_path / "model.yaml"
    (tmp_path / "pods.csv").write_text(
        "name,cpu,created-at,duration\n" + "".join(f"p{i},1,{i * 7}m,30m\n" for i in range(40))
    )
    (tmp_path / "nodes.csv").write_text("name,cpu,memory\nn,16,64Gi\n")
    steps = (
        ("import", "csv", "--nodes", "nodes.csv", "--pods", "pods.csv", "--pods-per-node", "50"),
        ("fit", "-f", "trace.json"),
        ("generate", "model.yaml", "--seed", "3"),
    )
    for step, to in zip(steps, ("trace.json", "model.yaml", "drawn.jsonl"), strict=True):
        paths = [str(tmp_path / each) if "." in each else each for each in step]
        result = CliRunner().invoke(app, ["research", "trace", *paths, "--to", str(tmp_path / to)])
        assert result.exit_code == 0, result.output
    model = read_model(fitted)
    assert model.nodes[0].resources["pods"] == "50"
    assert model.arrivals.per_hour == pytest.approx(60 / 7, rel=0.05)
    assert drawn.read_text().count('"kind":"Job"') == pytest.approx(40, abs=20)


def test_a_sweep_draws_a_workload_for_each_seed(tmp_path: Path) -> None:
    given = {"name": "day", "trace": "generated", "model": str(EXAMPLE)}
    tree = {"inputs": [given], "seeds": 2, "until": "20m"}
    sweep = Sweep(parse_sweep(tree, "sweep", tmp_path))

    found = [Worker().run(run) for run in sweep.runs]

    assert [result.error for result in found] == ["", ""]
    assert found[0].measures["placed"] != found[1].measures["placed"]
    assert sweep.runs[0].id != sweep.runs[1].id
