"""`bayplan explain`: the account of a pod, and the exit status."""

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner

from bayplan.answers import apply_changes
from bayplan.answers.account import PodExplanation, RemedyStep
from bayplan.answers.group_account import PodGroupExplanation
from bayplan.cli.main import app
from tests.rig.trees import node_tree, pod_tree

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]


def named_pod(name: str, cpu: str = "1", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return pod_tree(name, cpu, metadata={"namespace": namespace}, **spec)


def write(*objects: dict[str, Any]) -> str:
    Path("all.yaml").write_text(yaml.safe_dump_all(objects))
    return "all.yaml"


def explain(*args: str, code: int = 0) -> tuple[str, str]:
    """Run the command within this process; returns its output and its complaints."""
    result = CliRunner().invoke(app, ["explain", *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def explain_json(*args: str, code: int = 0) -> dict[str, Any]:
    out, _ = explain(*args, "-o", "json", code=code)
    document: dict[str, Any] = json.loads(out)
    return document


def test_a_pending_pod_that_fits_names_the_node_the_margin_and_the_points(folder: Path) -> None:
    file = write(
        node_tree("a"), node_tree("b"), named_pod("runs", "2", nodeName="a"), named_pod("p")
    )

    out, err = explain("pod/p", "-f", file)

    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "after placing 1 waiting pod"
    assert lines[1] == "default/p would go to b  (2 of 2 nodes fit)"
    assert "ahead of a: NodeResourcesFit" in lines[2]
    assert any(line.split()[:2] == ["★", "b"] for line in lines)


def test_every_plugin_that_refuses_a_node_is_named(folder: Path) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    file = write(node_tree("a", "1", taints=[taint]), node_tree("b", "1"), named_pod("p", "2"))

    told = explain_json("p", "-f", file, code=1)

    assert told["verdict"] == "unschedulable"
    assert told["message"].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had")
    said = {g["nodes"][0]: [r["plugin"] for r in g["refusals"]] for g in told["refused"]}
    assert said == {"b": ["NodeResourcesFit"], "a": ["TaintToleration", "NodeResourcesFit"]}
    assert told["refused"][0]["nodes"] == ["b"], "the nearest comes first"


def test_a_placed_pod_is_judged_as_if_it_waited(folder: Path) -> None:
    file = write(node_tree("a"), node_tree("b"), named_pod("p", "3", nodeName="a"))

    told = explain_json("p", "-f", file)

    assert (told["verdict"], told["node"]) == ("placed", "a")
    assert [node["total"] for node in told["scores"]] == [told["choice"]["total"]] * 2
    assert told["choice"]["node"] == "a"
    assert told["remarks"] == []


def test_a_placed_pod_for_which_another_node_is_better_today_says_so(folder: Path) -> None:
    other = named_pod("other", "2", nodeName="a")
    file = write(node_tree("a"), node_tree("b"), other, named_pod("p", nodeName="a"))

    out, _ = explain("p", "-f", file)

    assert out.splitlines()[0] == "default/p is on a  (2 of 2 nodes fit)"
    assert "note: today it would go to b, which is" in out


def test_a_placed_pod_that_its_node_would_refuse_today_says_so(folder: Path) -> None:
    file = write(node_tree("a", unschedulable=True), named_pod("p", nodeName="a"))

    told = explain_json("p", "-f", file)

    assert told["remarks"][0].startswith("today a would refuse the pod (NodeUnschedulable: ")


def test_a_gated_pod_is_explained_with_and_without_the_gate(folder: Path) -> None:
    file = write(node_tree("a"), named_pod("p", schedulingGates=[{"name": "example.com/wait"}]))

    told = explain_json("p", "-f", file, code=1)

    assert told["verdict"] == "gated"
    assert told["gate"]["plugin"] == "SchedulingGates"
    assert told["choice"]["node"] == "a"


def test_a_pod_that_is_refused_without_a_look_at_the_nodes_says_by_whom(folder: Path) -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
    file = write(node_tree("a"), named_pod("p", volumes=volumes))

    told = explain_json("p", "-f", file, code=1)

    assert told["preFilter"]["plugin"] in ("VolumeRestrictions", "VolumeBinding")
    assert told["refused"] == []


def test_victims_of_preemption_are_named(folder: Path) -> None:
    file = write(
        node_tree("a"),
        named_pod("low", "3", nodeName="a", priority=0),
        named_pod("high", "3", priority=100),
    )

    before = explain_json("high", "-f", file, "--as-is", code=1)
    after = explain_json("high", "-f", file)

    assert (before["verdict"], after["verdict"]) == ("unschedulable", "fits")
    for told in (before, after):
        assert told["preemption"]["node"] == "a"
        assert [victim["name"] for victim in told["preemption"]["victims"]] == ["low"]


def test_pods_of_a_workload_of_which_the_same_holds_are_told_once() -> None:
    out, _ = explain("deployment/web", *FILES, "--as-is")

    assert out.startswith("about the cluster as it was read, in which 19 pods wait\n")
    assert out.count("would go to") == 1
    assert "the same holds of shop/web-" in out


def make_deployment(replicas: int, cpu: str) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": named_pod("web", cpu)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def test_one_pod_of_a_workload_is_explained_for_those_on_nodes_and_one_for_those_that_wait(
    folder: Path,
) -> None:
    file = write(node_tree("a"), node_tree("b"), make_deployment(6, "2"))

    told = explain_json("deployment/web", "-f", file, code=1)
    out, _ = explain("deployment/web", "-f", file, code=1)
    each = explain_json("deployment/web", "-f", file, "--all", code=1)

    placed, pending = told["items"]
    assert (placed["verdict"], pending["verdict"]) == ("fits", "unschedulable")
    nodes = sorted([placed["node"], *(pod["node"] for pod in placed["alike"])])
    assert nodes == ["a", "a", "b", "b"]
    assert [pod["node"] for pod in pending["alike"]] == [None]
    assert out.splitlines()[1] == "6 pods: 4 with a node, 2 without a node"
    assert "equal pods with a node: default/web-" in out
    assert [len(item["alike"]) for item in each["items"]] == [0] * 6


def test_a_step_that_several_nodes_need_is_named_once_and_the_others_begin_with_and(
    folder: Path,
) -> None:
    names = [f"{name}.eu-west-1.compute.internal" for name in ("ip-10-0-0-1", "ip-10-0-0-2")]
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    nodes = [
        node_tree(name, cpu, taints=[taint]) for name, cpu in zip(names, ("4", "5"), strict=True)
    ]
    file = write(*nodes, named_pod("p", "6"))

    out, _ = explain("p", "-f", file, code=1)

    heading, *table = out.partition("\n\n")[2].splitlines()
    assert heading.index("WHAT") == len(f"  {names[0]}  "), "a name is in each line"
    assert table[0].split("  ")[1:] == [names[1], "tolerate taint gpu=yes:NoSchedule"]
    assert table[1].split("  ")[1] == names[0]
    texts = [line[heading.index("WHAT") :] for line in table]
    assert len(texts) == len(set(texts)) == 6
    assert sum(text.startswith("and ") for text in texts) == 2


def test_nodes_can_be_picked(folder: Path) -> None:
    file = write(node_tree("a"), node_tree("b"), node_tree("c", "1"), named_pod("p", "2"))

    told = explain_json("p", "-f", file, "--node", "b", "--node", "c")

    assert [node["name"] for node in told["scores"]] == ["b"]
    assert [group["nodes"] for group in told["refused"]] == [["c"]]
    assert [found["node"] for found in told["counterfactuals"]] == ["c"]


@pytest.mark.parametrize("target", ["p", "pod/p", "here/p", "pod/here/p", "po/p"])
def test_ways_to_name_a_pod(folder: Path, target: str) -> None:
    file = write(node_tree("a"), named_pod("p", namespace="here"))

    assert explain_json(target, "-f", file)["pod"]["namespace"] == "here"


@pytest.mark.parametrize("target", ["web", "default/web"])
def test_a_name_that_only_a_workload_has_stands_for_its_pods(folder: Path, target: str) -> None:
    file = write(node_tree("a"), make_deployment(2, "1"))

    out, _ = explain(target, "-f", file)

    assert "default/web-" in out
    assert "would go to a" in out


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        pytest.param(["wbe-1"], "such as default/web-1; got no such pod", id="a near name"),
        pytest.param(["twice"], "got one in each of one, two", id="a name in two namespaces"),
        pytest.param(["one/two/three"], "expected [pod/]NAME", id="too many parts"),
        pytest.param(["pod/"], "expected [pod/]NAME", id="no name"),
        pytest.param(["one/twice", "-n", "two"], "--namespace: expected", id="two namespaces"),
        pytest.param(["deployment/none"], "got no pod of it", id="no such workload"),
        pytest.param(["web-1", "--node", "x"], "--node: expected a node", id="no such node"),
        pytest.param(["other"], "spec.schedulerName: expected a profile", id="another scheduler"),
        pytest.param(["web-1", "--config", "none"], "none", id="no such configuration"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    folder: Path, args: list[str], complaint: str
) -> None:
    file = write(
        node_tree("a"),
        named_pod("web-1"),
        named_pod("twice", namespace="one"),
        named_pod("twice", namespace="two"),
        named_pod("other", schedulerName="other"),
    )

    out, err = explain(*args, "-f", file, code=2)

    assert out == ""
    assert err.startswith("error: ")
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_a_remedy_for_several_nodes_is_said_once_and_the_cause_first(tmp_path: Path) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    objects = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{zone}", "labels": {"zone": zone}},
            "spec": {"unschedulable": True, "taints": [cordoned]} if zone == "c" else {},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        }
        for zone in "abc"
    ]
    for name, node in (("one", "node-a"), ("two", "node-b"), ("waits", "")):
        spec = {"containers": [{"name": "c", "image": "c"}], "topologySpreadConstraints": [spread]}
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {**spec, **({"nodeName": node} if node else {})},
            }
        )
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    out, _ = explain("waits", "-f", str(file), code=1)

    assert "\n  cause: the spread over zone counts zone=c with no pod, although " in out
    remedy = "set nodeTaintsPolicy: Honor for the spread over zone"
    assert f"\n  node-a, node-b  {remedy}\n" in out
    assert out.count(remedy) == 1
    assert out.count("allow a skew of 2 over zone") == 1


