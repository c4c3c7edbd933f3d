"""`bayplan simulate`: output, its streams, and exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.cli.commands.small_cluster import EXAMPLES, NODE, simulate, write
from tests.rig.trees import pod_tree

FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]


def test_the_table_of_a_small_cluster(folder: Path) -> None:
    file = write("all.yaml", NODE, pod_tree("runs", "2", nodeName="n"), pod_tree("a", "1"))

    out, err = simulate("-f", file)

    assert err == ""
    lines = out.splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["NAMESPACE", "POD", "NODE", "SCORE", "TIME"],
        ["default", "a", "n", "-", "0s"],
    ]
    assert [line.split() for line in lines[3:5]] == [
        ["NODE", "PODS", "CPU", "MEMORY"],
        ["n", "1→2", "█████▓▓▓░░", "50→75%", "░░░░░░░░░░", "0%"],
    ]
    assert lines[-1].startswith("1 of 1 pod placed, ")


def test_pending_pods_have_their_message_and_the_status_is_1(folder: Path) -> None:
    file = write(
        "all.yaml", NODE, pod_tree("a", "1"), pod_tree("large", "5"), pod_tree("huge", "6")
    )

    out, _ = simulate("-f", file, code=1)

    pending = out.partition("PENDING\n")[2].splitlines()
    assert pending[0] == "default/large and 1 more pod: Insufficient cpu on 1 node"
    assert pending[-1].startswith("1 of 3 pods placed, 2 pending, ")


def test_details_have_the_whole_message_and_every_name(folder: Path) -> None:
    file = write(
        "all.yaml", NODE, pod_tree("a", "1"), pod_tree("large", "5"), pod_tree("huge", "6")
    )

    out, _ = simulate("-f", file, "--all", code=1)

    pending = out.partition("PENDING\n")[2].splitlines()
    assert pending[1].startswith("  0/1 nodes are available: 1 Insufficient cpu. ")
    assert "  default/large, default/huge" in pending
    assert max(map(len, out.splitlines())) <= 100


def test_the_examples_show_what_is_pending() -> None:
    out, _ = simulate(*FILES, code=1)

    assert "research/in-memory-index: " in out
    assert "didn't match Pod's node affinity/selector" in out


def test_the_input_may_come_from_standard_input(folder: Path) -> None:
    text = yaml.safe_dump_all([NODE, pod_tree("a", "1")])

    assert simulate("-f", "-", "-o", "name", stdin=text)[0] == "pod/default/a node/n\n"


def test_names(folder: Path) -> None:
    file = write("all.yaml", NODE, pod_tree("a", "1"), pod_tree("large", "5"))

    out, _ = simulate("-f", file, "-o", "name", code=1)

    assert out == "pod/default/a node/n\npod/default/large -\n"


def test_a_namespace_has_its_rows_and_the_totals_of_the_cluster() -> None:
    out, _ = simulate(*FILES, "-n", "shop", code=1)

    assert "19 of 21 pods placed, 2 pending" in out
    assert "shop       db-0" in out
    assert "shop/edge-proxy: " in out
    assert "logs-" not in out
    assert "in-memory-index" not in out
    assert "9 pods of other namespaces not shown; -A shows them" in out
    names, _ = simulate(*FILES, "-n", "research", "-o", "name", code=1)
    assert names == "pod/research/training node/gpu-b1\npod/research/in-memory-index -\n"
    assert len(json.loads(simulate(*FILES, "-n", "shop", "-o", "json", code=1)[0])["pods"]) == 21


REPORT = {
    "apiVersion": "bayplan.dev/v1",
    "kind": "SimulationReport",
    "kubernetesVersion": "v1.36.4",
    "summary": {
        "pods": 2,
        "placed": 1,
        "pending": 1,
        "preempted": 0,
        "refused": 0,
        "running": 1,
        "nodes": 1,
        "finished": 0,
        "podGroups": 0,
        "podGroupsStarted": 0,
        "time": 0.0,
    },
    "useOverTime": [],
    "pods": [
        {
            "namespace": "default",
            "name": "a",
            "outcome": "bound",
            "node": "n",
            "score": None,
            "created": 0.0,
            "time": 0.0,
            "finished": None,
            "deleted": None,
            "attempts": 1,
            "feasibleNodes": 1,
            "evaluatedNodes": 1,
            "message": "",
        },
        {
            "namespace": "default",
            "name": "z",
            "outcome": "unschedulable",
            "node": None,
            "score": None,
            "created": 0.0,
            "time": 0.0,
            "finished": None,
            "deleted": None,
            "attempts": 1,
            "feasibleNodes": 0,
            "evaluatedNodes": 1,
        },
    ],
    "nodes": [
        {
            "name": "n",
            "added": None,
            "removed": None,
            "pods": {"allocatable": 9, "before": 1, "after": 2},
            "resources": {
                "cpu": {"allocatable": "4", "before": "1500m", "after": "2500m"},
                "memory": {"allocatable": "8Gi", "before": "0", "after": "0"},
            },
        }
    ],
    "podGroups": [],
    "preempted": [],
    "refused": [],
}
"""The report without uids, messages, groups, totals and measures."""


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_document_for_machines(folder: Path, form: str) -> None:
    file = write(
        "all.yaml",
        NODE,
        pod_tree("runs", "1500m", nodeName="n"),
        pod_tree("a", "1"),
        pod_tree("z", "5"),
    )

    out, _ = simulate("-f", file, "-o", form, code=1)

    document = json.loads(out) if form == "json" else yaml.safe_load(out)
    uids = [pod.pop("uid") for pod in document["pods"]]
    assert len(set(uids)) == 2
    message = document["pods"][1].pop("message")
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert document.pop("pendingGroups") == [
        {
            "workload": "default/z",
            "kind": "Pod",
            "pods": 1,
            "pending": 1,
            "of": 1,
            "devices": {},
            "refusals": [{"reason": "Insufficient cpu", "nodes": 1}],
            "message": message,
        }
    ]
    assert document.pop("totals")[0] == {
        "resource": "cpu",
        "allocatable": {"before": "4", "after": "4"},
        "used": {"before": "1500m", "after": "2500m"},
        "free": {"before": "2500m", "after": "1500m"},
        "tainted": {"before": "0", "after": "0"},
        "cordoned": {"before": "0", "after": "0"},
    }
    assert document.pop("measures")[0] == {
        "name": "placed",
        "unit": "count",
        "better": "higher",
        "repeatable": True,
        "value": 1,
    }
    assert document == REPORT


def test_the_explanation_for_machines(folder: Path) -> None:
    small = {**NODE, "metadata": {"name": "small"}, "status": {"allocatable": {"cpu": "1"}}}
    big = {**NODE, "metadata": {"name": "big"}}
    file = write("all.yaml", NODE, big, small, pod_tree("a", "2"))

    out, _ = simulate("-f", file, "-o", "json", "--explain")

    explanation = json.loads(out)["pods"][0]["explanation"]
    assert explanation["filter"]["n"] == {"code": "Success"}
    assert explanation["filter"]["small"]["plugin"] == "NodeResourcesFit"
    assert "Insufficient cpu" in explanation["filter"]["small"]["reasons"]
    assert set(explanation["totals"]) == {"n", "big"}
    fit = next(s for s in explanation["scores"] if s["plugin"] == "NodeResourcesFit")
    assert fit["weight"] == 1
    assert set(fit["normalized"]) == {"n", "big"}


def test_the_explanation_for_people(monkeypatch: pytest.MonkeyPatch) -> None:

    out, _ = simulate(*FILES, "--explain", code=1)

    first = next(part for part in out.split("\n\n") if part.startswith("shop/db-0"))
    assert first.splitlines()[0] == "shop/db-0 → worker-b2  (score 661, 14 ahead of worker-c1)"
    assert "★ worker-b2" in first
    assert "node(s) didn't match Pod's node affinity/selector  worker-a2" in first
    assert "research/in-memory-index is unschedulable" in out
    assert "(the only node that fits)" in out


def test_wide_shows_more() -> None:
    out, _ = simulate(*FILES, "-o", "wide", code=1)

    assert out.splitlines()[0].split()[-3:] == ["PRIORITY", "FEASIBLE", "ATTEMPTS"]
    assert "(2→3.1 of 4)" in out


def test_the_output_has_no_colour_and_fits_when_told_a_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    out, _ = simulate(*FILES, "--explain", code=1)

    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert all(line == line.rstrip() for line in out.splitlines())


def run_process(
    *args: str, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bayplan.cli.main", *args]
    root = str(EXAMPLES.parent)
    variables = {**os.environ, "PYTHONPATH": root, "PYTHONIOENCODING": "utf-8", **(env or {})}
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=variables)


def test_as_a_process_of_its_own() -> None:
    done = run_process("simulate", *FILES)

    assert done.returncode == 1
    assert done.stderr == ""
    assert "19 of 21 pods placed, 2 pending" in done.stdout


def test_as_a_process_with_bad_input() -> None:
    done = run_process("simulate", "-f", "nope.yaml")

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: nope.yaml: expected a file or folder; got nothing of that name\n"


def test_where_only_ascii_can_be_shown_it_is_ascii() -> None:
    done = run_process("simulate", *FILES, env={"PYTHONIOENCODING": "ascii"})

    assert done.returncode == 1
    assert done.stdout.isascii()
    assert "#####+++.. 50>77%" in done.stdout


def test_a_reader_that_goes_away_gets_no_traceback(folder: Path) -> None:
    pods = [pod_tree(f"pod-{i}", "1m") for i in range(3000)]
    node = {**NODE, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "5000"}}}
    file = write("all.yaml", node, *pods)
    command = [sys.executable, "-m", "bayplan.cli.main", "simulate", "-f", file, "-o", "json"]
    variables = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read()

    assert complaints == b""
    assert process.returncode == 141


def test_the_version() -> None:
    done = run_process("--version")

    assert done.stdout.startswith("bayplan ")
    assert done.returncode == 0


@pytest.mark.parametrize("args", [["--help"], ["simulate", "--help"]], ids=["all", "simulate"])
def test_help_has_an_example(args: list[str]) -> None:
    result = CliRunner().invoke(app, args)

    assert result.exit_code == 0
    assert "Example: bayplan simulate -f cluster.yaml -f workload.yaml" in result.output


@pytest.mark.parametrize(
    ("options", "attempts"),
    [
        pytest.param([], 1, id="five minutes by default"),
        pytest.param(
            ["--pod-max-in-unschedulable-pods-duration", "30s"],
            2,
            id="thirty seconds; the queue is flushed every thirty",
        ),
    ],
)
def test_how_long_a_pod_stays_unschedulable(
    folder: Path, options: list[str], attempts: int
) -> None:
    timeline = {
        "apiVersion": "bayplan.dev/v1",
        "kind": "Timeline",
        "metadata": {"name": "later"},
        "events": [{"at": "100s", "remove": ["pod/default/runs"]}],
    }
    file = write("all.yaml", NODE, pod_tree("runs", nodeName="n"), pod_tree("large", "9"), timeline)

    out, _ = simulate("-f", file, "-o", "json", "--until", "99s", *options, code=1)

    (pending,) = [pod for pod in json.loads(out)["pods"] if pod["name"] == "large"]
    assert pending["attempts"] == attempts


def test_a_wrong_duration_of_staying_unschedulable_is_refused(folder: Path) -> None:
    file = write("all.yaml", NODE)

    _, err = simulate("-f", file, "--pod-max-in-unschedulable-pods-duration", "soon", code=2)

    assert "--pod-max-in-unschedulable-pods-duration: expected a duration" in err
