"""Notebook: the same answers as the commands, as objects, frames and plots."""

import builtins
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import bayplan
from bayplan import (
    Cluster,
    capacity,
    compare,
    explain,
    plot,
    rebalance,
    replay,
    simulate,
    sweep,
    what_if,
)
from bayplan.answers.what_if import Drain
from bayplan.api.pod import Pod
from bayplan.cli.main import app
from bayplan.errors import InputError
from bayplan.framework import MAX_SCORE, CycleState, NodeInfo, ScorePlugin
from tests.rig.trees import node_tree, pod_tree

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = [EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml"]
RECORDING = EXAMPLES / "recording" / "run.jsonl.gz"


def make_tree(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


SMALL = Cluster.of(node_tree("a"), node_tree("b", "2"), pod_tree("web", "1"), pod_tree("big", "9"))


def command(*args: str) -> Any:
    result = CliRunner().invoke(app, [*args, "-o", "json"])
    return json.loads(result.stdout)


@pytest.fixture
def axes() -> Any:
    """Axes without a display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    yield axes
    pyplot.close(figure)


def test_simulate_gives_the_result_of_the_command() -> None:
    files = [part for file in FILES for part in ("-f", str(file))]

    assert simulate(Cluster.read(*FILES)).to_dict() == command("simulate", *files)


def test_a_report_shows_the_release_unless_it_is_the_default_one() -> None:
    cluster = Cluster.read(*FILES)

    old = simulate(cluster, kubernetes_version="1.35")

    assert "as v1.35.8 does" in repr(old)
    assert "as v1.35.8 does" in old._repr_html_()
    assert old.to_dict()["kubernetesVersion"] == "v1.35.8"
    assert "does" not in repr(simulate(cluster))


def test_every_answer_shows_the_release_unless_it_is_the_default_one() -> None:
    cluster = Cluster.read(*FILES)
    ask: list[Callable[..., Any]] = [
        partial(explain, cluster, "research/in-memory-index"),
        partial(capacity, cluster, pod_tree("more", "1"), limit=3),
        partial(what_if, cluster, Drain(("worker-a1",))),
        partial(rebalance, cluster, max_moves=1),
        partial(compare, cluster, {"default": None}),
    ]
    for question in ask:
        old = question(kubernetes_version="1.35")

        assert repr(old).endswith(", as v1.35.8 does>")
        assert "as v1.35.8 does" in old._repr_html_()
        assert "does" not in repr(question())
        assert '"kubernetesVersion":"v1.35.8"' in msgspec.json.encode(old.to_dict()).decode()


def test_a_sweep_shows_the_releases_and_warns_of_unknown_ones(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_text(
        "{apiVersion: v1, kind: Namespace, metadata: {name: x, annotations: "
        "{bayplan.dev/kubernetes-version: v1.35.3}}}\n"
    )
    files = [str(snapshot), *map(str, FILES)]
    names = {"recorded": "", "newer": "1.37", "unknown": "1.99"}
    configurations = [
        {"name": name, **({"kubernetesVersion": version} if version else {})}
        for name, version in names.items()
    ]
    document = {"inputs": [{"name": "x", "files": files}], "seeds": 1}

    with pytest.warns(UserWarning, match=r"Kubernetes v1.99 is not known"):
        found = sweep({**document, "configurations": configurations}, jobs=1)
    alone = sweep({**document, "configurations": configurations[:1]}, jobs=1)

    shown = [row["kubernetesVersion"] for row in found.rows()]
    assert shown == ["v1.35.8", "v1.37.0-rc.1", "v1.37.0-rc.1"]
    assert [row["kubernetesVersion"] for row in found.summary_rows()] == shown
    assert "does" not in repr(found)
    assert repr(alone).endswith(", as v1.35.8 does>")


def test_explain_gives_the_result_of_the_command() -> None:
    files = [part for file in FILES for part in ("-f", str(file))]

    said = explain(Cluster.read(*FILES), "research/in-memory-index").to_dict()

    assert said == command("explain", "research/in-memory-index", *files)


def test_clusters_can_be_added() -> None:
    cluster = Cluster.of(node_tree("a")) + Cluster.of(pod_tree("web", "1"))

    assert repr(cluster) == "Cluster(1 Node, 1 Pod)"
    assert [result.attempt.node_name for result in simulate(cluster).placed] == ["a"]


def test_questions_do_not_modify_the_cluster() -> None:
    first = simulate(SMALL).to_dict()
    explain(SMALL, "web")

    assert simulate(SMALL).to_dict() == first
    assert len(SMALL) == 4


def test_lists_are_expanded_and_irrelevant_kinds_are_dropped() -> None:
    items = [node_tree("a"), make_tree("Secret", "s", data={"password": "x"})]

    assert repr(Cluster.of({"kind": "List", "items": items})) == "Cluster(1 Node)"


class PreferB(ScorePlugin):
    """Prefers the node b."""

    name = "PreferB"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return MAX_SCORE * (node.name == "b")


def test_a_plugin_class_changes_where_pods_go() -> None:
    def node_of_web(**settings: Any) -> str:
        return simulate(SMALL, **settings).placed[0].attempt.node_name

    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "PreferB", "weight": 9}]}}}],
    }
    assert node_of_web() == "a"
    assert node_of_web(plugins=[PreferB], config=config) == "b"
    assert explain(SMALL, "web", plugins=[PreferB], config=config).node == "b"


def test_a_run_can_be_stopped_in_time() -> None:
    assert simulate(Cluster.read(EXAMPLES / "timeline"), until="2h").time_s == 7200


PACK = EXAMPLES / "compare" / "most-allocated.yaml"
PAIR = Cluster.of(node_tree("a"), node_tree("b"), *(pod_tree(f"p{i}", "1") for i in range(4)))


def test_compare_shows_the_effect_of_another_configuration(axes: Any) -> None:
    comparison = compare(PAIR, {"spread": None, "pack": PACK}, seeds=3)

    empty = comparison.to_frame().loc["emptyNodes"]
    assert empty["spread"] == 0
    assert empty["pack"] == 1
    assert comparison.seeds == [0, 1, 2]
    labels = plot(comparison, axes).get_legend_handles_labels()[1]
    assert labels == ["better than spread", "worse", "spread", "pack"]


def test_compare_of_releases_has_the_changes_by_the_upgrade() -> None:
    cluster = Cluster.read(str(EXAMPLES / "dra"))

    both = compare(cluster, releases=["1.33", "1.34"])
    paired = compare(cluster, {"old": None, "new": PACK}, releases=["1.36", "1.37"])
    same = compare(cluster, {"pack": PACK}, releases=["1.36"])

    assert [each.name for each in both.contenders] == ["1.33", "1.34"]
    assert [each.release for each in both.contenders] == ["v1.33.13", "v1.34.11"]
    assert both.changes[0].counts() == {"devices": 7}
    assert [each.name for each in paired.contenders] == ["old", "new"]
    assert [each.release for each in paired.contenders] == ["v1.36.4", "v1.37.0-rc.1"]
    assert not same.changes


def test_what_if_moves_the_pods_of_a_drained_node() -> None:
    running = [
        {**pod_tree(f"p{i}", "1"), "spec": {**pod_tree("x", "1")["spec"], "nodeName": "a"}}
        for i in range(2)
    ]
    cluster = Cluster.of(node_tree("a"), node_tree("b"), *running)

    moved = what_if(cluster, Drain(("a",), force=True)).to_frame()

    assert moved["was"].tolist() == ["a", "a"]
    assert moved["now"].tolist() == ["b", "b"]


def test_rebalance_plans_moves_that_even_the_nodes_out() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": True}
    running = []
    for i in range(4):
        pod = pod_tree(f"p{i}", "1")
        pod["metadata"]["ownerReferences"] = [{**owner, "uid": "r"}]
        running.append({**pod, "spec": {**pod["spec"], "nodeName": "a"}})
    cluster = Cluster.of(node_tree("a"), node_tree("b"), *running)

    plan = rebalance(cluster)

    assert plan.to_frame()["to"].tolist() == ["b", "b"]
    assert plan.after < plan.before


def test_capacity_counts_what_still_fits() -> None:
    found = capacity(SMALL, pod_tree("more", "1"))

    assert found.fits == 5  # 6 cpus, of which web has one
    assert found.to_frame()["more"].sum() == 5


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda **how: explain(SMALL, "big", **how), id="explain"),
        pytest.param(lambda **how: what_if(SMALL, Drain(("b",)), **how), id="what_if"),
        pytest.param(lambda **how: capacity(SMALL, pod_tree("one", "1"), **how), id="capacity"),
        pytest.param(lambda **how: rebalance(SMALL, **how), id="rebalance"),
    ],
)
def test_questions_are_about_the_settled_cluster_unless_it_is_asked_about_as_it_is(
    ask: Any,
) -> None:
    settled, as_is = ask().settled, ask(as_is=True).settled

    assert (settled.waiting, settled.placed, settled.as_is) == (2, 1, False)
    assert (as_is.waiting, as_is.placed, as_is.as_is) == (2, 0, True)


def test_frames_have_a_line_per_pod_and_per_node() -> None:
    report = simulate(SMALL)

    pods, nodes = report.to_frame().set_index("pod"), report.to_frame("nodes").set_index("node")
    assert pods.loc["web", "node"] == "a"
    assert pods.loc["big", "outcome"] == "unschedulable"
    assert nodes.loc["a", ["cpu", "cpu requested"]].tolist() == [4000, 1000]
    assert SMALL.to_frame().set_index("node").loc["b", "cpu"] == 2000
    assert SMALL.to_frame("pods").set_index("pod").loc["big", "cpu"] == 9000


def test_the_frame_of_an_explanation_has_a_line_per_node() -> None:
    fits = explain(SMALL, "web").to_frame().set_index("node")
    refused = explain(SMALL, "big").to_frame().set_index("node")

    assert fits.index[0] == "a"
    assert fits.loc["a", "total"] > fits.loc["b", "total"]
    assert refused.loc["a", "refused_by"] == "NodeResourcesFit"
    assert refused.loc["a", "reason"] == "Insufficient cpu"


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        pytest.param(lambda: simulate(SMALL), "1 of 2 pods placed", id="a simulation"),
        pytest.param(lambda: explain(SMALL, "web"), "default/web → a", id="a pod that fits"),
        pytest.param(
            lambda: explain(SMALL, "big"), "default/big is unschedulable", id="a pod that waits"
        ),
    ],
)
def test_pictures(axes: Any, answer: Any, title: str) -> None:
    assert plot(answer(), axes).get_title().startswith(title)


WRONG = [
    pytest.param(lambda: explain(SMALL, "wep"), "wep", id="an unknown pod"),
    pytest.param(
        lambda: simulate(SMALL, until="soon"),
        'until: expected a duration such as 90s, 5m or 1h30m; got "soon"',
        id="an invalid time",
    ),
    pytest.param(
        lambda: simulate(SMALL, config="nowhere.yaml"),
        "nowhere.yaml: expected a readable file; got No such file or directory",
        id="a missing configuration file",
    ),
    pytest.param(
        lambda: simulate(SMALL, config={"kind": "Deployment"}), "config: ", id="something else"
    ),
    pytest.param(
        lambda: capacity(SMALL, node_tree("c")),
        "expected one pod or workload; got none",
        id="a node where a pod is asked for",
    ),
    pytest.param(
        lambda: rebalance(SMALL, "beauty"),
        'objective: expected spread, pack, cost or constraints; got "beauty"',
        id="an unknown objective",
    ),
    pytest.param(lambda: compare(SMALL, {}), "at least one scheduler", id="nothing to compare"),
    pytest.param(
        lambda: compare(SMALL, {"a": None, "b": None}, releases=["1.35", "1.36", "1.37"]),
        "one scheduler for all or 3; got 2",
        id="two schedulers for three releases",
    ),
    pytest.param(
        lambda: compare(SMALL, releases=["1.36", "1.36"]),
        "different releases",
        id="the same release twice",
    ),
    pytest.param(
        lambda: compare(SMALL, releases=["1.36"], kubernetes_version="1.36"),
        "kubernetes_version or releases; got both",
        id="releases beside a release",
    ),
    pytest.param(
        lambda: simulate(Cluster.of(pod_tree("web", "1"))),
        "input: expected at least one Node; got none",
        id="no node",
    ),
]


@pytest.mark.parametrize(("ask", "error"), WRONG)
def test_invalid_input_is_reported(ask: Any, error: str) -> None:
    with pytest.raises(InputError) as caught:
        ask()

    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("package", "ask"),
    [
        pytest.param("pandas", lambda: simulate(SMALL).to_frame(), id="a frame needs pandas"),
        pytest.param("matplotlib", lambda: plot(simulate(SMALL)), id="a picture needs matplotlib"),
    ],
)
def test_a_missing_package_is_named(
    package: str, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(InputError, match=f"expected {package} to be installed"):
        ask()


def test_public_names_are_imported_on_first_use() -> None:
    program = "import sys, bayplan; assert 'numpy' not in sys.modules; bayplan.simulate"

    subprocess.run([sys.executable, "-c", program], check=True)
    assert set(bayplan.__all__) <= set(dir(bayplan))


def test_unknown_fields_are_warnings_and_remarks_of_the_cluster(tmp_path: Path) -> None:
    containers = [{"name": "c", "image": "i"}]
    pod = make_tree("Pod", "a", spec={"containers": containers, "nodeSelecter": {}})
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod))
    fault = "expected nodeSelector; got an unknown field"

    with pytest.warns(UserWarning, match="nodeSelecter") as warned:
        read, made = Cluster.read(file, strict=False), Cluster.of(node_tree("n"), pod, strict=False)

    assert read.remarks == (f"{file}: document 1: pod default/a: spec.nodeSelecter: {fault}",)
    assert made.remarks == (f"objects[1].spec.nodeSelecter: pod default/a: {fault}",)
    assert (read + made).remarks == (*read.remarks, *made.remarks)
    assert {warning.filename for warning in warned} == {__file__}


def test_strict_refuses_unknown_fields(tmp_path: Path) -> None:
    pod = make_tree("Pod", "a", spec={"containers": [], "nodeSelecter": {}})
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod))

    with pytest.raises(InputError, match="expected nodeSelector"):
        Cluster.read(file)
    with pytest.raises(InputError, match="expected nodeSelector"):
        Cluster.of(pod)


@pytest.mark.parametrize("follow", ["recorded", "own"])
def test_a_recording_is_replayed_as_the_release_that_it_names(tmp_path: Path, follow: str) -> None:
    notes = {"bayplan.dev/kubernetes-version": "v1.35.3"}
    namespace = {"apiVersion": "v1", "kind": "Namespace"}
    named = {**namespace, "metadata": {"name": "named", "annotations": notes}}
    head, *lines = gzip.decompress(RECORDING.read_bytes()).decode().splitlines()
    added = json.dumps({"t": 0.0, "type": "ADDED", "object": named})
    file = tmp_path / "run.jsonl"
    file.write_text("\n".join([head, added, *lines, ""]))

    recorded = replay(file, follow=follow)
    chosen = replay(file, follow=follow, kubernetes_version="1.36")

    assert repr(recorded).endswith(", as v1.35.8 does>")
    assert recorded.to_dict()["kubernetesVersion"] == "v1.35.8"
    assert chosen.to_dict()["kubernetesVersion"] == "v1.36.4"
