"""Shadow: `bayplan shadow` beside a running scheduler: every decision is the same, and nothing is written.

Restarts of the API server and of the shadow itself, which continues with its state, lead to no false difference.
"""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bayplan.shadow import live_shadow
from tests.rig.live.cluster import ClusterUnderTest, pod_tree

TIMEOUT_S = 60


def wait_until_ready(url: str) -> None:
    """Wait until the shadow has read the cluster."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(f"{url}/readyz"):
            return
        time.sleep(0.05)
    raise AssertionError("the shadow is not ready")


def wait_until_seen(url: str, number: int) -> None:
    """Wait until the shadow has received so many decisions."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        with urllib.request.urlopen(f"{url}/report.json") as answer:
            summary = json.loads(answer.read())["summary"]
        if summary["decisions"] + summary["skipped"] >= number:
            return
        time.sleep(0.1)
    raise AssertionError(f"the shadow has seen too few decisions: {summary}")


def start_shadow(
    cluster: ClusterUnderTest, folder: Path, *options: str
) -> tuple[subprocess.Popen[bytes], str]:
    """A shadow with its server, and the address of that; the other lines go to a file."""
    log = folder / f"shadow-{len(list(folder.glob('shadow-*')))}.log"
    command = [sys.executable, "-m", "bayplan.cli.main", "shadow", "--port=0", "-o", "json"]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, f"--kubeconfig={cluster.server.kubeconfig}", *options],
            stdout=subprocess.PIPE,
            stderr=file,
        )
    deadline = time.monotonic() + TIMEOUT_S
    while b"serving " not in log.read_bytes():
        assert time.monotonic() < deadline, log.read_text()
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    return process, log.read_text().partition("serving ")[2].split()[0]


def end(process: subprocess.Popen[bytes]) -> Any:
    """The report of the shadow after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    return json.loads(out)


def test_a_scheduler_at_work_agrees_with_its_shadow(
    cluster: ClusterUnderTest, tmp_path: Path
) -> None:
    for number, zone in enumerate("abc"):
        labels = {"topology.kubernetes.io/zone": zone}
        cluster.node(f"n-{number}", labels=labels, room={"cpu": f"{4 + number}"})
    process, url = start_shadow(cluster, tmp_path, f"--evidence={tmp_path / 'e'}")
    try:
        wait_until_ready(url)
        spread = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        tree = pod_tree("", {"cpu": "300m"}, {"app": "web"}, topologySpreadConstraints=[spread])
        cluster.start_scheduler()
        cluster.pod("first", {"cpu": "100m"})
        cluster.wait_bound(
            "first"
        )  # pods that wait for a scheduler to start are tried in another order
        cluster.pods_like(tree, (f"web-{number}" for number in range(12)))
        cluster.pod("too-big", {"cpu": "64"})
        cluster.wait_all_bound(13)
        cluster.wait_refused("too-big", "Insufficient cpu")
        wait_until_seen(url, 14)
        summary = end(process)["summary"]
    finally:
        process.kill()

    assert process.returncode == 0, summary
    assert summary["different"] == summary["sampled"] == 0
    assert summary["same"] + summary["otherState"] == summary["decisions"] >= 14


@pytest.mark.slow
def test_restarts_of_the_api_server_and_of_the_shadow(
    cluster: ClusterUnderTest, tmp_path: Path
) -> None:
    for number in range(3):
        cluster.node(f"n-{number}", room={"cpu": f"{4 + number}"})
    cluster.start_scheduler()
    cluster.pod("first", {"cpu": "100m"})
    cluster.wait_bound("first")
    options = (f"--state={tmp_path / 'state.json'}", f"--evidence={tmp_path / 'e'}")
    process, url = start_shadow(cluster, tmp_path, *options)
    tree = pod_tree("", {"cpu": "200m"}, {"app": "web"})
    try:
        wait_until_ready(url)
        cluster.pods_like(tree, (f"a-{number}" for number in range(5)))
        cluster.wait_all_bound(6)
        cluster.server.kill_api_server()
        cluster.server.start_api_server()
        cluster.pods_like(tree, (f"b-{number}" for number in range(5)))
        cluster.wait_all_bound(11)
        wait_until_ready(url)
        time.sleep(live_shadow.SETTLE_S + 1)
        cluster.pods_like(tree, (f"c-{number}" for number in range(5)))
        cluster.wait_all_bound(16)
        wait_until_seen(url, 15)
        first = end(process)
        process, url = start_shadow(cluster, tmp_path, *options)
        wait_until_ready(url)
        cluster.pods_like(tree, (f"d-{number}" for number in range(3)))
        cluster.wait_all_bound(19)
        wait_until_seen(url, 18)
        second = end(process)
    finally:
        process.kill()

    assert first["differences"] == second["differences"] == []
    judged = first["summary"]["decisions"]
    assert judged + first["summary"]["skipped"] == 15
    assert judged >= 10, "those before the restart, and those after it"
    assert second["summary"]["decisions"] == judged + 3, "it continues with its state"
