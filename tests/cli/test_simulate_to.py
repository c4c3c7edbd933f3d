"""`simulate --to FILE`: the resulting cluster as manifests, which every command reads."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bayplan.api.pod import Pod
from bayplan.cli.main import app
from bayplan.sim import read_manifests

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]
TIMELINE = """
apiVersion: v1
kind: Pod
metadata: {name: late, annotations: {bayplan.dev/created-at: 1h}}
spec: {containers: [{name: c, image: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: later, annotations: {bayplan.dev/created-at: 3h, example.com/note: kept}}
spec: {containers: [{name: c, image: c}]}
"""


def run(*args: str) -> str:
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code in (0, 1), result.output
    assert result.stderr == "", result.stderr
    return result.stdout


def ask(*args: str) -> Any:
    return json.loads(run(*args, "-o", "json"))


def used(report: Any) -> list[Any]:
    """Requests on each node at the end."""
    return [
        [node["pods"]["after"], {name: use["after"] for name, use in node["resources"].items()}]
        for node in report["nodes"]
    ]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("to") / "result.yaml")
    run("simulate", *CLUSTER, "--to", file)
    return file


@pytest.mark.parametrize("name", ["result.yaml", "result.json", "result.json.gz", "result.bay"])
def test_a_second_simulation_finds_the_pods_where_the_first_one_put_them(
    name: str, tmp_path: Path
) -> None:
    file = str(tmp_path / name)
    first = ask("simulate", *CLUSTER, "--to", file)

    again = ask("simulate", "-f", file, "--strict")

    assert again["summary"]["running"] == first["summary"]["running"] + first["summary"]["placed"]
    waiting = [pod["name"] for pod in first["pods"] if pod["node"] is None]
    assert [pod["name"] for pod in again["pods"]] == waiting
    assert used(again) == used(first)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(["explain", "research/in-memory-index"], id="a pod that waits"),
        pytest.param(["explain", "infra/registry-0"], id="a pod that ran"),
        pytest.param(["what-if", "drain", "worker-b2"], id="a drain"),
        pytest.param(["what-if", "add-nodes", "2", "--like", "gpu-b1"], id="more nodes"),
        pytest.param(["rebalance", "--objective", "pack"], id="a plan of moves"),
        pytest.param(
            ["capacity", "--pod", str(EXAMPLES / "capacity" / "api.yaml")],
            id="the room that is left",
        ),
    ],
)
def test_a_question_gets_the_answer_that_it_gets_after_settling(
    question: list[str], result: str
) -> None:
    settled, read = ask(*question, *CLUSTER), ask(*question, "-f", result)

    assert settled.pop("settled")["placed"] == 19
    assert read.pop("settled")["placed"] == 0
    assert read == settled


def test_a_pod_that_was_placed_is_explained_as_one_that_runs(result: str) -> None:
    settled, read = (
        ask("explain", "shop/db-0", *CLUSTER),
        ask("explain", "shop/db-0", "-f", result),
    )

    assert (settled["verdict"], read["verdict"]) == ("fits", "placed")
    for name in ("node", "scores", "refused", "choice", "runnerUp"):
        assert read[name] == settled[name], name


def test_what_came_later_is_there_and_what_has_not_come_is_not(tmp_path: Path) -> None:
    manifest, file = tmp_path / "late.yaml", tmp_path / "result.yaml"
    manifest.write_text(TIMELINE)

    run("simulate", *CLUSTER, "-f", str(manifest), "--until", "2h", "--to", str(file))

    pods = {pod.name: pod for pod in read_manifests([file]).objects if isinstance(pod, Pod)}
    assert pods["late"].node_name
    assert not pods["late"].annotations
    assert "later" not in pods


def test_a_file_that_cannot_be_written_is_an_error_before_the_run(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["simulate", *CLUSTER, "--to", str(tmp_path / "no" / "x")])

    assert outcome.exit_code == 2
    assert "--to" in outcome.stderr
