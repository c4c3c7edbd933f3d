"""`bayplan simulate --pools`: output and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app

POOL = {
    "apiVersion": "bayplan.dev/v1",
    "kind": "NodePool",
    "metadata": {"name": "web"},
    "spec": {
        "nodeTypes": [{"name": "small", "capacity": {"cpu": 2, "memory": "8Gi"}, "price": 0.1}]
    },
}


def make_deployment(replicas: int, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("workload.yaml").write_text(yaml.safe_dump(make_deployment(4, "1")))
    Path("pools.yaml").write_text(yaml.safe_dump(POOL))


def run(*options: str) -> Any:
    return CliRunner().invoke(app, ["simulate", "-f", "workload.yaml", *options])


def test_the_table_has_nodes_by_type_and_costs() -> None:
    result = run("--pools", "pools.yaml", "--until", "1h")

    assert result.exit_code == 0
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("web ")]
    assert line.split() == ["web", "small", "0.10", "2", "2", "2", "2.00", "0.20"]
    assert "karpenter: 2 nodes launched, 0 removed" in result.stdout
    assert "pods waited 1m3s (p50), 1m3s (p95), 1m3s (max)" in result.stdout
    assert "cost 0.20, 0.20 per hour in the mean" in result.stdout


def test_the_document_has_the_same() -> None:
    result = run("--pools", "pools.yaml", "--autoscaler", "cluster-autoscaler", "-o", "json")

    scaling = json.loads(result.stdout)["scaling"]
    assert (scaling["autoscaler"], scaling["launched"]) == ("cluster-autoscaler", 2)
    assert [node["joined"] for node in scaling["nodes"]] == [60.0, 60.0]


def test_pods_that_fit_no_pool_are_named_and_the_status_is_1() -> None:
    Path("workload.yaml").write_text(yaml.safe_dump(make_deployment(2, "3")))

    result = run("--pools", "pools.yaml")

    assert result.exit_code == 1
    assert "deployment default/a: 2 pods fit no pool:" in result.stdout
    assert "  Insufficient cpu (web/small)" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            ["--autoscaler", "karpenter"],
            "--autoscaler: expected --pools with it; got none",
            id="an autoscaler without pools",
        ),
        pytest.param(
            ["--instance-types", "t.csv"],
            "--instance-types: expected --pools with it; got none",
            id="a table without pools",
        ),
        pytest.param(
            ["--pools", "pools.yaml", "--autoscaler", "other"],
            '--autoscaler: expected karpenter or cluster-autoscaler; got "other"',
            id="an unknown autoscaler",
        ),
        pytest.param(
            ["--pools", "pools.yaml", "--expander", "price"],
            "--expander: expected --autoscaler cluster-autoscaler with it",
            id="an expander for Karpenter",
        ),
        pytest.param(
            [
                *("--pools", "pools.yaml", "--autoscaler", "cluster-autoscaler"),
                *("--batch-idle-duration", "2s"),
            ],
            "--batch-idle-duration: expected --autoscaler karpenter with it",
            id="a batching window for Cluster Autoscaler",
        ),
        pytest.param(
            ["--pools", "pools.yaml", "--scan-interval", "0s"],
            '--scan-interval: expected a duration such as 90s, 5m or 1h30m; got "0s"',
            id="no time between scans",
        ),
    ],
)
def test_wrong_options_are_refused(options: list[str], message: str) -> None:
    result = run(*options)

    assert result.exit_code == 2
    assert message in result.stderr


def compare(*options: str) -> Any:
    return CliRunner().invoke(app, ["compare", "-f", "workload.yaml", *options])


def test_compare_runs_every_file_of_pools_with_every_autoscaler() -> None:
    tree = json.loads(json.dumps(POOL).replace("0.1", "0.3"))
    Path("dear.yaml").write_text(yaml.safe_dump(tree))
    pools = ["--pools", "pools.yaml", "--pools", "dear.yaml"]
    both = ["--autoscaler", "karpenter", "--autoscaler", "cluster-autoscaler"]

    result = compare(*pools, *both, "--until", "1h", "-o", "json")

    contenders = json.loads(result.stdout)["contenders"]
    costs = {
        each["name"]: round(metric["mean"], 2)
        for each in contenders
        for metric in each["metrics"]
        if metric["name"] == "cost"
    }
    assert costs == {
        "pools.yaml karpenter": 0.2,
        "pools.yaml cluster-autoscaler": 0.2,
        "dear.yaml karpenter": 0.6,
        "dear.yaml cluster-autoscaler": 0.6,
    }


def test_the_table_of_a_comparison_has_prices() -> None:
    result = compare("--pools", "pools.yaml", "--until", "1h")

    (line,) = [line for line in result.stdout.splitlines() if line.startswith("cost ↓")]
    assert line.split() == ["cost", "↓", "0.20"]


def test_compare_refuses_an_autoscaler_without_pools() -> None:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    Path("config.yaml").write_text(yaml.safe_dump(head))

    result = compare("--config", "config.yaml", "--autoscaler", "karpenter")

    assert result.exit_code == 2
    assert "--autoscaler: expected --pools with it; got none" in result.stderr
