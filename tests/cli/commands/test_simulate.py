"""`bayplan simulate`: what is printed where, and how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
}


def make_pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name}
    spec = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; output is as wide as it likes."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, *objects: dict[str, Any]) -> str:
    Path(name).write_text(yaml.safe_dump_all(objects))
    return name


def simulate(*args: str, code: int = 0, stdin: str | None = None) -> tuple[str, str]:
    """Run the command within this process; returns what it printed and its complaints."""
    result = CliRunner().invoke(app, ["simulate", *args], input=stdin)
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_the_table_of_a_small_cluster(folder: Path) -> None:
    file = write("all.yaml", NODE, make_pod("runs", "2", nodeName="n"), make_pod("a", "1"))

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
    file = write("all.yaml", NODE, make_pod("a"), make_pod("large", "5"), make_pod("huge", "6"))

    out, _ = simulate("-f", file, code=1)

    pending = out.partition("PENDING\n")[2].splitlines()
    assert pending[0] == "default/large and 1 more pod: Insufficient cpu on 1 node"
    assert pending[-1].startswith("1 of 3 pods placed, 2 pending, ")


def test_details_have_the_whole_message_and_every_name(folder: Path) -> None:
    file = write("all.yaml", NODE, make_pod("a"), make_pod("large", "5"), make_pod("huge", "6"))

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
    text = yaml.safe_dump_all([NODE, make_pod("a")])

    assert simulate("-f", "-", "-o", "name", stdin=text)[0] == "pod/default/a node/n\n"


def test_names(folder: Path) -> None:
    file = write("all.yaml", NODE, make_pod("a"), make_pod("large", "5"))

    out, _ = simulate("-f", file, "-o", "name", code=1)

    assert out == "pod/default/a node/n\npod/default/large -\n"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_document_for_machines(folder: Path, form: str) -> None:
    file = write(
        "all.yaml", NODE, make_pod("runs", "1500m", nodeName="n"), make_pod("a"), make_pod("z", "5")
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
    assert document == {
        "apiVersion": "bayplan.dev/v1",
        "kind": "SimulationReport",
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


def test_the_explanation_for_machines(folder: Path) -> None:
    small = {**NODE, "metadata": {"name": "small"}, "status": {"allocatable": {"cpu": "1"}}}
    big = {**NODE, "metadata": {"name": "big"}}
    file = write("all.yaml", NODE, big, small, make_pod("a", "2"))

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


def test_kinds_without_use_are_named_on_standard_error(folder: Path) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}

    out, err = simulate("-f", write("all.yaml", NODE, other, make_pod("a")), "-o", "name")

    assert out == "pod/default/a node/n\n"
    assert err == "note: 1 object has no bearing on scheduling: 1 ConfigMap\n"


@pytest.mark.parametrize(
    ("count", "note"),
    [
        (1, "1 object of a custom kind is not simulated, nor pods of its controller: 1 "),
        (2, "2 objects of custom kinds are not simulated, nor pods of their controllers: 2 "),
    ],
)
def test_objects_of_custom_kinds_are_named_apart(count: int, note: str, folder: Path) -> None:
    trees = [
        {"apiVersion": "db.example.dev/v1", "kind": "Database", "metadata": {"name": f"d{i}"}}
        for i in range(count)
    ]
    file = write("all.yaml", NODE, *trees)

    _, err = simulate("-f", file)

    assert err.startswith(f"note: {note}Database.db.example.dev\n")


def test_stages_of_pods_are_played(folder: Path) -> None:
    pod = make_pod("a")
    pod["metadata"]["annotations"] = {"bayplan.dev/duration": "5s"}
    spec = {"startDelay": "20s"}
    stages = {"apiVersion": "bayplan.dev/v1", "kind": "PodStages", "spec": spec}

    out, err = simulate("-f", write("all.yaml", NODE, stages, pod), "-o", "json")

    assert json.loads(out)["pods"][0]["finished"] == 25
    assert err == ""


MISSPELT = [
    "all.yaml: document 2: pod default/a: spec.nodeSelecter: expected nodeSelector; got an unknown field",
    "all.yaml: document 3: pod default/b: spec.containers[0].resources.request: "
    "expected requests; got an unknown field",
]


@pytest.fixture
def misspelt(folder: Path) -> str:
    """A file with two fields that do not exist."""
    other = make_pod("b")
    other["spec"]["containers"][0]["resources"] = {"request": {"cpu": "1"}}
    return write("all.yaml", NODE, make_pod("a", nodeSelecter={"disk": "ssd"}), other)


def test_unknown_fields_are_warnings_and_remarks_if_lenient(misspelt: str) -> None:
    out, err = simulate("-f", misspelt, "--lenient", "-o", "json")

    assert err.splitlines() == [f"warning: {line}" for line in MISSPELT]
    assert json.loads(out)["remarks"] == MISSPELT


def test_unknown_fields_are_refused_all_at_once(misspelt: str) -> None:
    out, err = simulate("-f", misspelt, code=2)

    assert out == ""
    assert err.splitlines() == [f"error: {line}" for line in MISSPELT]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["explain", "a"], id="explain"),
        pytest.param(["what-if", "cordon", "n"], id="what-if"),
        pytest.param(["rebalance"], id="rebalance"),
        pytest.param(["compare", "--config", "config.yaml"], id="compare"),
        pytest.param(["capacity", "--pod", "pod.yaml"], id="capacity"),
    ],
)
def test_the_questions_have_the_remarks_and_the_option(misspelt: str, command: list[str]) -> None:
    write("pod.yaml", make_pod("c"))
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    Path("config.yaml").write_text(config)
    args = [*command, "-f", misspelt]

    document = json.loads(CliRunner().invoke(app, [*args, "--lenient", "-o", "json"]).stdout)
    refused = CliRunner().invoke(app, args)

    assert document["remarks"][-2:] == MISSPELT
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.splitlines() == [f"error: {line}" for line in MISSPELT]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(
            ["-f", "nope.yaml"],
            "nope.yaml: expected a file or folder; got nothing of that name",
            id="no such file",
        ),
        pytest.param(
            ["-f", "bad.yaml"],
            "bad.yaml: document 1: pod: metadata.name: expected a name; got none",
            id="a bad object",
        ),
        pytest.param(
            ["-f", "pods.yaml"], "input: expected at least one Node; got none", id="no nodes"
        ),
        pytest.param(
            ["-f", "pods.yaml", "--config", "nope.yaml"],
            "nope.yaml: expected a readable file; got No such file or directory",
            id="no such configuration",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder: Path, args: list[str], expected: str) -> None:
    Path("bad.yaml").write_text("kind: Pod\n")
    write("pods.yaml", make_pod("a"))

    out, err = simulate(*args, code=2)

    assert out == ""
    assert err == f"error: {expected}\n"


def test_a_configuration_is_used(folder: Path) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "other"}],
    }
    file, settings = write("all.yaml", NODE, make_pod("a")), write("config.yaml", config)

    out, _ = simulate("-f", file, "--config", settings, code=1)

    assert 'waits for scheduler "default-scheduler", which is not configured' in out


def test_a_plugin_file_is_used(folder: Path) -> None:
    Path("policy.py").write_text(
        "from bayplan.framework import SUCCESS, FilterPlugin, unschedulable\n"
        "class NotHere(FilterPlugin):\n"
        "    name = 'NotHere'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return unschedulable('not on my watch') if pod.name == 'a' else SUCCESS\n"
    )
    file = write("all.yaml", NODE, make_pod("a"), make_pod("b"))

    out, _ = simulate("-f", file, "--plugins", "policy.py", code=1)

    assert "default/a: not on my watch on 1 node\n" in out
    assert "1 of 2 pods placed" in out


def test_a_plugin_file_that_declares_it_reads_all_fields(folder: Path) -> None:
    Path("policy.py").write_text(
        "from bayplan.framework import SUCCESS, FilterPlugin, unschedulable\n"
        "class Restarting(FilterPlugin):\n"
        "    name = 'Restarting'\n"
        "    reads_whole_objects = True\n"
        "    def filter_node(self, state, pod, node):\n"
        "        policy = self.handle.whole(pod)['spec'].get('restartPolicy')\n"
        "        return unschedulable(f'restarts {policy}')\n"
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}]},
    }
    file = write("all.yaml", NODE, pod)

    out, _ = simulate("-f", file, "--plugins", "policy.py", code=1)

    assert "restarts OnFailure on 1 node" in out


TOPOLOGY = str(EXAMPLES / "node-resource-topology")


def test_objects_that_a_plugin_reads_have_a_bearing_on_scheduling() -> None:
    files = ["-f", f"{TOPOLOGY}/cluster.yaml", "-f", f"{TOPOLOGY}/rbac.yaml"]

    out, err = simulate(*files, "--plugins", f"{TOPOLOGY}/topology_match.py", code=1)
    assert "no NUMA zone has room for the whole pod on 1\n" in out
    assert "2 objects have no bearing on scheduling: 1 ClusterRole, 1 ClusterRoleBinding" in err

    out, err = simulate(*files, code=1)
    assert "NUMA" not in out
    assert "2 NodeResourceTopology" in err


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
    pods = [make_pod(f"pod-{i}", "1m") for i in range(3000)]
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
    file = write("all.yaml", NODE, make_pod("runs", nodeName="n"), make_pod("large", "9"), timeline)

    out, _ = simulate("-f", file, "-o", "json", "--until", "99s", *options, code=1)

    (pending,) = [pod for pod in json.loads(out)["pods"] if pod["name"] == "large"]
    assert pending["attempts"] == attempts


def test_a_wrong_duration_of_staying_unschedulable_is_refused(folder: Path) -> None:
    file = write("all.yaml", NODE)

    _, err = simulate("-f", file, "--pod-max-in-unschedulable-pods-duration", "soon", code=2)

    assert "--pod-max-in-unschedulable-pods-duration: expected a duration" in err


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {"hard": {"pods": "1"}},
}
REFUSED = 'pod default/b: pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'


def test_refused_pods_stand_beside_the_result(folder: Path) -> None:
    file = write("all.yaml", NODE, QUOTA, make_pod("a"), make_pod("b"))

    table, _ = simulate("-f", file, code=1)
    document, _ = simulate("-f", file, "-o", "json", code=1)

    assert f"refused: {REFUSED}" in table.splitlines()
    (entry,) = json.loads(document)["refused"]
    assert (entry["kind"], entry["name"], entry["count"]) == ("Pod", "b", 1)
    assert json.loads(document)["summary"]["refused"] == 1


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["explain", "a"], id="explain"),
        pytest.param(["what-if", "cordon", "n"], id="what-if"),
        pytest.param(["rebalance"], id="rebalance"),
        pytest.param(["capacity", "--pod", "pod.yaml"], id="capacity"),
    ],
)
def test_the_questions_name_refused_pods(folder: Path, command: list[str]) -> None:
    write("pod.yaml", make_pod("c"))
    args = [*command, "-f", write("all.yaml", NODE, QUOTA, make_pod("a"), make_pod("b"))]

    table = CliRunner().invoke(app, args)
    document = json.loads(CliRunner().invoke(app, [*args, "-o", "json"]).stdout)

    assert f"refused: {REFUSED}" in table.stdout.splitlines()
    assert [entry["name"] for entry in document["settled"]["refused"]] == ["b"]


def test_custom_workloads_are_named_beside_the_result(folder: Path) -> None:
    pool = {"apiVersion": "example.dev/v1", "kind": "Pool", "metadata": {"name": "web"}}
    file = write("all.yaml", NODE, {**pool, "spec": {"replicas": 3}})
    expected = "not simulated: Pool.example.dev default/web, 3 replicas (no spec.template)"

    table, err = simulate("-f", file)
    document, _ = simulate("-f", file, "-o", "json")

    assert err == ""
    assert table.splitlines()[-1] == expected
    assert json.loads(document)["remarks"] == [expected]


def test_objects_that_kube_apiserver_refuses_are_refused_or_warnings(folder: Path) -> None:
    file = write("bad.yaml", NODE, make_pod("A"))

    _, refused = simulate("-f", file, code=2)
    _, warned = simulate("-f", file, "--lenient")

    assert refused.startswith('error: bad.yaml: document 2: pod default/A: Pod "A" is invalid: ')
    assert warned.startswith('warning: bad.yaml: document 2: pod default/A: Pod "A" is invalid: ')


def test_workload_kinds_of_a_file_make_pods(folder: Path) -> None:
    Path("kinds.yaml").write_text(
        "apiVersion: bayplan.dev/v1\nkind: WorkloadKinds\nkinds:\n"
        "- {kind: Farm, group: example.dev, pods: [{template: spec.pod, count: spec.size}]}\n"
    )
    farm = {
        "apiVersion": "example.dev/v1",
        "kind": "Farm",
        "metadata": {"name": "f"},
        "spec": {"size": 2, "pod": {"spec": make_pod("x")["spec"]}},
    }
    file = write("farm.yaml", NODE, farm)

    _, refused = simulate("-f", file, code=2)
    out, _ = simulate("-f", file, "--workload-kinds", "kinds.yaml")

    assert "expected pods that can be made; got pods of spec.pod" in refused
    assert "2 of 2 pods placed" in out
