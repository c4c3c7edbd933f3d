"""Sweeps in processes and on a real local Ray: results, resumption, failures, and workers that are killed."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import bayplan
from bayplan.api.wire.whole import whole
from bayplan.errors import InputError
from bayplan.sim.measures import measure_of
from bayplan.sweeps import Sweep, SweepResults
from bayplan.sweeps.document import parse_sweep
from bayplan.sweeps.worker import Worker
from bayplan.testing.builders import make_node, make_pod
from benchmarks import sweep as bench

PLUGIN = """
import os
from pathlib import Path

from bayplan.framework import ScorePlugin


class Chosen(ScorePlugin):
    name = "Chosen"

    def __init__(self, node="a"):
        self.node = node
        {body}

    def score_node(self, state, pod, node):
        return 100 if node.name == self.node else 0
"""


def plugin(body: str = "pass") -> str:
    return PLUGIN.format(body=body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    objects: list[Any] = [make_node("a"), make_node("b")]
    objects += [make_pod(f"p{i}", cpu="1") for i in range(3)]
    (tmp_path / "shop.yaml").write_text(yaml.safe_dump_all([whole(obj) for obj in objects]))
    (tmp_path / "chosen.py").write_text(plugin())
    return tmp_path


@pytest.fixture
def sweep_tree() -> dict[str, Any]:
    """Plain data of a sweep with the files of `folder`: six runs."""
    return {
        "inputs": [{"name": "shop", "files": ["shop.yaml"]}],
        "configurations": [
            {"name": "default"},
            {
                "name": "chosen",
                "plugins": ["chosen.py"],
                "vary": {"args.Chosen.node": ["a", "b"]},
                "config": {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "profiles": [
                        {"plugins": {"multiPoint": {"enabled": [{"name": "Chosen", "weight": 50}]}}}
                    ],
                },
            },
        ],
        "seeds": 2,
    }


def make(folder: Path, tree: dict[str, Any], name: str = "", **options: Any) -> Sweep:
    path = folder / name if name else None
    return Sweep(parse_sweep(tree, "sweep", folder), path, **options)


def by_label(results: SweepResults) -> dict[str, dict[str, float]]:
    """The repeatable measures of each run."""
    return {
        entry.run.label: {
            name: value
            for name, value in entry.result.measures.items()
            if measure_of(name).is_repeatable
        }
        for entry in results.entries
    }


def test_processes_give_what_simulations_give(folder: Path, sweep_tree: dict[str, Any]) -> None:
    seen: list[tuple[int, int]] = []

    results = make(folder, sweep_tree).run(jobs=2, on_progress=lambda *done: seen.append(done))

    found = by_label(results)
    cluster = bayplan.Cluster.read(folder / "shop.yaml")
    expected = bayplan.simulate(cluster, seed=1).measures()
    label = "shop, default, seed 1"
    assert found[label] == {name: expected[name] for name in found[label]}
    assert found["shop, chosen args.Chosen.node=b, seed 0"]["emptyNodes"] == 1
    assert found[label]["emptyNodes"] == 0
    assert seen == [(i, 6) for i in range(1, 7)]
    assert results.headline() == "6 of 6 runs done"


def test_ray_gives_what_processes_give(folder: Path, sweep_tree: dict[str, Any]) -> None:
    """The worker of the first run is killed by its plugin, as if its machine were lost."""
    pytest.importorskip("ray")
    mark = folder / "died"
    body = f"Path({str(mark)!r}).exists() or (Path({str(mark)!r}).touch(), os._exit(9))"
    (folder / "chosen.py").write_text(plugin(body))
    sweep_tree["configurations"].append(
        {
            "name": "broken",
            "plugins": ["broken.py"],
            "config": {"kind": "KubeSchedulerConfiguration"},
        }
    )
    sweep_tree["configurations"][-1]["config"]["apiVersion"] = "kubescheduler.config.k8s.io/v1"
    (folder / "broken.py").write_text("1/0\n")

    on_ray = make(folder, sweep_tree).run(ray="local", jobs=2)

    assert mark.exists()
    here = by_label(make(folder, sweep_tree).run(jobs=1))
    assert by_label(on_ray) == here
    errors = [entry.result.error for entry in on_ray.failed]
    assert len(errors) == 2
    assert all("ZeroDivisionError" in error for error in errors)


def test_a_failed_run_is_a_row(folder: Path, sweep_tree: dict[str, Any]) -> None:
    sweep_tree["configurations"][0]["plugins"] = ["broken.py"]
    (folder / "broken.py").write_text("1/0\n")

    results = make(folder, sweep_tree, "x.csv").run(jobs=2)

    assert results.headline() == "4 of 6 runs done, 2 failed"
    rows = {row["run"]: row for row in results.rows()}
    row = rows[results.failed[0].run.id]
    assert (row["status"], row["configuration"]) == ("failed", "default")
    assert "ZeroDivisionError" in row["error"]
    again = make(folder, sweep_tree, "x.csv")
    assert again.missing == [], "a failed run is repeated on request only"
    assert len(make(folder, sweep_tree, "x.csv", retry_failed=True).missing) == 2


def test_a_finished_run_is_not_repeated(folder: Path, sweep_tree: dict[str, Any]) -> None:
    sweep_tree["seeds"] = 1
    first = make(folder, sweep_tree, "x.csv").run(jobs=1)
    sweep_tree["seeds"] = 2
    more = make(folder, sweep_tree, "x.csv")

    assert len(more.missing) == 3
    assert {run.seed for run in more.missing} == {1}
    second = more.run(jobs=1)

    assert (second.reused, len(second.entries)) == (3, 6)
    assert {e.run.id: e.result for e in first.entries}.items() <= {
        e.run.id: e.result for e in second.entries
    }.items()


def test_what_a_killed_worker_did_is_done_again(folder: Path, sweep_tree: dict[str, Any]) -> None:
    mark = folder / "died"
    body = f"Path({str(mark)!r}).exists() or (Path({str(mark)!r}).touch(), os.kill(os.getpid(), 9))"
    (folder / "chosen.py").write_text(plugin(body))

    results = make(folder, sweep_tree).run(jobs=2)

    assert mark.exists()
    assert results.headline() == "6 of 6 runs done"


def test_a_run_that_always_kills_its_worker_has_failed(
    folder: Path, sweep_tree: dict[str, Any]
) -> None:
    (folder / "chosen.py").write_text(plugin("os.kill(os.getpid(), 9)"))
    sweep_tree["seeds"] = 1

    results = make(folder, sweep_tree).run(jobs=2)

    assert results.headline() == "1 of 3 runs done, 2 failed"
    assert "it ended 2 times, killed by signal 9" in results.failed[0].result.error


def test_what_plugins_print_does_not_get_between_the_results(
    folder: Path, sweep_tree: dict[str, Any]
) -> None:
    (folder / "chosen.py").write_text(plugin("print('hello', flush=True)"))

    assert make(folder, sweep_tree).run(jobs=1).headline() == "6 of 6 runs done"


def test_a_file_that_changes_during_the_sweep_is_a_failure(
    folder: Path, sweep_tree: dict[str, Any]
) -> None:
    sweep = make(folder, sweep_tree)
    (folder / "chosen.py").write_text(plugin("self.other = 1"))

    results = sweep.run(jobs=1)

    assert len(results.failed) == 4
    assert "chosen.py: expected it as when the sweep began" in results.failed[0].result.error


def test_an_input_is_read_once_per_worker(folder: Path, sweep_tree: dict[str, Any]) -> None:
    """A run removes its own input: later runs of the worker have the objects already."""
    body = f"Path({str(folder / 'shop.yaml')!r}).unlink(missing_ok=True)"
    (folder / "chosen.py").write_text(plugin(body))
    sweep_tree["configurations"].reverse()

    assert make(folder, sweep_tree).run(jobs=1).headline() == "6 of 6 runs done"


SCRIPT = """
import json
import bayplan

