"""`bayplan run` as a process, against an API server: its endpoints, its lease, its signals and its exit status."""

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cli.commands.run import serve
from bayplan.cli.flags.command import FlagValues
from bayplan.errors import ConfigError
from bayplan.web.history import HistoryState
from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import node_tree, pod_tree

TIMEOUT_S = 60.0
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 250ms}
"""


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    with api_server(runs_pods=False) as server:
        server.make("/api/v1/nodes", node_tree("a"))
        yield server


class Running:
    """A process of `bayplan run`."""

    def __init__(self, api: ServerInThread, folder: Path, *arguments: str, more: str = "") -> None:
        kubeconfig, config = folder / "kubeconfig", folder / "config.yaml"
        kubeconfig.write_text(json.dumps(make_kubeconfig(api.server.url, token=api.server.token)))
        config.write_text(CONFIG + more)
        self.port = free_port()
        command = [sys.executable, "-m", "bayplan.cli.main", "run", "--kubeconfig", str(kubeconfig)]
        given = ["--config", str(config), f"--secure-port={self.port}", "--bind-address=127.0.0.1"]
        given += arguments
        self.process = subprocess.Popen(
            [*command, *given], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Ask it over HTTPS."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, context=context, timeout=TIMEOUT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def until_ready(self) -> None:
        for _ in attempts(self.process):
            try:
                if self.get("/readyz")[0] == 200:
                    return
            except urllib.error.URLError:
                pass

    def end(self) -> tuple[int, str]:
        """The exit status and the output."""
        _, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, err


def attempts(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Repeats until the condition holds; fails when the process ends or the time is over."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"ended: {process.communicate()[1]}")
        yield
        time.sleep(0.05)
    pytest.fail("nothing happened in time")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def running(api: ServerInThread, tmp_path: Path) -> Iterator[Running]:
    running = Running(api, tmp_path)
    running.until_ready()
    yield running
    if running.process.poll() is None:
        running.process.terminate()
        running.process.communicate()


def until_scheduled(api: ServerInThread, running: Running, name: str) -> None:
    for _ in attempts(running.process):
        if api.get(f"{PODS}/{name}").tree["spec"].get("nodeName"):
            return


def test_what_it_serves(api: ServerInThread, running: Running) -> None:
    api.make(PODS, pod_tree("p"))
    until_scheduled(api, running, "p")

    assert running.get("/healthz") == (200, "ok")
    assert running.get("/readyz?verbose")[1].splitlines() == [
        "[+]leaderElection ok",
        "[+]shutdown ok",
        "[+]sched-handler-sync ok",
        "readyz check passed",
    ]
    metrics = running.get("/metrics")[1]
    assert (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1'
        in metrics
    )
    assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in metrics
    host = urlsplit(api.server.url).netloc
    assert f'rest_client_requests_total{{code="201",host="{host}",method="POST"}}' in metrics
    assert f'rest_client_requests_total{{code="200",host="{host}",method="GET"}}' in metrics
    assert (
        f'rest_client_rate_limiter_duration_seconds_count{{host="{host}",verb="POST"}}' in metrics
    )
    assert f'rest_client_request_size_bytes_count{{host="{host}",verb="POST"}}' in metrics
    assert "rest_client_exec_plugin_ttl_seconds +Inf" in metrics
    assert "# TYPE workqueue_depth gauge" in metrics
    configuration = json.loads(running.get("/configz")[1])["componentconfig"]
    assert configuration["leaderElection"]["leaseDuration"] == "3s"
    assert running.get("/metrics/resources")[0] == 200
    assert running.get("/nothing")[0] == 404


def test_the_page_is_served(api: ServerInThread, running: Running) -> None:
    api.make(PODS, pod_tree("p"))
    until_scheduled(api, running, "p")
    for _ in attempts(running.process):
        state = json.loads(running.get("/page/state")[1])
        if state["base"]["state"] == [6]:
            break

    code, page = running.get("/page")
    account = json.loads(running.get("/page/pod?namespace=default&name=p")[1])

    assert code == 200
    assert page.startswith("<!doctype html>")
    assert state["pods"]["name"] == ["p"]
    assert state["nodes"] == ["a"]
    assert (account["when"], account["evaluated"]) == ("like", 1)


def test_its_state_is_logged_on_a_signal(api: ServerInThread, running: Running) -> None:
    api.make(PODS, pod_tree("p"))
    until_scheduled(api, running, "p")
    assert running.process.stderr is not None

    running.process.send_signal(signal.SIGUSR2)
    lines: list[str] = []
    while not lines or "in 0 places" not in lines[-1]:
        lines.append(running.process.stderr.readline())

    assert any("node a: requested" in line and "default/p" in line for line in lines)


def test_a_request_to_end_gives_the_lease_back(api: ServerInThread, running: Running) -> None:
    for _ in attempts(running.process):  # it is ready as soon as it has read the cluster
        before = api.get(LEASE).tree.get("spec", {})
        if before.get("holderIdentity"):
            break
    running.process.send_signal(signal.SIGTERM)

    code, err = running.end()

    assert code == 0, err
    assert api.get(LEASE).tree["spec"]["holderIdentity"] == ""
    assert "Traceback" not in err


def test_a_standby_with_a_delayed_cache_reads_the_cluster_when_it_leads(
    api: ServerInThread, tmp_path: Path
) -> None:
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600}
    folder, name = LEASE.rsplit("/", 1)
    api.post(folder, {"metadata": {"name": name}, "spec": spec})
    standby = Running(api, tmp_path, more="delayCacheUntilActive: true\n")
    try:
        for _ in attempts(standby.process):
            with suppress(urllib.error.URLError):
                code, text = standby.get("/readyz/sched-handler-sync")
                break
        assert code == 500
        assert "handlers are not fully synchronized" in text

        tree = api.get(LEASE).tree
        api.put(LEASE, {**tree, "spec": {**spec, "holderIdentity": ""}})
        standby.until_ready()
        api.make(PODS, pod_tree("p"))
        until_scheduled(api, standby, "p")
    finally:
        standby.process.kill()
        standby.process.communicate()


def test_a_lost_lease_ends_it(api: ServerInThread, running: Running) -> None:
    def take(tree: Any) -> bool:
        if "spec" not in tree:
            return False  # it is ready, but has not acquired the lease yet
        spec = {**tree["spec"], "holderIdentity": "another", "leaseDurationSeconds": 60}
        return api.put(LEASE, {**tree, "spec": spec}).status == 200

    while not take(api.get(LEASE).tree):
        pass  # it was just being renewed
    code, err = running.end()

    assert code == 1
    assert "the lease is lost" in err
    assert api.get(LEASE).tree["spec"]["holderIdentity"] == "another"
    assert "Traceback" not in err


BLOCKS = """
import threading
from bayplan.framework import SUCCESS, FilterPlugin, PreBindPlugin

