"""`bayplan up` as a process: output, exit, and durability when killed."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rig.trees import numa_tree

TIMEOUT_S = 60
MAPS = "/api/v1/namespaces/default/configmaps"


@contextmanager
def up(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A running `bayplan up` over plain HTTP, and its port."""
    command = [sys.executable, "-m", "bayplan.cli.main", "up", "--http", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("export KUBECONFIG="), line
        kubeconfig = yaml.safe_load(Path(line.strip().partition("=")[2]).read_text())
        yield process, int(kubeconfig["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def first_event(port: int, path: str) -> Any:
    """The first event of a watch."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().readline())
    finally:
        connection.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly(tmp_path: Path, number: int) -> None:
    with up("--data-dir", str(tmp_path), "--nodes", "2") as (process, port):
        status, nodes = ask(port, "GET", "/api/v1/nodes")
        process.send_signal(number)

        assert (status, len(nodes["items"])) == (200, 2)
        assert process.wait(TIMEOUT_S) == 0
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o77 == 0


def test_pods_of_a_file_are_scheduled(tmp_path: Path) -> None:
    manifest = tmp_path / "cluster.yaml"
    room = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "only"},
        "status": {"capacity": room, "allocatable": room},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    }
    manifest.write_text(yaml.safe_dump_all([node, pod]))

    with up("--data-dir", str(tmp_path / "data"), "-f", str(manifest)) as (_, port):
        path = "/api/v1/namespaces/shop/pods?fieldSelector=status.phase%3DRunning"
        event = first_event(port, f"{path}&watch=true")

        assert event["object"]["spec"]["nodeName"] == "only"


@pytest.mark.parametrize("scheduler", [["--no-scheduler"], []], ids=["without", "with a scheduler"])
def test_feature_gates_are_those_of_the_api_server(tmp_path: Path, scheduler: list[str]) -> None:
    path = "/apis/scheduling.k8s.io/v1alpha2/podgroups"
    gates = "--feature-gates=GenericWorkload=true"

    with up("--data-dir", str(tmp_path / "a"), *scheduler, gates) as (_, port):
        assert ask(port, "GET", path)[0] == 200
    with up("--data-dir", str(tmp_path / "b"), *scheduler) as (_, port):
        assert ask(port, "GET", path)[0] == 404


def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    acknowledged: dict[str, str] = {}
    with up("--data-dir", str(tmp_path), "--no-scheduler") as (process, port):
        enough = threading.Event()

        def write(writer: int) -> None:
            for number in range(100_000):
                name = f"w{writer}-{number}"
                tree = {"metadata": {"name": name}, "data": {"n": str(number)}}
                try:
                    status, made = ask(port, "POST", MAPS, tree)
                except (OSError, http.client.HTTPException, ValueError):
                    return  # the server is gone
                assert status == 201
                acknowledged[name] = made["metadata"]["resourceVersion"]
                if len(acknowledged) > 300:
                    enough.set()

        writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for writer in writers:
            writer.start()
        assert enough.wait(TIMEOUT_S)
        os.kill(process.pid, signal.SIGKILL)
        for writer in writers:
            writer.join(TIMEOUT_S)

    with up("--data-dir", str(tmp_path), "--no-scheduler") as (_, port):
        _, found = ask(port, "GET", MAPS)

    kept = {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]
    }
    lost = {name: version for name, version in acknowledged.items() if kept.get(name) != version}
    assert lost == {}
    newest = max(map(int, acknowledged.values()))
    assert int(found["metadata"]["resourceVersion"]) >= newest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["-f", "none.yaml"], "none.yaml", id="no such file"),
        pytest.param(["--bind-address", "here"], "expected an IP address", id="no address"),
        pytest.param(
            ["--bind-address", "0.0.0.0", "--http"],
            "--bind-address: expected an address of the loopback with --http",
            id="open to the network without a token",
        ),
        pytest.param(["--data-dir", "/dev/null/x"], "expected a folder", id="no folder"),
    ],
)
def test_errors_are_one_line(arguments: list[str], words: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bayplan.cli.main", "up", *arguments]

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=tmp_path, check=False
    )

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "bayplan.cli.main", "up", "--port", port]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )

    assert done.returncode == 2
    assert f"port {port}: expected a free port" in done.stderr


def test_an_invalid_manifest_is_reported(tmp_path: Path) -> None:
    manifest = tmp_path / "bad.yaml"
    manifest.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n")
    command = [sys.executable, "-m", "bayplan.cli.main", "up", "-f", str(manifest)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    assert done.returncode == 2
    assert "bad.yaml: document 1:" in done.stderr
    assert "spec.containers: Required value" in done.stderr


PLUGIN = """
from bayplan.framework import SUCCESS, FilterPlugin, unschedulable

class OnlyLast(FilterPlugin):
    name = "OnlyLast"

    def filter_node(self, state, pod, node):
        return SUCCESS if node.name == "node-2" else unschedulable("not the last")
"""


def test_plugins_of_a_file_are_used(tmp_path: Path) -> None:
    plugin = tmp_path / "only_last.py"
    plugin.write_text(PLUGIN)
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
    path = "/api/v1/namespaces/default/pods"

    with up("--plugins", str(plugin)) as (_, port):
        assert ask(port, "POST", path, pod)[0] == 201
        watch = f"{path}?watch=true&fieldSelector=status.phase%3DRunning"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        connection.request("GET", watch)
        event = json.loads(connection.getresponse().readline())
        connection.close()

    assert event["object"]["spec"]["nodeName"] == "node-2"


def test_plugins_find_custom_objects_of_files(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "node-resource-topology"
    small = [numa_tree(f"node-{i}", "1") for i in range(3)]
    objects = tmp_path / "objects.json"
    objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": small}))
    amounts = {"cpu": "2", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "a", "image": "x", "resources": resources}
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [container]}}
    path = "/api/v1/namespaces/default/pods"
    files = ("-f", str(example / "crd.yaml"), "-f", str(objects), "--nodes", "3")

    with up("--plugins", str(example / "topology_match.py"), *files) as (_, port):
        assert ask(port, "POST", path, pod)[0] == 201
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        connection.request("GET", f"{path}?watch=true")
        response = connection.getresponse()
        while True:
            status = json.loads(response.readline())["object"].get("status") or {}
            refused = [c for c in status.get("conditions") or () if c["status"] == "False"]
            if refused:
                break
        connection.close()

    assert "no NUMA zone has room for the whole pod" in refused[0]["message"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("clusters: [{name: prod}]\ncontexts: [{name: prod}]\n", id="of another"),
        pytest.param("- a list\n", id="no kubeconfig"),
        pytest.param("{", id="no YAML"),
    ],
)
def test_a_foreign_file_is_not_overwritten(text: str, tmp_path: Path) -> None:
    precious = tmp_path / "config"
    precious.write_text(text)
    command = [sys.executable, "-m", "bayplan.cli.main", "up", "--kubeconfig", str(precious)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    assert done.returncode == 2
    assert "expected a new file, or one that bayplan up wrote" in done.stderr
    assert precious.read_text() == text


def test_its_own_kubeconfig_is_overwritten(tmp_path: Path) -> None:
    path = str(tmp_path / "kubeconfig")
    for _ in range(2):
        with up("--kubeconfig", path) as (_, port):
            assert ask(port, "GET", "/api/v1/nodes")[0] == 200


def test_time_passes_faster(tmp_path: Path) -> None:
    manifest = tmp_path / "pod.yaml"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "job", "annotations": {"bayplan.dev/duration": "5m"}},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    }
    manifest.write_text(yaml.safe_dump(pod))

    with up("--speed", "100", "--nodes", "1", "-f", str(manifest)) as (_, port):
        path = "/api/v1/namespaces/default/pods?fieldSelector=status.phase%3DSucceeded"
        event = first_event(port, f"{path}&watch=true")

    state = event["object"]["status"]["containerStatuses"][0]["state"]["terminated"]
    lasted = datetime.fromisoformat(state["finishedAt"]) - datetime.fromisoformat(
        state["startedAt"]
    )
    assert lasted >= timedelta(minutes=4, seconds=30), "as the cluster's clock says"
