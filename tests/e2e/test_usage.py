"""Usage: metrics of pods through the aggregator of a real kube-apiserver, as metrics-server writes them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.rig.live.cluster import ClusterUnderTest
from tests.rig.live.metrics_server import FakeMetricsServer, Use

SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
TIMEOUT_S = 60.0


def capacity(cluster: ClusterUnderTest, pod: Path) -> Any:
    """The result of `bayplan capacity --usage live`."""
    words = ["capacity", f"--kubeconfig={cluster.server.kubeconfig}", "--usage", "live"]
    return CliRunner().invoke(app, [*words, "--pod", str(pod), "-o", "json"])


def test_requests_against_the_use_that_metrics_server_tells(
    cluster: ClusterUnderTest, tmp_path: Path
) -> None:
    if cluster.server.has_controllers:
        pytest.skip("bayplan up has metrics of its own")
    pod = tmp_path / "pod.yaml"
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod.write_text(json.dumps({**head, "spec": {"containers": [container]}}))
    cluster.node("n", room={"cpu": "4"})
    cluster.pod("busy", {"cpu": "3"}, nodeName="n")
    use: dict[str, Use] = {"now": {}}
    server = FakeMetricsServer(tmp_path, lambda: use["now"])
    try:
        result = capacity(cluster, pod)
        assert result.exit_code == 2
        assert (
            "--usage live: expected metrics.k8s.io, as metrics-server has it, at" in result.stderr
        )
        for path, tree in server.registration():
            cluster.client.create(path, tree)
        deadline = time.monotonic() + TIMEOUT_S
        while "got no pods: it may have measured none yet" not in capacity(cluster, pod).stderr:
            assert time.monotonic() < deadline, capacity(cluster, pod).stderr
            time.sleep(0.5)
        use["now"] = {(cluster.namespace, "busy"): {"main": (250_000_000, 1024)}}
        answer = json.loads(capacity(cluster, pod).stdout)
        assert (answer["fits"], answer["usage"]["byUse"]) == (1, {"fits": 3})
        assert answer["usage"]["totals"][0]["used"] == "250m"
        server.stop()
        result = capacity(cluster, pod)
        assert result.exit_code == 2
        assert "got no answer from metrics-server" in result.stderr
    finally:
        server.stop()
        cluster.client.delete(SERVICE)
        cluster.client.delete("/api/v1/namespaces/kube-system/services/metrics-server")
