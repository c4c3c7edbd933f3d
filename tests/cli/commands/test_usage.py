"""`--usage`: requests and measured use side by side, and proposals that the scheduler verified."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

EXAMPLES = Path(__file__).parents[3] / "examples" / "usage"
USE = ["--usage", str(EXAMPLES / "use.csv")]
CLUSTER = ["-f", str(EXAMPLES / "cluster.yaml")]


def ask(*words: str) -> str:
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def document(*words: str) -> Any:
    return json.loads(ask(*words, *USE, *CLUSTER, "-o", "json"))


def test_capacity_by_requests_and_by_use() -> None:
    answer = document("capacity", "--pod", str(EXAMPLES / "pod.yaml"))

    assert answer["fits"] == 4
    assert answer["usage"]["byUse"] == {"fits": 10}
    assert answer["usage"]["totals"][0] == {
        "resource": "cpu",
        "allocatable": "8",
        "requested": "6",
        "used": "800m",
    }
    assert (answer["usage"]["measuredPods"], answer["usage"]["runningPods"]) == (2, 2)


def test_rebalance_shows_the_spread_of_use() -> None:
    assert set(document("rebalance")["usage"]["byUse"]) == {"cpu", "memory"}
    assert "spread of measured use over nodes: cpu" in ask("rebalance", *USE, *CLUSTER)


def test_a_pod_that_waits_for_room_that_nothing_uses() -> None:
    shown = ask("explain", "report", *USE, *CLUSTER)

    assert (
        "node-1: 3 of 4 cpu are requested, 420m are used: the pod waits for room that nothing uses"
        in shown
    )


def test_a_pod_that_waits_for_room_in_use(tmp_path: Path) -> None:
    busy = tmp_path / "busy.csv"
    busy.write_text("namespace,pod,cpu\nshop,web-0,2800m\nshop,web-1,2900m\n")

    assert "nothing uses" not in ask("explain", "report", "--usage", str(busy), *CLUSTER)


def test_proposals_say_what_they_free_and_the_scheduler_verifies_them() -> None:
    answer = document("what-if", "rightsize")

    first = answer["proposals"][0]
    assert (first["resource"], first["used"], first["proposed"]) == ("cpu", "420m", "490m")
    assert first["frees"] == "5020m"
    assert (answer["waiting"], answer["placed"]) == (1, ["shop/report"])
    assert answer["overcommittedNodes"] == []


def test_proposals_above_the_room_of_a_node_are_named(tmp_path: Path) -> None:
    busy = tmp_path / "busy.csv"
    busy.write_text("namespace,pod,cpu\nshop,web-0,3900m\n")

    shown = ask("what-if", "rightsize", "--usage", str(busy), *CLUSTER)

    assert "node-1 has less than its pods would request: some would have to move" in shown
    assert "-2980m" in shown


@pytest.mark.parametrize("margin", ["x", "-5%", "15"])
def test_a_wrong_margin(margin: str) -> None:
    result = CliRunner().invoke(app, ["what-if", "rightsize", "--margin", margin, *USE, *CLUSTER])

    assert result.exit_code == 2
    assert f'--margin: expected a share such as 15%; got "{margin}"' in result.stderr


def test_the_use_of_the_live_cluster(api: ServerInThread, kubeconfig: Path) -> None:
    words = ["rebalance", *CLUSTER, "--usage", "live", "--kubeconfig", str(kubeconfig)]

    result = CliRunner().invoke(app, words)

    assert result.exit_code == 2
    assert "expected metrics.k8s.io, as metrics-server has it, at http" in result.stderr
    assert "got no pods: it may have measured none yet" in result.stderr
    api.make("/api/v1/nodes", node_tree("n0"))
    api.make(PODS, pod_tree("p", "1", nodeName="n0"))
    api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})

    result = CliRunner().invoke(app, words)

    assert result.exit_code == 0, result.output
    assert "REQUESTED" in result.stdout


def test_a_plan_for_manifests_goes_by_the_use_of_their_workloads(tmp_path: Path) -> None:
    manifest, use = tmp_path / "web.yaml", tmp_path / "use.csv"
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "2"}}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 6, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": "shop"}
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    manifest.write_text(json.dumps(tree))
    use.write_text("namespace,pod,cpu\nshop,web-5d4f7c9b6d-x2b7k,100m\n")
    plan = EXAMPLES.parent / "plan"
    words = ["plan", "-f", str(manifest), "--pools", str(plan / "pools.yaml"), "--seeds", "1"]
    words += ["--instance-types", str(plan / "instance-types.csv"), "--time-limit", "0.3s"]

    answer = json.loads(ask(*words, "--usage", str(use), "-o", "json"))

    assert answer["usage"]["byUse"]["price"] < answer["price"]
    assert answer["usage"]["totals"][0]["used"] == "600m"
    assert (answer["usage"]["measuredPods"], answer["usage"]["runningPods"]) == (6, 6)


def test_the_page_has_the_use_of_pods(tmp_path: Path) -> None:
    page = tmp_path / "run.html"

    shown = ask("simulate", *USE, *CLUSTER, "--html", str(page))

    assert "REQUESTED" in shown
    assert '"use":{"0":{"cpu":420,"memory":1153433600},' in page.read_text()
    assert document("simulate")["usage"]["measuredPods"] == 2
