"""Shadow: `bayplan shadow` beside a scheduler at work: every decision is the same, and nothing is written."""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

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


def test_a_scheduler_at_work_agrees_with_its_shadow(
    cluster: ClusterUnderTest, tmp_path: Path
) -> None:
    for number, zone in enumerate("abc"):
        labels = {"topology.kubernetes.io/zone": zone}
        cluster.node(f"n-{number}", labels=labels, room={"cpu": f"{4 + number}"})
    command = [sys.executable, "-m", "bayplan.cli.main", "shadow", "--port=0", "-o", "json"]
    process = subprocess.Popen(
        [*command, f"--kubeconfig={cluster.server.kubeconfig}", f"--evidence={tmp_path / 'e'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving ").strip()
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
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()

    assert process.returncode == 0, out
    summary = json.loads(out)["summary"]
    assert summary["different"] == summary["sampled"] == 0
    assert summary["same"] + summary["otherState"] == summary["decisions"] >= 14