class BlocksItsThread(PreBindPlugin):
    name = "BlocksItsThread"

    def pre_bind(self, state, pod, node_name):
        if pod.name == "blocked":
            print("blocked", flush=True)
            threading.Event().wait()
        return SUCCESS

class BlocksTheScheduler(FilterPlugin):
    name = "BlocksTheScheduler"

    def filter_node(self, state, pod, node):
        if pod.name == "stuck":
            print("blocked", flush=True)
            threading.Event().wait()
        return SUCCESS
"""


@pytest.fixture
def blocking(api: ServerInThread, tmp_path: Path) -> Iterator[Running]:
    """A running command with plugins that never return."""
    plugins = tmp_path / "blocks.py"
    plugins.write_text(BLOCKS)
    running = Running(api, tmp_path, f"--plugins={plugins}")
    running.until_ready()
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.communicate()


def until_blocked(api: ServerInThread, running: Running, name: str) -> None:
    api.make(PODS, pod_tree(name))
    assert running.process.stdout is not None
    assert running.process.stdout.readline() == "blocked\n"


def test_a_plugin_that_never_returns_does_not_keep_the_process(
    api: ServerInThread, blocking: Running
) -> None:
    until_blocked(api, blocking, "blocked")

    blocking.process.send_signal(signal.SIGTERM)
    code, err = blocking.end()

    assert code == 0
    assert "a plugin still blocks its thread: ending without it" in err


def test_a_second_signal_ends_it_at_once(api: ServerInThread, blocking: Running) -> None:
    until_blocked(api, blocking, "stuck")
    assert blocking.process.stderr is not None

    blocking.process.send_signal(signal.SIGTERM)
    while "ending: waiting" not in blocking.process.stderr.readline():
        pass
    blocking.process.send_signal(signal.SIGTERM)
    code, err = blocking.end()

    assert code == 1
    assert "second signal: ending at once" in err


def test_an_api_server_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    with api_server(runs_pods=False) as gone:
        address = gone.server.url
    running = Running(gone, tmp_path)
    for _ in attempts(running.process):
        with suppress(urllib.error.URLError):
            code, text = running.get("/readyz/sched-handler-sync")
            if "cannot reach" in text:
                break
    assert code == 500
    assert address in text
    running.process.send_signal(signal.SIGTERM)
    assert running.end()[0] == 0


def test_a_port_that_is_taken(api: ServerInThread, tmp_path: Path, running: Running) -> None:
    second = Running(api, tmp_path, f"--secure-port={running.port}")

    code, err = second.end()

    assert code == 2
    assert "--bind-address, --secure-port: 127.0.0.1:" in err
    assert "Address already in use" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--tls-cert-file=/nowhere", "--tls-private-key-file=/nowhere"],
            "/nowhere: expected a file to read; got No such file or directory",
            id="no certificate",
        ),
        pytest.param(
            ["--leader-elect-lease-duration=soon"],
            "--leader-elect-lease-duration: expected a duration",
            id="no duration",
        ),
        pytest.param(
            ["--leader-elect-resource-name="],
            "--leader-elect-resource-name: expected a name; got none",
            id="no name",
        ),
        pytest.param(
            ["--leader-elect-lease-duration=1s"],
            "leaderElection.leaseDuration: expected more than renewDeadline, which is 2s; got 1s",
            id="a lease that ends before its renewal does",
        ),
        pytest.param(
            ["--leader-elect-retry-period=2s"],
            "leaderElection.renewDeadline: expected more than 1.2 times retryPeriod, which is 2.4s; got 2s",
            id="no time for a second try",
        ),
        pytest.param(
            ["--bind-address=192.0.2.1"], "Cannot assign requested address", id="not ours"
        ),
    ],
)
def test_wrong_options(
    api: ServerInThread, tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, err = Running(api, tmp_path, *arguments).end()

    assert code == 2
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def test_faults_of_the_configuration_come_before_those_of_the_kubeconfig(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Other\n")
    flags = FlagValues({"config": str(config), "kubeconfig": str(tmp_path / "none")})

    with pytest.raises(ConfigError, match="kind: expected"):
        asyncio.run(serve(flags))


def test_faults_of_the_configuration_do_not_wait_for_a_silent_server(tmp_path: Path) -> None:
    config, kubeconfig = tmp_path / "config.yaml", tmp_path / "kubeconfig"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Other\n")

    async def run() -> None:
        held: list[Any] = []  # connections that are open, and never answered
        silent = await asyncio.start_server(lambda *both: held.append(both), "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(f"http://127.0.0.1:{port}")))
        async with silent, asyncio.timeout(20):
            await serve(FlagValues({"config": str(config), "kubeconfig": str(kubeconfig)}))

    with pytest.raises(ConfigError, match="kind: expected"):
        asyncio.run(run())


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Running]:
    """A server on all addresses, of a cluster whose API server requires a token."""
    with api_server(runs_pods=False, token="secret") as api:
        running = Running(api, tmp_path, "--bind-address=0.0.0.0")
        running.until_ready()  # probes need none
        yield running
        running.process.terminate()
        running.process.communicate()


def test_beyond_the_loopback_tokens_are_asked_for(guarded: Running) -> None:
    for path in ("/metrics", "/configz", "/page/state", "/page/changes", "/page/pod"):
        assert guarded.get(path, Authorization="Bearer secret")[0] == 200
        assert guarded.get(path, Authorization="Bearer other")[0] == 401
        code, text = guarded.get(path)
        assert code == 403
        assert f'User "system:anonymous" cannot get path "{path}"' in json.loads(text)["message"]
    # The page itself has no data of the cluster, and browsers have no token to send when they open it.
    code, text = guarded.get("/page")
    assert code == 200
    assert '{"isLive":true}' in text


class Page:
    """Data that a browser that shows the page has received."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._state: Any = self._ask("/page/state")

    def _ask(self, path: str) -> Any:
        code, text = self._running.get(path)
        assert code == 200, text
        return json.loads(text)

    def until_on(self, node: str, pod: str) -> None:
        """Follow the changes until the pod has the node."""
        state, names = self._state, list(self._state["pods"]["name"])
        told = len(state["events"]["t"])
        for _ in attempts(self._running.process):
            tale = self._ask(
                f"/page/changes?epoch={state['epoch']}&events={told}&pods={len(names)}"
            )
            assert tale["epoch"] == state["epoch"]
            names += tale["pods"]["name"]
            events = tale["events"]
            told += len(events["t"])
            for what, which, value in zip(
                events["what"], events["which"], events["value"], strict=True
            ):
                is_placed = what == HistoryState.RUNNING and names[which] == pod
                if is_placed and tale["nodes"][value] == node:
                    return

    def judge(self, pod: str) -> Any:
        """Data of a click on the pod."""
        return self._ask(f"/page/pod?namespace=default&name={pod}")


def test_the_page_follows_the_cluster_and_explains_a_pod(
    api: ServerInThread, running: Running
) -> None:
    assert "<title>" in running.get("/page/")[1]
    page = Page(running)
    api.make(PODS, pod_tree("p"), pod_tree("nowhere", nodeSelector={"no": "where"}))

    page.until_on("a", "p")

    assert page.judge("p")["feasible"] == 1
    refused = page.judge("nowhere")
    assert (refused["evaluated"], refused["feasible"]) == (1, 0)
    assert "node affinity/selector" in json.dumps(refused["refusals"])
    assert page.judge("gone") == {"when": "now", "error": "The pod no longer exists."}
    running.process.send_signal(signal.SIGTERM)
    code, err = running.end()
    assert (code, "Traceback" in err) == (0, False)
