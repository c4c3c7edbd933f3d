"""research/suite: the runs, the results with their hashes, and the table, on a suite of a few pods."""

import hashlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.sweeps.dispatch import WorkerReport
from bayplan.sweeps.sweep_run import SweepRun
from bayplan.sweeps.worker import Worker

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "research" / "suite"
OPENB = "cluster-trace-gpu-v2023/csv"
NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{i},32000,131072,2,G1\n" for i in range(4)
)
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(
    f"p{i},4000,8192,1,{(600, 1000, 300)[i % 3]}\n" for i in range(15)
)
MODEL = {
    "apiVersion": "bayplan.dev/v1",
    "kind": "WorkloadModel",
    "duration": "1h",
    "nodes": [{"count": 1, "resources": {"cpu": "2", "memory": "8Gi"}, "zones": ["a"]}],
    "arrivals": {"perHour": 12},
    "jobs": [{"name": "j", "requests": {"cpu": "1"}, "duration": {"exponential": {"mean": "10m"}}}],
}


class InProcess:
    """A crew with one worker, in this process."""

    def __init__(self) -> None:
        self._worker, self._reports = Worker(), list[WorkerReport]()

    def start(self) -> int:
        return 0

    def give(self, worker: int, run: SweepRun) -> None:
        self._reports.append(WorkerReport(worker, self._worker.run(run)))

    def next_report(self) -> WorkerReport:
        return self._reports.pop()

    def close(self) -> None:
        self._worker.close()


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program, and a small suite with its traces in the current folder."""
    monkeypatch.setattr("bayplan.sweeps.dispatch.ProcessCrew", InProcess)
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(tmp_path)
    files = {f"{OPENB}/openb_node_list_gpu_node.csv": NODES}
    files[f"{OPENB}/openb_pod_list_default.csv"] = PODS
    for name, text in files.items():
        Path("traces", name).parent.mkdir(parents=True, exist_ok=True)
        Path("traces", name).write_text(text)
    Path("model.yaml").write_text(yaml.safe_dump(MODEL))
    pools = {**whole_suite()["pools"], "model": "model.yaml", "until": "2h", "seeds": [0, 1]}
    pools |= {"file": str(FOLDER / "pools.yaml"), "autoscalers": ["karpenter"]}
    tree = {
        "version": 7,
        "files": {n: hashlib.sha256(t.encode()).hexdigest() for n, t in files.items()},
        "baselines": [
            {"name": "Default", "file": str(FOLDER / "policies" / "default.yaml")},
            {"name": "plain"},
        ],
        "sweeps": [
            {
                "name": "fill",
                "seeds": [1, 2, 3],
                "measure": "bayplan.dev/gpu-milliUtilisation",
                "inputs": [{"name": "openb", "trace": "openb", "variant": "default"}],
            }
        ],
        "pools": {**pools, "baselines": ["Default"]},
    }
    Path("suite.yaml").write_text(yaml.safe_dump(tree))
    spec = importlib.util.spec_from_file_location("suite_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module_results = sys.modules["results"]
    yield module, module_results
    for name in ("description", "pool_runs", "results"):
        sys.modules.pop(name, None)


def whole_suite() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "suite.yaml").read_text())
    return found


def run(module: Any, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(
        sys, "argv", ["run.py", "traces", "--suite", "suite.yaml", "--jobs", "1", *options]
    )
    code: int = module.main()
    return code


def test_two_runs_give_the_same_table_and_a_row_can_be_added(
    suite: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, results = suite
    run_one: Any = sys.modules["pool_runs"].run_one
    monkeypatch.setattr(module, "run_all", lambda runs, _: [run_one(each) for each in runs])

    assert run(module, monkeypatch, "--to", "one") == 0
    first = capsys.readouterr().out
    assert run(module, monkeypatch, "--to", "two", "--check", "one/results.json") == 0
    assert capsys.readouterr().out == first

    lines = first.splitlines()
    assert lines[0].startswith("| | openb: GPUs in use, % ↑ | pools, karpenter: cost")
    assert lines[2].startswith("| Default | ")
    assert "†" in lines[3], "the plain scheduler promises what no GPU has"
    assert Path("one/results.json").read_bytes() == Path("two/results.json").read_bytes()
    found = results.SuiteResults.read(Path("one/results.json"))
    assert found.suite == 7
    assert len({entry.run for entry in found.entries}) == len(found.entries) == 8

    monkeypatch.setattr(module, "PUBLISHED", Path("one/results.json").absolute())
    config = str(FOLDER / "policies" / "fgd.yaml")
    options = ("--row", "mine", "--config", config, "--input", "openb", "--seeds", "2")
    assert run(module, monkeypatch, "--to", "three", *options) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:4] == lines[:4]
    assert shown[4].startswith("| mine | ")
    assert "†" not in shown[4]


def test_other_measures_and_other_files_are_found(
    suite: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, _ = suite
    options = ("--to", "one", "--input", "openb", "--seeds", "1")
    assert run(module, monkeypatch, *options) == 0
    Path("old.json").write_text(
        Path("one/results.json").read_text().replace('"placed":', '"placed":1')
    )
    assert run(module, monkeypatch, *options, "--check", "old.json") == 1
    assert "2 of 2 runs differ from old.json" in capsys.readouterr().err
    assert run(module, monkeypatch, "--input", "nothing") == 2
    (Path("traces") / OPENB / "openb_pod_list_default.csv").write_text(PODS + "\n")
    assert run(module, monkeypatch) == 2
    assert "expected content with the SHA-256" in capsys.readouterr().err


def test_every_file_of_the_suite_is_there_and_can_be_read(suite: Any) -> None:
    description = sys.modules["description"]
    given = description.Suite.read(FOLDER / "suite.yaml", Path("traces"))
    for row in given.rows:
        for name in (*([row["file"]] if "file" in row else ()), *row.get("plugins", ())):
            assert Path(name).is_file()
    names = [name for name, _ in given.sweeps(Path(), given.rows, ["pai-2026", "day", "gpus"], 1)]
    assert names == ["filled", "day", "gangs"]