tree = json.load(open("tree.json"))
done = lambda done, total: print(done, flush=True)
print(bayplan.sweep(tree, results="x.csv", jobs=1, on_progress=done).headline(), flush=True)
"""


def test_a_killed_sweep_goes_on_where_it_was(folder: Path, sweep_tree: dict[str, Any]) -> None:
    """The script has no main guard: workers do not import it."""
    (folder / "tree.json").write_text(json.dumps(sweep_tree))
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        assert process.stdout.readline() == "2\n"
        process.send_signal(signal.SIGKILL)
    finished = len((folder / "x.csv.runs.jsonl").read_bytes().splitlines())

    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)

    assert finished >= 2
    lines = again.stdout.splitlines()
    assert len(lines) == 6 - finished + 1
    assert lines[-1] == "6 of 6 runs done"
    assert len((folder / "x.csv").read_text().splitlines()) == 7


def test_ctrl_c_keeps_what_is_done(folder: Path, sweep_tree: dict[str, Any]) -> None:
    """The script waits for Ctrl-C after its first run: else all may be done before it comes."""
    (folder / "tree.json").write_text(json.dumps(sweep_tree))
    waiting = SCRIPT.replace("print(done, flush=True)", "print(done, flush=True) or signal.pause()")
    (folder / "script.py").write_text(f"import signal\n{waiting}")
    command = [sys.executable, "script.py"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()

    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert len((folder / "x.csv").read_text().splitlines()) >= 2


def test_frames_and_documents(folder: Path, sweep_tree: dict[str, Any]) -> None:
    results = make(folder, sweep_tree).run(jobs=1)

    summary = results.to_frame("summary")
    assert summary["args.Chosen.node"].tolist()[1:] == ["a", "b"]
    assert summary["placed"].tolist() == [3.0] * 3
    assert summary["placed ±"].tolist() == [0.0] * 3
    assert len(results.to_frame()) == 6
    document = results.to_dict()
    assert document["summary"][1]["values"] == {"args.Chosen.node": "a"}
    assert document["runs"][0]["measures"]["placed"] == 3
    difference = results.summary()[1].difference("emptyNodes")
    assert difference is not None
    assert difference.is_significant


def test_jobs_and_arguments_are_checked(folder: Path, sweep_tree: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="jobs: expected a number of 1 or more; got 0"):
        make(folder, sweep_tree).run(jobs=0)
    with pytest.raises(TypeError, match="sweep: document: expected a file"):
        bayplan.sweep(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sweep: jobs: expected a whole number"):
        bayplan.sweep({}, jobs="two")  # type: ignore[arg-type]


def test_a_ray_that_is_not_there_is_an_input_error(
    folder: Path, sweep_tree: dict[str, Any]
) -> None:
    pytest.importorskip("ray")

    with pytest.raises(InputError, match=r"--ray: 127.0.0.1:1: expected a Ray cluster; got"):
        make(folder, sweep_tree).run(ray="127.0.0.1:1")


def test_traces_are_inputs(folder: Path) -> None:
    (folder / "nodes.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,G2\nn1,64000,262144,2,T4\n"
    )
    (folder / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time\n"
        "p0,4000,1024,1,1000,,LS,0,100,0\np1,4000,1024,1,500,,LS,10,100,10\n"
    )
    (folder / "jobs.csv").write_text("name,cpu\na,1\nb,2\n")
    (folder / "machines.csv").write_text("name,cpu,memory\nm,4,8Gi\n")
    openb = {"trace": "openb", "nodes": "nodes.csv", "pods": "pods.csv"}
    tree = {
        "inputs": [
            {**openb, "name": "times"},
            {**openb, "name": "filled", "demand": [50, 100]},
            {"trace": "csv", "nodes": "machines.csv", "pods": "jobs.csv"},
        ],
        "seeds": 2,
    }

    results = make(folder, tree).run(jobs=1)

    assert results.failed == []
    rows = {(row["input"], row["demand"], row["seed"]): row for row in results.rows()}
    assert rows["times", None, 0]["maxLatency"] == 0
    assert rows["filled", 50.0, 1]["bayplan.dev/gpu-milliRequested"] == 0.5
    assert rows["filled", 100.0, 0]["bayplan.dev/gpu-milliUtilisation"] == 1
    assert rows["csv", None, 1]["cpuAllocated"] == 3000


SPOT_NODES = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,2,64,0\nA10,2,64,1\n"
SPOT_JOBS = (
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
    "a,o,A10,8,1,2,0,100,HP\nb,o,A10,8,1,1,7200,100,Spot\n"
)


def spot_tree(folder: Path) -> dict[str, Any]:
    """A sweep of a published trace in a folder of its own, whole and its first hour."""
    (folder / "spot").mkdir()
    (folder / "spot" / "node_info_df.csv").write_text(SPOT_NODES)
    (folder / "spot" / "job_info_df.csv").write_text(SPOT_JOBS)
    spot = {"trace": "alibaba-2026", "place": "spot"}
    return {"inputs": [{**spot, "name": "whole"}, {**spot, "name": "hour", "until": "1h"}]}


def test_a_published_trace_is_an_input(folder: Path) -> None:
    tree = spot_tree(folder)
    sweep = make(folder, tree)
    before = [run.id for run in sweep.runs]

    results = sweep.run(jobs=1)

    assert results.failed == []
    assert [row["placed"] for row in results.rows()] == [3, 2]
    (folder / "spot" / "job_info_df.csv").write_text(SPOT_JOBS.replace("7200", "7300"))
    after = [run.id for run in make(folder, tree).runs]
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_a_worker_without_the_disk_has_the_files_of_a_published_trace(folder: Path) -> None:
    run = make(folder, spot_tree(folder)).runs[0]
    files = {path: Path(path).read_bytes() for path in run.digests}
    for path in files:
        Path(path).unlink()

    result = Worker(files).run(run)

    assert result.error == ""
    assert result.measures["placed"] == 3


def test_ties_are_broken_by_name_if_asked_for(folder: Path, sweep_tree: dict[str, Any]) -> None:
    nodes = [whole(make_node(f"n{i}")) for i in range(20)]
    (folder / "tied.yaml").write_text(yaml.safe_dump_all([*nodes, whole(make_pod("p"))]))
    (folder / "first.py").write_text(FIRST_NODE)
    tree = {
        "inputs": [{"files": ["tied.yaml"]}],
        "configurations": [{"name": "noted", "plugins": ["first.py"]}],
        "seeds": 5,
    }

    drawn, by_name = (make(folder, {**tree, **more}) for more in ({}, {"ties": "name"}))

    assert {run.id for run in drawn.runs}.isdisjoint(run.id for run in by_name.runs)
    assert nodes_of(drawn, folder) != {"n0"}
    assert nodes_of(by_name, folder) == {"n0"}


FIRST_NODE = """
from pathlib import Path

