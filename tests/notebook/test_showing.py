"""Answers in Python and in notebooks: short texts, tables in HTML, frames and pictures."""

from pathlib import Path
from typing import Any

import pytest

from bayplan import (
    Cluster,
    Drain,
    capacity,
    compare,
    explain,
    plot,
    rebalance,
    replay,
    simulate,
    what_if,
)
from bayplan.notebook.pictures import BETTER, WORSE
from bayplan.sim.measures import Metric
from tests.rig.trees import node_tree, pod_tree

figure = pytest.importorskip("matplotlib.figure")
to_rgba = pytest.importorskip("matplotlib.colors").to_rgba
isna = pytest.importorskip("pandas").isna


def ssd_node(name: str, zone: str, cpu: str = "4") -> dict[str, Any]:
    return node_tree(name, cpu, zone=zone, labels={"disk": "ssd"})


def web_pod(name: str, cpu: str = "1", **metadata: Any) -> dict[str, Any]:
    return pod_tree(name, cpu, metadata=metadata)


def owned(name: str, **options: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-x", "uid": "u"}
    labels = {"app": "web", "pod-template-hash": "x"}
    return web_pod(name, labels=labels, ownerReferences=[{**owner, "controller": True}], **options)


def on(pod: dict[str, Any], node: str) -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


NODES = (ssd_node("a", "north"), ssd_node("b", "south"))
CLUSTER = Cluster.of(*NODES, owned("web-1"), owned("web-2", cpu="9"), web_pod("<b>", cpu="9"))
TIMED = Cluster.of(
    *NODES,
    *(web_pod(f"job-{i}", cpu="3", annotations={"bayplan.dev/duration": "10m"}) for i in range(5)),
)
RUNNING = Cluster.of(*NODES, *(on(owned(f"web-{i}"), "a") for i in range(4)))
RECORDING = Path(__file__).parents[2] / "examples/recording/run.jsonl.gz"
ANSWERS = {
    "simulate": lambda: simulate(CLUSTER),
    "simulate over time": lambda: simulate(TIMED),
    "explain": lambda: explain(CLUSTER, "web-1"),
    "explain a pod that waits": lambda: explain(CLUSTER, "web-2"),
    "compare": lambda: compare(CLUSTER, {"one": None, "two": None}, seeds=2),
    "what_if": lambda: what_if(RUNNING, Drain(("a",))),
    "capacity": lambda: capacity(CLUSTER, web_pod("more")),
    "rebalance": lambda: rebalance(RUNNING),
    "replay": lambda: replay(RECORDING),
    "replay of its own": lambda: replay(RECORDING, follow="own"),
}
EVERY = [pytest.param(make, id=name) for name, make in ANSWERS.items()]


@pytest.fixture
def axes() -> Any:
    return figure.Figure().subplots()


@pytest.mark.parametrize("make", EVERY)
def test_every_answer_has_a_short_text_and_html(make: Any) -> None:
    answer = make()

    text, html = repr(answer), answer._repr_html_()

    assert text == f"<{type(answer).__name__}: {answer.headline()}>"
    assert len(text) <= 160
    assert "\n" not in text
    assert html.startswith("<p><b>")
    assert "<table>" in html
    assert html.count("<tr>") <= 21


@pytest.mark.parametrize("make", EVERY)
def test_every_answer_is_drawn(make: Any, axes: Any) -> None:
    answer = make()

    drawn = plot(answer, axes)

    assert drawn is axes
    assert axes.get_title()
    assert axes.lines or axes.patches


def test_texts_are_escaped_in_html() -> None:
    html = simulate(CLUSTER)._repr_html_()

    assert "<td>default/&lt;b&gt;</td>" in html
    assert "<b>default" not in html


def test_long_tables_are_cut_in_html() -> None:
    moved = Cluster.of(*(ssd_node(f"n{i}", "z", "100") for i in range(2)))
    pods = (on(owned(f"web-{i}"), "n0") for i in range(8))
    answer = what_if(moved + Cluster.of(*pods), Drain(("n0",)))
    answer.pods *= 5

    html = answer._repr_html_()

    assert html.count("<tr>") == 21
    assert "… and 20 more; to_frame() has all" in html


def test_a_cluster_is_shown_by_kinds() -> None:
    assert repr(CLUSTER) == "Cluster(2 Node, 3 Pod)"
    assert "<td>Node</td><td>2</td>" in CLUSTER._repr_html_()


def test_frames_have_requests_owner_labels_zone_and_group() -> None:
    member = web_pod("member")
    member["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    cluster = CLUSTER + Cluster.of(member)

    for frame in (simulate(cluster).to_frame(), cluster.to_frame("pods")):
        pods = frame.set_index("pod")
        assert pods.loc["web-1", "owner"] == "Deployment/web"
        assert pods.loc["web-1", "labels"]["app"] == "web"
        assert pods.loc["web-1", "cpu"] == 1000
        assert pods.loc["member", "group"] == "gang"
        assert isna(pods.loc["member", "owner"])

    placed = simulate(cluster).to_frame().set_index("pod").loc["web-1"]
    assert placed["zone"] == {"a": "north", "b": "south"}[placed["node"]]
    nodes = simulate(cluster).to_frame("nodes").set_index("node")
    assert nodes.loc["b", "zone"] == "south"
    assert nodes.loc["b", "labels"]["disk"] == "ssd"
    assert not nodes["tainted"].any()
    assert cluster.to_frame().set_index("node").loc["a", "zone"] == "north"


def test_the_frame_over_time_has_a_line_per_change() -> None:
    frame = simulate(TIMED).to_frame("time")

    cpu = frame[frame["name"] == "cpu"]
    assert cpu["value"].max() == 0.75
    assert cpu["time_s"].iloc[-1] >= 1200


def test_the_frame_of_a_comparison_keeps_deviations_and_names_the_better() -> None:
    comparison = compare(CLUSTER, {"one": None, "two": None}, seeds=2)
    comparison.contenders[1].metrics["pending"] = Metric("pending", (3.0, 5.0))

    frame = comparison.to_frame()

    assert list(frame.columns) == ["one", "one ±", "two", "two ±", "better", "significant"]
    assert frame.loc["pending", ["two", "better"]].tolist() == [4.0, "one"]
    assert frame.loc["pending", "two ±"] == pytest.approx(12.7062, abs=1e-4), "two runs tell little"
    assert isna(frame.loc["placed", "better"]), "equal"
    runs = comparison.to_frame("runs").set_index(["scheduler", "metric"])
    assert runs.loc[("two", "pending"), "values"] == [3.0, 5.0]
    assert comparison.to_frame("pods").empty


def test_a_comparison_is_drawn_with_its_direction(axes: Any) -> None:
    comparison = compare(CLUSTER, {"one": None, "two": None}, seeds=2)
    comparison.contenders[1].metrics["pending"] = Metric("pending", (3.0, 5.0))
    comparison.contenders[1].metrics["placed"] = Metric("placed", (2.0, 2.0))

    plot(comparison, axes)

    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    assert {"placed ↑", "pending ↓", "cpuUtilisation ↑"} <= {*labels}
    second = axes.containers[-1].patches  # the frames around the bars of the second scheduler
    edges = {label: bar.get_edgecolor() for label, bar in zip(labels, second, strict=True)}
    assert edges["pending ↓"] == to_rgba(WORSE)
    assert edges["placed ↑"] == to_rgba(BETTER)


def test_a_simulation_over_time_is_drawn_over_time(axes: Any) -> None:
    plot(simulate(TIMED), axes)

    assert axes.get_xlabel() == "minutes"
    assert "pending" in axes.get_legend_handles_labels()[1]
