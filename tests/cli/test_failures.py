"""How commands end when the code of a plugin is wrong."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli import failures
from bayplan.cli.main import app

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
    monkeypatch.setattr(failures, "tracebacks", failures.Tracebacks())
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
