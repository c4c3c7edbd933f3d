"""`bayplan research trace simulate`: a sorted trace is simulated, and rows of pods are written as they end."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

VMS = "".join(f"v{i},s,d,{i * 10},{i * 10 + 35},1,2,3,Unknown,1,2\n" for i in range(20))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table of VMs."""
    monkeypatch.chdir(tmp_path)
    Path("vmtable.csv").write_text(VMS)
    return tmp_path


def run(*args: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["trace", *args])
    assert result.exit_code == code, result.output
    return result


def imported(cpus: int) -> str:
    node = f"count=1,cpu={cpus},memory=64Gi"
    run("import", "azure-vms", "vmtable.csv", "--node", node, "--to", "vms.jsonl.gz")
    return "vms.jsonl.gz"


def test_rows_of_all_pods_are_written() -> None:
    report = json.loads(run("simulate", imported(4), "--results", "pods.csv", "-o", "json").stdout)

    rows = list(csv.DictReader(Path("pods.csv").read_text().splitlines()))
    assert report["summary"]["finished"] == len(rows) == 20
    assert {row["node"] for row in rows} == {"node-0"}
    assert [row["name"] for row in rows[:2]] == ["vm-1", "vm-2"]
    assert rows[3]["created"] == "30.0"
    assert report["waits"]["max"] == 0


def test_the_table_has_totals_waits_and_use_over_time() -> None:
    shown = run("simulate", imported(2)).stdout

    assert "waiting time" in shown
    assert "pending pods" in shown
    assert "20 of 20 pods placed, on 1 nodes, 20 finished" in shown.replace("\n", " ")


def test_pending_pods_are_the_status() -> None:
    trace = imported(1)
    Path("big.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: big}\n"
        "spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 64}}}]}\n"
    )

    report = json.loads(run("simulate", trace, "-f", "big.yaml", "-o", "json", code=1).stdout)

    assert report["summary"]["pending"] == 1
    assert report["pendingGroups"][0]["workload"] == "default/big"


def test_until_stops_it() -> None:
    report = json.loads(run("simulate", imported(4), "--until", "1m", "-o", "json").stdout)

    assert report["summary"]["time"] == 60
    assert report["summary"]["pods"] == 7


WRONG = [
    pytest.param(
        ["nowhere.jsonl"],
        "nowhere.jsonl: expected a readable file of JSON lines; got No such file or directory",
        id="no file",
    ),
    pytest.param(["vmtable.csv"], "vmtable.csv: line 1: ", id="no JSON"),
    pytest.param(
        ["vms.jsonl.gz", "--until", "soon"],
        '--until: expected a duration such as 90s, 5m or 1h30m; got "soon"',
        id="no duration",
    ),
    pytest.param(
        ["vms.jsonl.gz", "--results", "no/such/file.csv"],
        "no/such/file.csv: expected a file to write to; got No such file",
        id="no target",
    ),
]


@pytest.mark.parametrize(("args", "error"), WRONG)
def test_wrong_input_is_named(args: list[str], error: str) -> None:
    imported(4)

    result = run("simulate", *args, code=2)

    assert result.stderr.startswith(f"error: {error}")
    assert result.stdout == ""


def test_an_error_in_a_file_beside_the_trace_has_its_place() -> None:
    trace = imported(4)
    notes = "annotations: {bayplan.dev/duration: soon}"
    spec = "spec: {containers: [{name: c, image: web:1}]}"
    Path("bad.yaml").write_text(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: bad, {notes}}}\n{spec}\n"
    )

    result = run("simulate", trace, "-f", "bad.yaml", code=2)

    assert result.stderr.startswith("error: bad.yaml: ")
