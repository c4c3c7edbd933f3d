"""research/fgd: the experiment on a small part of the trace, from its tables to the comparison."""

import csv
import gzip
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import bayplan
from bayplan.api.gpus import GPU_MILLI
from bayplan.api.pod import Pod
from bayplan.config.load import load_config
from bayplan.policies.task_mix import Task, typical_tasks
from bayplan.sim.traces import decoded_objects, find_openb

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "research" / "fgd"
TRACE = ROOT.parent / "shared" / "traces" / "openb"
TABLES = ROOT / "bayplan" / "sim" / "bench" / "workloads" / "openb"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fgd_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


experiment = load("experiment")


def part_of(table: str, every: int) -> list[dict[str, str]]:
    with gzip.open(TABLES / f"{table}.csv.gz", "rt", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))[::every]


def write(file: Path, rows: list[dict[str, str]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every 60th node, and every 61st pod, as tables of the trace."""
    made: Path = tmp_path_factory.mktemp("openb")
    nodes = [{"sn": f"n{i}", **row} for i, row in enumerate(part_of("nodes", 60))]
    times = {"gpu_spec": "", "creation_time": "0", "deletion_time": "9", "scheduled_time": "0"}
    pods = [{"name": f"p{i}", **row, **times} for i, row in enumerate(part_of("pods", 61))]
    pods += [
        {**pods[0], "name": f"cpu{i}", "num_gpu": "0", "gpu_milli": "0", "cpu_milli": "8000"}
        for i in range(20)
    ]
    write(made / "openb_node_list_gpu_node.csv", nodes)
    write(made / "openb_pod_list_default.csv", pods)
    return made


def test_policies_fill_the_cluster(folder: Path) -> None:
    courses = {policy: experiment.run(folder, policy, 42) for policy in experiment.POLICIES}

    at_full = {policy: experiment.by_percent(course)[100] for policy, course in courses.items()}

    assert {len(course) for course in courses.values()} == {len(courses["FGD"])}  # one workload
    for course in courses.values():
        assert 1.2 < course[-1].arrived <= 1.3
        assert all(entry.allocated <= min(entry.arrived, 1) for entry in course)
        assert course[10].allocated == course[10].arrived  # at first, everything fits
    assert max(at_full, key=lambda policy: at_full[policy]) == "FGD"
    assert 80 < min(at_full.values()) <= max(at_full.values()) <= 100


def test_seed_determines_the_run(folder: Path) -> None:
    again = [experiment.run(folder, "Random", 42) for _ in range(2)]

    assert again[0] == again[1]
    assert experiment.run(folder, "Random", 43) != again[0]


@pytest.mark.skipif(not TRACE.is_dir(), reason="the trace is not part of the repository")
def test_fgd_is_told_the_tasks_of_the_trace() -> None:
    objects = decoded_objects(find_openb(TRACE).objects())
    tasks = typical_tasks(obj.spec for obj in objects if isinstance(obj, Pod))

    config = load_config(FOLDER / "policies" / "fgd.yaml")

    args: Any = config.profiles[0].plugin_config["FGD"]
    told = args["tasks"]
    assert [
        Task(each["milliCpu"], each["gpuMilli"], frozenset(each.get("models", ())), each["weight"])
        for each in told
    ] == tasks


def test_a_sweep_gives_the_figures_of_the_experiment(folder: Path) -> None:
    tree = yaml.safe_load((FOLDER / "sweep.yaml").read_text("utf-8"))
    tree["inputs"][0]["folder"] = str(folder)
    for each in tree["configurations"]:
        each["file"] = str(FOLDER / each["file"])
    tree["configurations"] = tree["configurations"][:2]
    tree["seeds"] = tree["seeds"][:2]

    results = bayplan.sweep(tree, jobs=1)

    expected = [
        experiment.by_percent(experiment.run(folder, policy, seed))[100]
        for seed in (42, 43)
        for policy in ("FGD", "BestFit")
    ]
    assert not results.failed
    found = [entry.result.measures[f"{GPU_MILLI}AtFullDemand"] for entry in results.entries]
    assert [100 * share for share in found] == pytest.approx(expected)


def test_percent_is_the_mean_of_what_rounds_to_it() -> None:
    arrivals = [(0.994, 0.5), (0.996, 0.7), (1.0, 0.8), (1.004, 0.9), (1.006, 1.0)]
    course = [experiment.Arrival(*entry) for entry in arrivals]

    assert experiment.by_percent(course) == pytest.approx({99: 50, 100: 80, 101: 100})


def command(*args: str) -> "subprocess.CompletedProcess[str]":
    run = [sys.executable, str(FOLDER / "run.py"), *args]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_command_prints_the_comparison(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "results.csv"

    done = command(
        str(folder), "--policy", "FGD", "--seeds", "1", "--jobs", "1", "--to", str(table)
    )

    assert done.returncode == 0, done.stderr
    head, line = done.stdout.splitlines()
    assert head.split() == ["POLICY", "SEEDS", "ALLOCATED", "STDEV", "PUBLISHED", "DIFFERENCE"]
    assert line.split()[0] == "FGD"
    assert line.split()[-2] == "95.23"
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    allocated = {int(row["arrived_percent"]): row["allocated_percent"] for row in rows}
    assert float(allocated[100]) == pytest.approx(float(line.split()[2]), abs=0.01)


def test_missing_trace_is_explained(tmp_path: Path) -> None:
    done = command(str(tmp_path))

    assert done.returncode == 2
    assert "openb_node_list_gpu_node.csv: expected a file of the openb trace" in done.stderr
    assert "BAYPLAN_OPENB" in done.stderr


def test_gpus_are_what_the_trace_says(folder: Path) -> None:
    trace = list(find_openb(folder).objects(1.3, 42, shuffled=True))

    nodes = [tree for tree in trace if tree["kind"] == "Node"]
    offered = sum(int(node["status"]["allocatable"][GPU_MILLI]) for node in nodes)

    assert offered == 1000 * sum(int(row["gpu"]) for row in part_of("nodes", 60))
    assert len({node["metadata"]["name"] for node in nodes}) == len(nodes)