def test_what_would_let_a_pending_pod_run_is_told_for_the_nearest_nodes() -> None:
    out, _ = explain("pod/web-7", "-f", str(EXAMPLES / "explain" / "pending.yaml"), code=1)

    table = out.partition("WHAT WOULD LET IT RUN THERE\n")[2].splitlines()
    assert [line.strip() for line in table] == [
        "node-1  free 300m cpu on node-1: move or delete pod shop/web-3 on node-1 (gives 500m cpu)",
        "or request 300m cpu less: request 700m cpu instead of 1",
        "or 300m cpu more on node-1: raise cpu on node-1 to 4300m",
        "node-2  tolerate taint gpu=yes:NoSchedule",
        "or remove taint gpu=yes:NoSchedule from node node-2",
        "node-3  uncordon node node-3",
        "or tolerate cordoned nodes",
        "and free 500m cpu on node-3: move or delete pod shop/db-1 on node-3 (gives 3500m cpu)",
        "or request 500m cpu less: request 500m cpu instead of 1",
        "or 500m cpu more on node-3: raise cpu on node-3 to 4500m",
    ]


def test_nodes_that_need_the_same_are_told_together() -> None:
    files = [part for name in ("cluster", "workload") for part in ("-f", f"{EXAMPLES}/{name}.yaml")]
    out, _ = explain("shop/edge-proxy", *files, code=1)

    table = out.partition("WHAT WOULD LET IT RUN THERE\n")[2].splitlines()
    assert [" ".join(line.split()) for line in table] == [
        "worker-a1, worker-a2, worker-b1 and 2 more select the node by its labels: "
        "select topology.kubernetes.io/region=north instead of south",
        "or label the node with topology.kubernetes.io/region=south",
        "or drop what the pod asks of nodes: no longer select topology.kubernetes.io/region=south",
    ]


