"""NodePreferAvoidPods: nodes whose annotation lists a controller."""

import json
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import CycleState
from bayplan.plugins.legacy.node_prefer_avoid_pods import ANNOTATION, NodePreferAvoidPods
from bayplan.table import ALL, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_object, make_pod, make_table
from bayplan.testing.conformance import check_conformance


def annotation(*controllers: tuple[str, str]) -> str:
    entries = [
        {"podSignature": {"podController": {"apiVersion": "v1", "kind": kind, "uid": uid}}}
        for kind, uid in controllers
    ]
    return json.dumps({"preferAvoidPods": entries})


def avoiding(name: str, text: str) -> Any:
    return make_node(name, annotations={ANNOTATION: text})


def owned(kind: str, uid: str, controller: bool = True) -> Pod:
    owner = {"apiVersion": "v1", "kind": kind, "name": "x", "uid": uid, "controller": controller}
    pod = make_object("Pod", "p", metadata={"ownerReferences": [owner]}, spec={})
    assert isinstance(pod, Pod)
    return pod


TABLE = make_table(
    avoiding("rc", annotation(("ReplicationController", "1"))),
    avoiding("rs", annotation(("Job", "1"), ("ReplicaSet", "2"))),
    make_node("plain"),
    avoiding("broken", "{"),
    avoiding("odd", json.dumps({"PREFERAVOIDPODS": [{"podSignature": {}}, None]})),
)


@pytest.mark.parametrize(
    ("pod", "scores"),
    [
        pytest.param(owned("ReplicationController", "1"), [0, 100, 100, 100, 100], id="named"),
        pytest.param(owned("ReplicaSet", "2"), [100, 0, 100, 100, 100], id="the second entry"),
        pytest.param(owned("ReplicaSet", "1"), [100] * 5, id="same uid, another kind"),
        pytest.param(owned("ReplicationController", "2"), [100] * 5, id="another uid"),
        pytest.param(owned("Job", "1"), [100] * 5, id="only replicated pods are avoided"),
        pytest.param(
            owned("ReplicationController", "1", controller=False), [100] * 5, id="only an owner"
        ),
        pytest.param(make_pod(), [100] * 5, id="on its own"),
    ],
)
def test_score(pod: Pod, scores: list[int]) -> None:
    plugin = NodePreferAvoidPods()

    assert plugin.score_rows(CycleState(), pod, TABLE, ALL).tolist() == scores


def test_nodes_that_change_are_read_again() -> None:
    writer, plugin = TableWriter(NodeTable()), NodePreferAvoidPods()
    pod = owned("ReplicaSet", "2")

    def scores() -> list[int]:
        points: list[int] = plugin.score_rows(CycleState(), pod, writer.table, ALL).tolist()
        return points

    writer.set_node(make_node("a"))
    writer.set_node(make_node("b"))
    assert scores() == [100, 100]
    writer.set_node(avoiding("b", annotation(("ReplicaSet", "2"))))
    assert scores() == [100, 0]
    writer.set_node(avoiding("a", annotation(("ReplicaSet", "2"), ("ReplicaSet", "3"))))
    writer.set_node(avoiding("b", annotation(("ReplicaSet", "3"))))
    assert scores() == [0, 100]
    writer.remove_node("a")
    assert scores() == [100, 100]


def test_conformance() -> None:
    pods = [owned("ReplicationController", "1"), owned("ReplicaSet", "2"), make_pod()]
    check_conformance(NodePreferAvoidPods, pods, TABLE)
