"""`bayplan simulate` in time: `--until`, `--trace`, and the lines about pods that wait."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.commands.simulate import clock_time
from bayplan.cli.main import app
from tests.rig.trees import pod_tree

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}


def marked_pod(name: str, cpu: str = "1", **annotations: str) -> dict[str, Any]:
    marks = {f"bayplan.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return pod_tree(name, cpu, metadata={"annotations": marks})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cluster with a pod that ends, and a later pod that waits for that."""
    monkeypatch.chdir(tmp_path)
    objects = [
        NODE,
        marked_pod("a", "3", duration="10m"),
        marked_pod("later", "3", created_at="1m30s", duration="1h"),
    ]
    Path("all.yaml").write_text(yaml.safe_dump_all(objects))
    return "all.yaml"


def simulate(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["simulate", *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


TRACE = """\
00:00:00  created      default/a
00:00:00  popped       default/a             attempt 1
00:00:00  bound        default/a             to n
00:01:30  created      default/later
00:01:30  popped       default/later         attempt 1
00:01:30  refused      default/later         0/1 nodes are available: 1 Insufficient cpu."""


@pytest.mark.parametrize(
    "args", [["--trace"], ["--trace", "-"], ["--trace=-"]], ids=["bare", "dash", "equals"]
)
def test_the_trace_comes_before_the_result(file: str, args: list[str]) -> None:
    out, err = simulate("-f", file, *args)

    trace, _, rest = out.partition("\n\n")
    assert err == ""
    assert trace.startswith(TRACE)
    assert trace.splitlines()[-1] == "01:10:00  finished     default/later         on n"
    assert rest.splitlines()[0].split() == ["NAMESPACE", "POD", "NODE", "SCORE", "TIME", "ENDED"]
    assert rest.splitlines()[2].split() == [
        "default",
        "later",
        "n",
        "-",
        "10m",
        "1h10m",
        "finished",
    ]
    assert "2 of 2 pods placed, 2 finished, 1h10m in " in rest


def test_a_bare_trace_may_stand_before_other_options(file: str) -> None:
    out, _ = simulate("--trace", "-f", file, "-o", "name")

    assert out.startswith(TRACE)
    assert out.endswith("\n\npod/default/a node/n\npod/default/later node/n\n")


def test_the_trace_may_go_to_a_file(file: str) -> None:
    out, _ = simulate("-f", file, "--trace", "trace.txt", "-o", "name")

    assert out == "pod/default/a node/n\npod/default/later node/n\n"
    assert Path("trace.txt").read_text().startswith(TRACE)


def test_the_trace_for_machines_is_json_lines(file: str) -> None:
    out, _ = simulate("-f", file, "-o", "json", "--trace", "trace.json")

    lines = Path("trace.json").read_text().splitlines()
    assert json.loads(lines[2]) == {
        "time": 0.0,
        "what": "bound",
        "kind": "Pod",
        "namespace": "default",
        "name": "a",
        "details": "to n",
    }
    assert json.loads(out)["summary"]["time"] == 4200.0


def test_until_stops_it(file: str) -> None:
    out, _ = simulate("-f", file, "--until", "5m", "-o", "json", code=1)

    document = json.loads(out)
    assert document["summary"]["time"] == 300.0
    assert [(pod["name"], pod["node"]) for pod in document["pods"]] == [("a", "n"), ("later", None)]


def test_the_same_input_gives_the_same_output(file: str) -> None:
    runs = [
        simulate("-f", file, "-o", form, "--trace")[0]
        for form in ("json", "yaml", "name")
        for _ in range(2)
    ]

    assert runs[0::2] == runs[1::2]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(
            ["--until", "later"],
            '--until: expected a duration such as 90s, 5m or 1h30m; got "later"',
            id="no duration",
        ),
        pytest.param(
            ["--trace", "no/such/folder"],
            "--trace: no/such/folder: expected a file to write to; got No such file or directory",
            id="no file for the trace",
        ),
        pytest.param(
            ["-f", "bad.yaml"],
            "bad.yaml: document 2: timeline: events[1].remove[0]: "
            'expected kind/name or kind/namespace/name; got "n"',
            id="a timeline that is wrong",
        ),
        pytest.param(
            ["-f", "late.yaml"],
            "late.yaml: document 1: timeline: events[0].remove[0]: "
            "expected an object that is there by then; got node/m",
            id="a timeline that goes wrong",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(file: str, args: list[str], expected: str) -> None:
    head = {"apiVersion": "bayplan.dev/v1", "kind": "Timeline"}
    good, bad = {"at": "1s", "remove": ["node/n"]}, {"at": "2s", "remove": ["n"]}
    other = {**NODE, "metadata": {"name": "other"}}
    Path("bad.yaml").write_text(yaml.safe_dump_all([other, {**head, "events": [good, bad]}]))
    late = {**head, "events": [{"at": "1s", "remove": ["node/m"]}]}
    Path("late.yaml").write_text(yaml.safe_dump_all([late]))

    _, err = simulate("-f", file, *args, code=2)

    assert err == f"error: {expected}\n"


def test_explain_says_what_a_pending_pod_waits_for(file: str) -> None:
    held = marked_pod("held")
    held["spec"]["schedulingGates"] = [{"name": "quota"}]
    Path("more.yaml").write_text(yaml.safe_dump_all([marked_pod("huge", "9"), held]))

    out, _ = simulate("-f", file, "-f", "more.yaml", "--explain", "--until", "0", code=1)
    machine, _ = simulate(
        "-f", file, "-f", "more.yaml", "--explain", "--until", "0", "-o", "json", code=1
    )

    huge = out.partition("default/huge is unschedulable")[2].partition("\n\n")[0]
    assert "WAITS FOR" in huge
    assert "NodeResourcesFit" in huge
    assert "Node (Add, UpdateNodeAllocatable, UpdateNodeTaint), Pod (Delete, " in huge
    gated = out.partition("default/held is gated")[2].partition("\n\n")[0]
    assert "waiting for scheduling gates: [quota]" in gated
    assert "UpdatePodSchedulingGatesEliminated" in gated
    waits = {pod["name"]: pod["explanation"]["waitsFor"] for pod in json.loads(machine)["pods"]}
    assert "NodeResourcesFit" in waits["huge"]
    assert list(waits["held"]) == ["SchedulingGates"]
    assert waits["a"] == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "00:00:00"), (3661.5, "01:01:01.500"), (360000, "100:00:00")],
)
def test_times(seconds: float, text: str) -> None:
    assert clock_time(seconds) == text


def test_the_gangs_of_the_example_as_a_process() -> None:
    gang = EXAMPLES / "gang-labels"
    command = [sys.executable, "-m", "bayplan.cli.main", "simulate", "-f", str(gang / "gangs.yaml")]
    command += ["--config", str(gang / "config.yaml"), "--trace"]
    variables = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "PYTHONIOENCODING": "utf-8"}

    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=variables)

    assert done.returncode == 1
    assert done.stderr == ""
    lines = done.stdout.partition("\n\n")[0].splitlines()
    bound = [line.split()[0] for line in lines if " bound " in line]
    assert bound == ["00:00:00"] * 6 + ["00:04:00"] * 6
    assert "12 of 21 pods placed, 9 pending, 12 finished" in done.stdout
