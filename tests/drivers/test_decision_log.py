"""Decision log: a line per attempt, rotated; explain reads the reason for a placement from it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.main import app
from bayplan.clock import ManualClock, SystemClock
from bayplan.config.defaults import default_config
from bayplan.drivers.decision_log import DecisionLog, LoggedAttempt, read_decisions
from bayplan.drivers.kube_driver import DriverOptions, KubeDriver
from bayplan.errors import InputError
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from bayplan.scheduler import Attempt, Outcome
from bayplan.testing.builders import make_pod
from tests.rig.api_server import PODS, api_server
from tests.rig.trees import node_tree, pod_tree

TIMEOUT_S = 30.0
runner = CliRunner()


def cpu_pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return pod_tree(name, containers=[container], **spec)


def sized_node(name: str, cpu: str) -> dict[str, Any]:
    node = node_tree(name)
    node["status"]["allocatable"] = {**node["status"]["allocatable"], "cpu": cpu}
    return node


@pytest.fixture(scope="module")
def decisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a scheduler that placed, preempted and refused."""
    folder = tmp_path_factory.mktemp("decisions")
    file = folder / "decisions.jsonl"
    with api_server(runs_pods=False) as api:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(make_kubeconfig(api.server.url)))
        for name, cpu in (("small", "4"), ("large", "8")):
            api.make("/api/v1/nodes", sized_node(name, cpu))
        pods = [cpu_pod("web", "1"), cpu_pod("fill", "6"), cpu_pod("too-big", "64")]

        async def run() -> None:
            connection = Connection(await load_credentials(kubeconfig))
            log = DecisionLog(str(file), SystemClock())
            driver = KubeDriver(connection, default_config(), DriverOptions(decisions=log))
            await driver.start()
            driver.lead()
            async with asyncio.timeout(TIMEOUT_S):
                for number, pod in enumerate(pods, 1):
                    await asyncio.to_thread(api.make, PODS, pod)
                    while len(lines_of(file, log)) < number:
                        await asyncio.sleep(0.01)
            await driver.stop()
            await connection.close()
            log.close()

        asyncio.run(run())
    return file


def lines_of(file: Path, log: DecisionLog) -> list[str]:
    assert log._stream is not None
    log._stream.flush()
    return file.read_text().splitlines()


def test_a_line_has_the_decision_and_its_margin(decisions: Path) -> None:
    web, fill, refused = map(json.loads, decisions.read_text().splitlines())

    assert (web["name"], web["result"], web["node"]) == ("web", "bound", "large")
    assert (web["runnerUp"], web["margin"]) == ("small", web["total"] - web["runnerUpTotal"])
    assert (fill["node"], fill["feasibleNodes"], "total" in fill) == ("large", 1, False)
    assert refused["result"] == "unschedulable"
    assert refused["refusals"] == {"NodeResourcesFit": 2}
    assert refused["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert web["stateVersion"] < fill["stateVersion"] < refused["stateVersion"]


@pytest.mark.parametrize(
    ("pod", "status", "words"),
    [
        pytest.param("pod/web", 0, "the highest of 2 nodes that fit; small had ", id="placed"),
        pytest.param("default/fill", 0, "the only one of 2 nodes that fits", id="one node"),
        pytest.param("too-big", 1, "got no node at ", id="refused"),
    ],
)
def test_explain_tells_why_then(decisions: Path, pod: str, status: int, words: str) -> None:
    result = runner.invoke(app, ["explain", pod, "--decisions", str(decisions)])

    assert result.exit_code == status, result.output
    assert words in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["pod/other"], "expected attempts at pod pod/other; got none", id="no pod"),
        pytest.param(["web", "--as-is"], "--decisions: expected no --as-is", id="an option"),
        pytest.param(["a/b/c"], "expected pod/NAME or pod/NAMESPACE/NAME", id="no name"),
    ],
)
def test_wrong_questions_are_refused(decisions: Path, arguments: list[str], message: str) -> None:
    result = runner.invoke(app, ["explain", *arguments, "--decisions", str(decisions)])

    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_a_log_is_rotated_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"
    log = DecisionLog(str(file), ManualClock(), most_bytes=2_000)
    for number in range(100):
        attempt = Attempt(make_pod("p", uid="u"), Outcome.BOUND, "n", number=number)
        log.note(attempt)
    log.close()

    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["decisions.jsonl", *(f"decisions.jsonl.{n}" for n in (1, 2, 3))]
    assert all(path.stat().st_size < 2_500 for path in tmp_path.iterdir())
    numbers = [one.attempt for one in read_decisions(file, "", "p")]
    assert numbers == list(range(numbers[0], 100))


def test_a_broken_line_and_two_namespaces_are_input_errors(tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"
    file.write_text('{"name":"p"}\n')
    with pytest.raises(InputError, match=r"decisions.jsonl:1: expected a line that"):
        read_decisions(file, "", "p")
    lines = [
        f'{{"time":1,"namespace":"{space}","name":"p","uid":"u","attempt":1,"result":"bound"}}\n'
        for space in ("a", "b")
    ]
    file.write_text("".join(lines))
    with pytest.raises(InputError, match=r"expected a namespace, as in pod/a/p"):
        read_decisions(file, "", "p")
    (found,) = read_decisions(file, "b", "p")
    assert isinstance(found, LoggedAttempt)
