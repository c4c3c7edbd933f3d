"""`bayplan plan`: output and exit status."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from bayplan.cli import command_time
from bayplan.cli.main import app
from bayplan.cli.render.plan_tables import render_node_plan
from bayplan.planning.fleet_check import OtherSeeds
from bayplan.planning.node_plan import NodePlan


def make_deployment(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "c",
        "image": "c",
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def make_pool(**spec: Any) -> dict[str, Any]:
    types = [
        {"name": "small", "capacity": {"cpu": 2, "memory": "4Gi"}, "price": 0.1},
        {"name": "large", "capacity": {"cpu": 8, "memory": "16Gi"}, "price": 0.36},
    ]
    return {
        "apiVersion": "bayplan.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "web"},
        "spec": {"nodeTypes": types} | spec,
    }


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("workload.yaml").write_text(yaml.safe_dump(make_deployment("a", 5, "2")))
    Path("pools.yaml").write_text(yaml.safe_dump(make_pool()))


def plan(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(
        app, ["plan", "-f", "workload.yaml", "--pools", "pools.yaml", "--time-limit", "9s", *args]
    )
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_the_plan_as_a_table() -> None:
    out, err = plan()

    assert err == ""
    assert [line.split() for line in out.splitlines()[:4]] == [
        ["POOL", "TYPE", "ZONE", "NODES", "PRICE", "TOTAL", "CPU", "MEMORY", "PODS"],
        ["web", "large", "-", "1", "0.36", "0.36", "100%", "25%", "3%"],
        ["web", "small", "-", "1", "0.10", "0.10", "100%", "25%", "<1%"],
        [],
    ]
    assert out.splitlines()[4].startswith("2 nodes, 0.46 per hour")


def test_the_plan_as_a_document_and_as_names() -> None:
    out, _ = plan("-o", "json")
    names, _ = plan("-o", "name")

    document = json.loads(out)
    assert (document["kind"], document["nodes"], document["price"]) == ("NodePlan", 2, 0.46)
    assert document["bound"] <= 0.46
    assert names.split() == ["node/web-small-1", "node/web-large-1"]


def test_the_nodes_as_manifests_hold_the_workload() -> None:
    plan("--to", "nodes.yaml")

    result = CliRunner().invoke(app, ["simulate", "-f", "nodes.yaml", "-f", "workload.yaml"])

    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("found", "line"),
    [
        pytest.param(
            OtherSeeds(32, 32, 0),
            "with 32 other seeds every pod is placed, too",
            id="a plan that holds with other seeds says so",
        ),
        pytest.param(
            OtherSeeds(3, 2, 1),
            "with 1 of 3 other seeds up to 1 pod would wait: the scheduler draws among nodes with equal scores; "
            "--seeds 5 asks for a plan that holds with all",
            id="a plan that does not hold says with how many and how to get one that does",
        ),
        pytest.param(
            OtherSeeds(0, 0, 0),
            "there was no time to try other seeds",
            id="a plan that no other seed was tried on does not claim to hold",
        ),
    ],
)
def test_whether_a_plan_holds_with_other_seeds_is_said(found: OtherSeeds, line: str) -> None:
    shown = NodePlan([], 1.0, 1.0, 3, demands={"seeds": 2}, other_seeds=found)
    console = Console(width=200, record=True, file=io.StringIO())

    render_node_plan(console, shown)

    assert line in console.export_text().splitlines()


def test_the_time_since_the_start_of_the_command_counts_for_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_time, "spent_s", lambda: 100.0)

    out, _ = plan("-o", "json")

    document = json.loads(out)
    assert document["notices"][0].startswith("the time limit of 9 s is too short: ")
    assert document["otherSeeds"]["tried"] == 0
    assert document["nodes"] > 0


def test_no_seeds_at_all_end_with_2() -> None:
    _, err = plan("--seeds", "0", code=2)

    assert "--seeds: expected a number from 1; got 0" in err


def test_the_seeds_that_are_asked_for_are_part_of_the_document() -> None:
    out, _ = plan("--seeds", "2", "-o", "json")

    document = json.loads(out)
    assert document["demands"]["seeds"] == 2
    assert document["otherSeeds"] == {"tried": 64, "held": 64, "mostPending": 0}


def test_pods_that_fit_no_pool_end_with_1() -> None:
    Path("workload.yaml").write_text(yaml.safe_dump(make_deployment("huge", 2, "9")))

    out, _ = plan(code=1)

    assert "deployment default/huge: 2 pods fit no pool:" in out
    assert "without 2 pods that fit no pool" in out
    assert "every pod is placed" not in out
    assert "  Insufficient cpu (web/small, web/large)" in out


def test_a_pool_that_is_too_small_ends_with_1() -> None:
    Path("pools.yaml").write_text(yaml.safe_dump(make_pool(maximum=1)))

    out, _ = plan(code=1)

    assert "web: the maximum of 1 node is too small" in out


@pytest.mark.parametrize("price", [0, None], ids=["a price of 0", "no price"])
def test_a_type_without_a_price_ends_with_2(price: int | None) -> None:
    pool = make_pool()
    pool["spec"]["nodeTypes"][1]["price"] = price
    if price is None:
        del pool["spec"]["nodeTypes"][1]["price"]
    Path("pools.yaml").write_text(yaml.safe_dump(pool))

    _, err = plan(code=2)

    assert "pools.yaml" in err
    assert "large" in err or "nodeTypes[1]" in err
    assert "expected a price per hour above 0" in err or "price: expected" in err


def test_rightsizing_shows_the_steps() -> None:
    labels = {"node.kubernetes.io/instance-type": "small"}
    status = {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "labels": labels},
            "status": status,
        }
        for i in range(4)
    ]
    Path("workload.yaml").write_text(yaml.safe_dump_all([*nodes, make_deployment("a", 8, "1")]))

    out, _ = plan("--existing")

    assert "now 0.40 per hour: 0.04 (10 %) can be saved" in out
    steps = [line.split() for line in out.split("PODS LAND ON\n")[1].splitlines() if line]
    assert steps[0] == ["1", "add", "new-web-large-1", "large"]
    assert len(steps) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            ["--survive", "rack"], '--survive: expected node or zone; got "rack"', id="survive"
        ),
        pytest.param(
            ["--survive", "zone"],
            "--survive zone: expected pools with at least 2 zones",
            id="zones",
        ),
        pytest.param(
            ["--survive-priority", "1"], "--survive-priority: expected --survive", id="priority"
        ),
        pytest.param(
            ["--headroom", "20"],
            '--headroom: expected a share such as 20%; got "20"',
            id="headroom",
        ),
        pytest.param(["--keep", "all"], '--keep: expected existing; got "all"', id="keep"),
        pytest.param(
            ["--keep", "existing", "--existing"],
            "expected --keep existing or --existing; got both",
            id="both",
        ),
        pytest.param(
            ["--time-limit", "fast"], "--time-limit: expected a duration", id="time limit"
        ),
        pytest.param(
            ["--existing"], "--existing: expected nodes in the input; got none", id="no nodes"
        ),
    ],
)
def test_wrong_options_end_with_2(options: list[str], message: str) -> None:
    _, err = plan(*options, code=2)

    assert message in err
