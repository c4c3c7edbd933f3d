"""Input of `bayplan simulate`: kinds, fields, configurations, plugins, and objects that are refused."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from tests.cli.commands.small_cluster import EXAMPLES, NODE, simulate, write
from tests.rig.trees import pod_tree


def test_the_release_that_files_record_is_named(tmp_path: Path) -> None:
    notes = {"bayplan.dev/kubernetes-version": "v1.35.3"}
    recorded = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "x", "annotations": notes},
    }
    (tmp_path / "recorded.json").write_text(json.dumps(recorded))
    cluster = Path(__file__).parents[3] / "examples" / "cluster.yaml"
    files = ["-f", str(tmp_path / "recorded.json"), "-f", str(cluster)]

    result = CliRunner().invoke(app, ["simulate", *files, "-o", "json"])
    chosen = CliRunner().invoke(app, ["simulate", *files, "--kubernetes-version", "1.36"])

    assert json.loads(result.stdout)["kubernetesVersion"] == "v1.35.8"
    assert result.stderr == "note: decisions are those of v1.35.8: the files are of v1.35.3\n"
    assert chosen.stderr == ""


def test_kinds_without_use_are_named_on_standard_error(folder: Path) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}

    out, err = simulate("-f", write("all.yaml", NODE, other, pod_tree("a", "1")), "-o", "name")

    assert out == "pod/default/a node/n\n"
    assert err == "note: 1 object has no bearing on scheduling: 1 ConfigMap\n"


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        pytest.param(
            "kubescheduler.config.k8s.io/v1",
            "KubeSchedulerConfiguration",
            "--config takes it",
            id="a configuration",
        ),
        pytest.param(
            "karpenter.sh/v1", "NodePool", "--pools of plan and simulate takes it", id="a pool"
        ),
        pytest.param(
            "template.openshift.io/v1",
            "Template",
            "oc process -f FILE prints its objects",
            id="a template",
        ),
    ],
)
def test_files_for_another_option_are_named_with_it(
    folder: Path, api_version: str, kind: str, expected: str
) -> None:
    other = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "c"}}

    _, err = simulate("-f", write("all.yaml", NODE, other, pod_tree("a", "1")), "-o", "name")

    assert err == f"note: {kind} is not used among manifests: {expected}\n"


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
    pod = pod_tree("a", "1")
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
    other = pod_tree("b", "1")
    other["spec"]["containers"][0]["resources"] = {"request": {"cpu": "1"}}
    return write("all.yaml", NODE, pod_tree("a", nodeSelecter={"disk": "ssd"}), other)


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
    write("pod.yaml", pod_tree("c", "1"))
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
    write("pods.yaml", pod_tree("a", "1"))

    out, err = simulate(*args, code=2)

    assert out == ""
    assert err == f"error: {expected}\n"


def test_a_configuration_is_used(folder: Path) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "other"}],
    }
    file, settings = write("all.yaml", NODE, pod_tree("a", "1")), write("config.yaml", config)

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
    file = write("all.yaml", NODE, pod_tree("a", "1"), pod_tree("b", "1"))

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


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {"hard": {"pods": "1"}},
}
REFUSED = 'pod default/b: pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'


def test_refused_pods_stand_beside_the_result(folder: Path) -> None:
    file = write("all.yaml", NODE, QUOTA, pod_tree("a", "1"), pod_tree("b", "1"))

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
    write("pod.yaml", pod_tree("c", "1"))
    args = [*command, "-f", write("all.yaml", NODE, QUOTA, pod_tree("a", "1"), pod_tree("b", "1"))]

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
    file = write("bad.yaml", NODE, pod_tree("A", "1"))

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
        "spec": {"size": 2, "pod": {"spec": pod_tree("x", "1")["spec"]}},
    }
    file = write("farm.yaml", NODE, farm)

    _, refused = simulate("-f", file, code=2)
    out, _ = simulate("-f", file, "--workload-kinds", "kinds.yaml")

    assert "expected pods that can be made; got pods of spec.pod" in refused
    assert "2 of 2 pods placed" in out
