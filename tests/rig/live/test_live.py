"""The tools of the end-to-end tests: waiting, detection of faults, and clean-up."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from tests.rig.api_server import ServerInThread, api_server, config_map_tree
from tests.rig.live.client import LiveClient, RefusedError
from tests.rig.live.cluster import Bindings
from tests.rig.live.control_plane import find_asset, missing_assets
from tests.rig.live.follower import ListFollower
from tests.rig.live.processes import Process

MAPS = "/api/v1/namespaces/default/configmaps"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def api() -> Iterator[ServerInThread]:
    with api_server() as server:
        yield server


@pytest.fixture
def client(api: ServerInThread, tmp_path: Path) -> LiveClient:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(make_kubeconfig(api.server.url)))
    return LiveClient(path)


def sleeper(log: Path, code: str = "") -> Process:
    return Process([sys.executable, "-c", f"{code}\nimport time; time.sleep(600)"], log)


def test_a_follower_sees_added_and_deleted_objects(client: LiveClient) -> None:
    client.create(MAPS, config_map_tree("there"))
    kinds: list[str] = []
    follower = ListFollower(client, MAPS, lambda kind, tree: kinds.append(kind))

    client.create_all(MAPS, (config_map_tree(f"m-{number}") for number in range(20)))
    follower.wait(lambda known: len(known) == 21, "all are there")
    client.delete_all(f"{MAPS}/m-{number}" for number in range(20))
    follower.wait(lambda known: [name for _, name in known] == ["there"], "one is left")
    follower.stop()

    assert (kinds.count("ADDED"), kinds.count("DELETED")) == (21, 20)


def test_wait_returns_the_awaited_value(client: LiveClient) -> None:
    follower = ListFollower(client, MAPS)

    with pytest.raises(AssertionError, match=r"not within 0.1 s: the moon rises"):
        follower.wait(lambda known: False, "the moon rises", timeout_s=0.1)
    follower.stop()


def test_a_refusal_is_reported(client: LiveClient) -> None:
    with pytest.raises(RefusedError, match="404"):
        client.get(f"{MAPS}/none")


@pytest.mark.parametrize(
    ("nodes", "moved"),
    [
        pytest.param(["", "", "a", "a"], False, id="bound once"),
        pytest.param(["", ""], False, id="never bound"),
        pytest.param(["", "a", "b"], True, id="bound to two nodes"),
        pytest.param(["", "a", "", "a"], True, id="taken back and bound again"),
    ],
)
def test_pods_that_change_their_node_are_detected(nodes: list[str], moved: bool) -> None:
    bindings = Bindings()

    for version, node in enumerate(nodes):
        metadata = {"name": "p", "uid": "u", "resourceVersion": str(version)}
        bindings.on_pod("MODIFIED", {"metadata": metadata, "spec": {"nodeName": node}})

    assert bool(bindings.moved()) is moved


def test_a_process_that_ends_too_soon_is_reported_with_its_log(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", "raise SystemExit('out of luck')"], tmp_path / "log")

    with pytest.raises(AssertionError, match="out of luck"):
        process.wait_until(lambda: False, "ready", timeout_s=30)


def test_a_frozen_process_can_be_stopped(tmp_path: Path) -> None:
    process = sleeper(tmp_path / "log")
    process.send(signal.SIGSTOP)

    assert process.cpu_s() >= 0
    assert process.memory_mib()["rss"] > 0
    assert process.stop() == -signal.SIGTERM
    assert not process.is_running


@pytest.mark.skipif(sys.platform != "linux", reason="needs a parent's death signal")
def test_processes_do_not_outlive_their_parent(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys\n"
        "from tests.rig.live.processes import Process\n"
        f"child = Process([sys.executable, '-c', 'input()'], pathlib.Path({str(tmp_path / 'log')!r}))\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", code.replace("input()", "import time; time.sleep(600)")]

    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    child = int(done.stdout)
    watcher = sleeper(tmp_path / "other")
    watcher.wait_until(lambda: not is_alive(child), "the child is gone", timeout_s=30)
    watcher.kill()

    assert done.returncode == -signal.SIGKILL


def is_alive(pid: int) -> bool:
    """Whether there is such a process, other than a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_binaries_are_searched_where_envtest_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "etcd").write_text("")
    (tmp_path / "etcd").chmod(0o755)

    assert find_asset("etcd") == tmp_path / "etcd"
    assert missing_assets() == ["kube-apiserver"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_summary_lists_what_was_not_run(tmp_path: Path, workers: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-k", "kube-apiserver"]
    env = {**os.environ, "KUBEBUILDER_ASSETS": str(tmp_path)}

    done = subprocess.run(
        [*command, "tests/e2e/test_changes.py", "tests/e2e/test_volumes.py"],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "!!! NOT RUN !!!" in done.stdout
    assert "7 tests: " in done.stdout
    assert f"NOT RUN against a real kube-apiserver: no etcd, kube-apiserver in {tmp_path}" in (
        done.stdout
    )
