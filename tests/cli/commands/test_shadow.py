"""`bayplan shadow` as a command: its summary, its server, and its messages; `bayplan replay --judge`."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.main import app
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import node_tree, pod_tree

ROOT = Path(__file__).parents[3]
RECORDING = str(ROOT / "examples/recording/run.jsonl.gz")
runner = CliRunner()


def test_judge_prints_the_account_of_a_recording() -> None:
    result = runner.invoke(app, ["replay", RECORDING, "--judge", "--all"])

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split()[:5] == ["TIME", "POD", "NODE", "VERDICT", "TOTAL"]
    assert lines[-1] == "25 decisions: 25 same, 0 sampled, 0 other state, 0 different"


def test_judge_ends_with_1_and_evidence_when_a_decision_differs(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text((ROOT / "examples/compare/most-allocated.yaml").read_text())
    options = ["--judge", "--config", str(other), "--evidence", str(tmp_path / "evidence")]

    result = runner.invoke(app, ["replay", RECORDING, *options])

    assert result.exit_code == 1
    assert "NodeResourcesFit" in result.stdout
    assert "! default-scheduler: chose nodes with a lower total" in result.stdout
    first = json.loads((tmp_path / "evidence/differences.jsonl").read_text().splitlines()[0])
    explained = runner.invoke(app, [*first["command"].split()[1:], "--config", str(other)])
    total = first["reason"].partition(" points")[0]
    row = next(line for line in explained.stdout.splitlines() if first["node"] in line.split())
    assert total in row.split()


@pytest.mark.parametrize(
    ("options", "count"),
    [
        pytest.param(["--judge"], 0, id="judged: those that differ"),
        pytest.param(["--judge", "--all"], 24, id="judged: all"),
        pytest.param([], 0, id="replayed: those that differ"),
        pytest.param(["--all"], 24, id="replayed: all"),
    ],
)
def test_names_of_decisions(options: list[str], count: int) -> None:
    result = runner.invoke(app, ["replay", RECORDING, *options, "-o", "name"])

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == count
    assert all(line.startswith("pod/") for line in lines)


def test_evidence_of_sampled_decisions_needs_a_folder() -> None:
    result = runner.invoke(app, ["shadow", "--evidence-sampled"])

    assert result.exit_code == 2
    assert "--evidence-sampled: expected --evidence FOLDER with it; got none" in result.output


def test_a_plugin_that_is_not_here_is_named(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {enabled: [{name: Trimaran}]}}}]\n"
    )

    result = runner.invoke(app, ["replay", RECORDING, "--judge", "--config", str(config)])

    assert result.exit_code == 2
    assert 'expected the name of a plugin; got "Trimaran"' in result.output


def test_judge_does_not_go_with_own_decisions() -> None:
    result = runner.invoke(app, ["replay", RECORDING, "--judge", "--follow", "own"])

    assert result.exit_code == 2
    assert "--judge: expected --follow recorded; got --follow own" in result.output


def test_evidence_needs_a_judge() -> None:
    result = runner.invoke(app, ["replay", RECORDING, "--evidence", "folder"])

    assert result.exit_code == 2
    assert "--evidence: expected --judge with it; got none" in result.output


def test_a_summary_needs_a_state() -> None:
    result = runner.invoke(app, ["shadow", "--summary"])

    assert result.exit_code == 2
    assert "--summary: expected --state FILE; got none" in result.output


@pytest.fixture
def live() -> Iterator[ServerInThread]:
    with api_server(runs_pods=False) as server:
        for number in range(2):
            server.make("/api/v1/nodes", node_tree(f"n{number}"))
        yield server


def start(kubeconfig: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bayplan.cli.main", "shadow", "--kubeconfig", str(kubeconfig)]
    return subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_live_cluster_is_watched_served_and_summed_up(
    live: ServerInThread, tmp_path: Path
) -> None:
    kubeconfig, state = tmp_path / "kubeconfig", tmp_path / "state.json"
    kubeconfig.write_text(json.dumps(make_kubeconfig(live.server.url)))
    process = start(kubeconfig, "--port=0", f"--state={state}", "-o", "json")
    assert process.stderr is not None
    url = process.stderr.readline().removeprefix("serving ").strip()
    while _get(f"{url}/readyz") != (200, "watching\n"):
        assert process.poll() is None
    live.make(PODS, pod_tree("p"))
    target = {"apiVersion": "v1", "kind": "Node", "name": "n0"}
    live.make(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": target})
    line = 'bayplan_shadow_decisions_total{scheduler="default-scheduler",verdict="same"} 1.0'
    while line not in _get(f"{url}/metrics")[1]:
        assert process.poll() is None
    page = _get(url)[1]
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)

    assert "<td>default-scheduler" in page
    assert process.returncode == 0
    assert json.loads(out)["summary"]["same"] == 1
    assert json.loads(state.read_text())["account"]["schedulers"]["default-scheduler"]["bound"] == 1


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