def test_changes_from_json_can_be_made_in_the_manifests_and_the_pod_fits(folder: Path) -> None:
    source = EXAMPLES / "explain" / "pending.yaml"
    told = explain_json("web-7", "-f", str(source), "--nearest", "2", code=1)
    assert [found["node"] for found in told["counterfactuals"]] == ["node-1", "node-2"]
    manifests = list(yaml.safe_load_all(source.read_text()))

    for found in told["counterfactuals"]:
        steps = msgspec.convert(found["steps"], list[RemedyStep])
        changed = apply_changes(manifests, [change for step in steps for change in step.changes])
        again = explain_json("web-7", "-f", write(*changed))

        assert (again["verdict"], again["node"]) == ("fits", found["node"])


def with_clean_docstrings(schema: Any) -> Any:
    """The schema without the indentation of docstrings, which Python before 3.13 keeps."""
    if isinstance(schema, dict):
        return {
            name: inspect.cleandoc(value)
            if name == "description" and isinstance(value, str)
            else with_clean_docstrings(value)
            for name, value in schema.items()
        }
    return [with_clean_docstrings(each) for each in schema] if isinstance(schema, list) else schema


def test_the_schema_in_the_documentation_is_that_of_the_answer() -> None:
    file = EXAMPLES.parent / "docs" / "explain.schema.json"
    documented = json.loads(file.read_text())
    head = {"$schema": documented["$schema"], "title": documented["title"]}

    answers = (PodExplanation, PodGroupExplanation)
    refs, parts = msgspec.json.schema_components(answers, ref_template="#/$defs/{name}")
    schema = {"anyOf": list(refs), "$defs": parts}
    assert documented == head | with_clean_docstrings(schema), (
        "write docs/explain.schema.json again, from msgspec.json.schema_components"
    )