from bayplan.framework import SUCCESS, ReservePlugin


class Noted(ReservePlugin):
    name = "Noted"

    def reserve(self, state, pod, node_name):
        with (Path(__file__).parent / "chosen.txt").open("a") as file:
            file.write(node_name + "\\n")
        return SUCCESS

    def unreserve(self, state, pod, node_name):
        pass
"""


def nodes_of(sweep: Sweep, folder: Path) -> set[str]:
    """The nodes that the runs of a sweep chose."""
    (folder / "chosen.txt").unlink(missing_ok=True)
    assert sweep.run(jobs=1).failed == []
    return {*(folder / "chosen.txt").read_text().split()}


def test_a_picture_has_the_mean_and_interval_of_each_scheduler(
    folder: Path, sweep_tree: dict[str, Any]
) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    results = make(folder, {**sweep_tree, "measures": ["emptyNodes"]}).run(jobs=1)

    axes = bayplan.plot(results, figure.Figure().subplots())

    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert labels == ["default", "chosen args.Chosen.node=a", "chosen args.Chosen.node=b"]
    (drawn,) = axes.containers
    means = [line.metric("emptyNodes") for line in results.summary()]
    assert drawn[0].get_ydata().tolist() == [metric.mean for metric in means if metric]
    assert axes.get_ylabel() == "nodes left empty"


def test_the_bench_compares_one_process_with_several(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "PODS", 20)

    bench.main(["3", "2"])

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("3 runs, 1 processes: ")
    assert second.startswith("3 runs, 2 processes: ")
    assert first.endswith("100% of the time with one process")
