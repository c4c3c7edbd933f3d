"""Exit of commands when a plugin, our own code or the disk fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli import failures
from bayplan.cli.main import app
from bayplan.errors import EngineDisagreementError
from bayplan.sim import Simulation

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: c}]}
"""
ZONES = """from bayplan.framework import FilterPlugin


class Zones(FilterPlugin):
    name = "Zones"

    def filter_node(self, state, pod, node):
        return zone_of(node)


def zone_of(node):
    return node.labels["zone"]
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "zones.py").write_text(ZONES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(failures, "has_tracebacks", False)
    return tmp_path


COMMANDS = [
    pytest.param(["simulate", "-f", "cluster.yaml"], id="simulate"),
    pytest.param(["simulate", "-f", "cluster.yaml", "--explain"], id="simulate with --explain"),
    pytest.param(["explain", "p", "-f", "cluster.yaml"], id="explain"),
    pytest.param(["what-if", "drain", "a", "-f", "cluster.yaml"], id="what-if"),
    pytest.param(["rebalance", "-f", "cluster.yaml"], id="rebalance"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_with_one_line_about_the_plugin(files: Path, command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--plugins", "zones.py"])

    assert result.exit_code == 2, result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert lines == [
        "error: running \"Zones\" filter plugin: zones.py:12: filter_node: KeyError: 'zone'"
    ]
    assert "Traceback" not in result.output + result.stderr


def test_debug_prints_the_traceback(files: Path) -> None:
    command = ["--debug", "simulate", "-f", "cluster.yaml", "--plugins", "zones.py"]

    result = CliRunner().invoke(app, command)

    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert 'return node.labels["zone"]' in result.stderr


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(AttributeError("no such thing\nof two lines"), id="a bug"),
        pytest.param(EngineDisagreementError("p: the engine differs"), id="a disagreement"),
    ],
)
def test_an_unexpected_exception_ends_with_one_line_and_status_70(
    files: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Simulation, "__init__", fail)

    result = CliRunner().invoke(app, ["simulate", "-f", "cluster.yaml"])

    assert result.exit_code == 70, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: internal error: {type(error).__name__}: ")
    assert "`bayplan --debug" in line
    assert "report it" in line


def test_debug_prints_the_traceback_of_an_unexpected_exception(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Simulation, "__init__", lambda *_, **__: 1 / 0)

    result = CliRunner().invoke(app, ["--debug", "simulate", "-f", "cluster.yaml"])

    assert result.exit_code == 70
    assert "Traceback" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("words", "target", "place"),
    [
        pytest.param(
            ["simulate", "-f", "cluster.yaml"], "/dev/full", "standard output", id="table"
        ),
        pytest.param(
            ["simulate", "-f", "cluster.yaml", "-o", "json"],
            "/dev/full",
            "standard output",
            id="JSON",
        ),
        pytest.param(["--version"], "/dev/full", "standard output", id="version"),
        pytest.param(["--help"], "/dev/full", "standard output", id="help"),
        pytest.param(
            ["simulate", "--help"], "/dev/full", "standard output", id="help of a command"
        ),
        pytest.param(
            ["simulate", "-f", "cluster.yaml", "--trace", "/dev/full"],
            os.devnull,
            "--trace",
            id="--trace",
        ),
        pytest.param(
            ["simulate", "-f", "cluster.yaml", "--html", "/dev/full"],
            os.devnull,
            "--html",
            id="--html",
        ),
    ],
)
def test_a_full_disk_ends_with_one_line_and_status_70(
    files: Path, words: list[str], target: str, place: str
) -> None:
    with open(target, "w") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "bayplan", *words],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert done.returncode == 70
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {place}: ")
    assert line.endswith("No space left on device")
