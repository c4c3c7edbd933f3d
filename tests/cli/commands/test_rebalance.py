"""`bayplan rebalance`: output and exit status."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.rig.trees import node_tree, pod_tree

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "1",
    "controller": True,
}


def web_pod(name: str, node: str) -> dict[str, Any]:
    return pod_tree(name, "1", memory="2Gi", node=node, metadata={"ownerReferences": [OWNER]})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    objects = [node_tree("a"), node_tree("b"), web_pod("p", "a"), web_pod("q", "a")]
    Path("cluster.yaml").write_text(yaml.safe_dump_all(objects))
    return "cluster.yaml"


def rebalance(*args: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["rebalance", *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_the_plan_as_a_table(file: str) -> None:
    out, err = rebalance("-f", file)

    assert err == ""
    assert [line.split() for line in out.splitlines()[:2]] == [
        ["STEP", "POD", "FROM", "TO", "GAIN", "THEN", "NOTE"],
        ["1", "default/p", "a", "b", "25.00%", "0.00%"],
    ]
    assert out.endswith("1 move: distance from even use 25.00% → 0.00%\n")
    totals = next(line for line in out.splitlines() if line.startswith("cpu"))
    assert totals.split()[2:] == ["25%", "6", "8"], "moves change no total"


def test_nothing_to_do(file: str) -> None:
    out, _ = rebalance("-f", file, "--objective", "constraints")

    assert out.endswith("\nno move helps: misplaced pods 0, 2 pods could be moved\n")


def test_the_document_for_machines(file: str) -> None:
    out, _ = rebalance("-f", file, "-o", "json", "--max-moves", "1")

    document = json.loads(out)
    assert (document["kind"], document["objective"]) == ("RebalancePlan", "spread")
    assert [each["resource"] for each in document["totals"]] == ["cpu", "memory", "pods"]
    assert document["moves"] == [
        {
            "pod": "default/p",
            "from": "a",
            "to": "b",
            "before": 0.25,
            "after": 0.0,
            "gain": 0.25,
            "schedulerChoice": "b",
            "why": "",
        }
    ]


def test_names(file: str) -> None:
    assert rebalance("-f", file, "-o", "name")[0] == "pod/default/p node/a node/b\n"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(["-f", "absent.yaml"], "absent.yaml", id="no file"),
        pytest.param(["-f", "cluster.yaml", "--objective", "beauty"], "beauty", id="no objective"),
    ],
)
def test_wrong_input_ends_with_2(file: str, args: list[str], problem: str) -> None:
    out, err = rebalance(*args, code=2)

    assert out == ""
    assert problem in err