def test_the_answer_can_be_read_back() -> None:
    out, _ = explain(
        "pod/web-7", "-f", str(EXAMPLES / "explain" / "pending.yaml"), "-o", "json", code=1
    )

    read = msgspec.json.decode(out, type=PodExplanation)

    assert read.to_dict() == json.loads(out)


def test_a_plugin_without_a_known_remedy_is_named(folder: Path) -> None:
    Path("grumpy.py").write_text(
        "from bayplan.framework import FilterPlugin, unschedulable\n"
        "class Grumpy(FilterPlugin):\n"
        "    name = 'Grumpy'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return unschedulable('not today')\n"
    )
    file = write(node_tree("a"), named_pod("p"))

    out, _ = explain("p", "-f", file, "--plugins", "grumpy.py", code=1)

    assert "nothing is known that would change the mind of Grumpy: not today" in out


def test_a_workload_whose_pods_are_refused_says_why(tmp_path: Path) -> None:
    file = tmp_path / "quota.yaml"
    head = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: shop}\n"
    file.write_text(f"{head}spec: {{hard: {{pods: 0}}}}\n")
    args = ["explain", "statefulset/shop/db", "-f", str(EXAMPLES / "cluster.yaml")]

    result = CliRunner().invoke(
        app, [*args, "-f", str(EXAMPLES / "workload.yaml"), "-f", str(file)]
    )

    assert result.exit_code == 2
    assert result.stderr.startswith(
        'error: StatefulSet "db": expected one that has pods; got no pod of it, '
    )
    assert (
        'refused: pods "db-0" is forbidden: exceeded quota: q, requested: pods=1' in result.stderr
    )
