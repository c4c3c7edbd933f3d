"""`bayplan record` of a live scheduler, and `bayplan replay` of it: the same decisions."""

import asyncio
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.api.wire.placement_fields import KEPT_ANNOTATIONS
from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.commands.record import Recorder
from bayplan.cli.main import app
from bayplan.clock import SystemClock
from bayplan.config.defaults import default_config
from bayplan.drivers.kube_driver import KubeDriver
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""
TIMEOUT_S = 60.0
runner = CliRunner()


def cpu_pod(name: str, cpu: str) -> dict[str, object]:
    resources = {"requests": {"cpu": cpu}}
    env = [{"name": "PASSWORD", "value": "hunter2"}]
    return pod_tree(
        name, containers=[{"name": "c", "image": "app:1", "resources": resources, "env": env}]
    )


async def record_a_run(api: ServerInThread, kubeconfig: Path, file: Path) -> None:
    """Run a live scheduler during a recording: pods and a node are added, and a pod is deleted."""
    connection = Connection(await load_credentials(kubeconfig))
    driver = KubeDriver(connection, default_config())
    await driver.start()
    driver.lead()

    async def until(done: int) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while sum(bool(pod.node_name) for pod in driver.cluster.list("Pod")) < done:
                await asyncio.sleep(0.01)

    with file.open("wb") as stream:
        recorder = Recorder(lambda: stream, SystemClock(), KEPT_ANNOTATIONS)
        told = asyncio.Event()
        recording = asyncio.ensure_future(recorder.record(connection, told))
        while not recorder.objects:
            await asyncio.sleep(0.01)
            assert not recording.done(), recording.exception()
        loop = asyncio.get_running_loop()
        for i in range(8):  # one after the other: no two are in the queue at the same time
            await loop.run_in_executor(None, api.make, PODS, cpu_pod(f"p{i}", f"{700 + 111 * i}m"))
            await until(i + 1)
        await loop.run_in_executor(None, api.delete, f"{PODS}/p0", {"gracePeriodSeconds": 0})
        await loop.run_in_executor(None, api.make, PODS, cpu_pod("too-big", "64"))
        # Two for each pod that was bound, at least one for each of the others.
        await changes(recorder, 8 * 2 + 2)
        told.set()
        await recording
    await driver.stop()
    await connection.close()


async def changes(recorder: Recorder, count: int) -> None:
    """Wait until so many events were recorded."""
    async with asyncio.timeout(TIMEOUT_S):
        while recorder.events < count:
            await asyncio.sleep(0.01)


@pytest.fixture
def recording(api: ServerInThread, kubeconfig: Path, tmp_path: Path) -> Path:
    for i, cpu in enumerate(("4", "7", "13")):
        node = node_tree(f"n{i}")
        node["status"]["allocatable"] = {**node["status"]["allocatable"], "cpu": cpu}
        api.make("/api/v1/nodes", node)
    file = tmp_path / "run.jsonl.gz"
    asyncio.run(record_a_run(api, kubeconfig, file))
    return file


def test_record_and_replay(recording: Path, tmp_path: Path) -> None:
    own = ["replay", str(recording), "--follow", "own"]
    first = runner.invoke(app, [*own, "-o", "json"])
    again = runner.invoke(app, [*own, "-o", "json"])
    table = runner.invoke(app, [*own, "--all"])
    assert any(line.startswith("RESOURCE") for line in table.stdout.splitlines())
    assert json.loads(first.stdout)["totals"][0]["resource"] == "cpu"

    summary = json.loads(first.stdout)["summary"]
    assert (summary["pods"], summary["same"], summary["pending"]) == (9, 8, 1), first.stdout
    assert first.exit_code == 0
    assert again.stdout == first.stdout
    assert "9 of 9 pods agree: 8 same node, 1 pending both times" in table.stdout
    assert table.stdout.splitlines()[0].split() == ["TIME", "POD", "RECORDED", "REPLAYED", "RESULT"]

    other = tmp_path / "other.yaml"
    other.write_text(MOST_ALLOCATED)
    changed = runner.invoke(app, ["replay", str(recording), "--config", str(other)])

    assert changed.exit_code == 1
    assert "to another node" in changed.stdout
    assert "other node" in changed.stdout.splitlines()[1]


def test_decisions_are_judged_in_the_recorded_state(recording: Path) -> None:
    first = runner.invoke(app, ["replay", str(recording), "-o", "json"])
    again = runner.invoke(app, ["replay", str(recording), "-o", "json"])
    table = runner.invoke(app, ["replay", str(recording), "--all"])

    document = json.loads(first.stdout)
    summary = document["summary"]
    assert document["follow"] == "recorded"
    assert (summary["pods"], summary["same"] + summary["equal"]) == (9, 8), first.stdout
    # The recording may end before the refusal of the last pod is written.
    assert summary["pending"] + summary["undecided"] == 1
    assert first.exit_code == 0
    assert again.stdout == first.stdout
    assert "decisions agree: " in table.stdout
    assert table.stdout.splitlines()[0].split()[-1] == "REASON"
    assert all(pod["total"] == pod["bestTotal"] for pod in document["pods"] if pod["recorded"])


def test_nothing_else_is_recorded(recording: Path) -> None:

    text = gzip.decompress(recording.read_bytes()).decode()

    assert "hunter2" not in text
    assert '"kind":"Pod"' in text


def test_the_command(api: ServerInThread, kubeconfig: Path, tmp_path: Path) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    file = tmp_path / "run.jsonl.gz"
    command = [sys.executable, "-m", "bayplan.cli.main", "record", "--kubeconfig", str(kubeconfig)]

    done = subprocess.run([*command, "--for", "1s"], capture_output=True, timeout=TIMEOUT_S)
    file.write_bytes(done.stdout)

    assert done.returncode == 0, done.stderr
    assert b"recording, beginning with" in done.stderr
    result = runner.invoke(app, ["replay", str(file)])
    assert "0 of 0 decisions agree" in result.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not run: no /dev/full here")
def test_a_disk_that_is_full(api: ServerInThread, kubeconfig: Path) -> None:
    given = ["--kubeconfig", str(kubeconfig), "--to", "/dev/full"]

    result = runner.invoke(app, ["record", *given])

    assert result.exit_code == 2
    assert "/dev/full: expected room to write; got No space left on device" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--for", "soon"], "--for: expected a duration", id="no duration"),
        pytest.param(
            ["--to", "/nowhere/run"],
            "--to: /nowhere/run: expected a file to write to",
            id="no folder",
        ),
    ],
)
def test_wrong_options(kubeconfig: Path, arguments: list[str], message: str) -> None:
    result = runner.invoke(app, ["record", "--kubeconfig", str(kubeconfig), *arguments])

    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_a_cluster_that_is_away_leaves_the_file_alone(tmp_path: Path) -> None:
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "run.jsonl.gz"
    kubeconfig.write_text(json.dumps(make_kubeconfig("http://127.0.0.1:1")))
    file.write_text("before")

    result = runner.invoke(app, ["record", "--kubeconfig", str(kubeconfig), "--to", str(file)])

    assert result.exit_code == 2
    assert "cannot reach the API server" in result.output
    assert file.read_text() == "before"


def test_replay_of_something_else(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("kind: Node\n")

    result = runner.invoke(app, ["replay", str(file)])

    assert result.exit_code == 2
    assert "line 1: expected JSON" in result.output
