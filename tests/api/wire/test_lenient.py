"""Lenient: fields that cannot be read are dropped, and the rest of the object counts."""

from typing import Any

import msgspec
import pytest

from bayplan.api.wire.kinds import KINDS
from bayplan.api.wire.lenient import MAX_FAULTS, LenientObject, decode_leniently

Tree = dict[str, Any]


def running(*, metadata: Tree | None = None, **spec: Any) -> Tree:
    resources = {"requests": {"cpu": "2", "example.com/gpu": "1"}}
    container = {"name": "main", "resources": resources, "ports": [{"hostPort": 80}]}
    meta = {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "web"}}
    return {
        "metadata": {**meta, **(metadata or {})},
        "spec": {"nodeName": "a", "priority": 7, "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


def read(tree: Any, kind: str = "Pod") -> LenientObject:
    return decode_leniently(msgspec.json.encode(tree), KINDS[kind])


TERM = {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Near"}]}}
AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [TERM]}}
SPREAD = {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        pytest.param(
            running(tolerations=[{"key": "k", "operator": "Like"}]),
            "spec.tolerations[0].operator",
            id="an operator that is unknown",
        ),
        pytest.param(running(tolerations="all"), "spec.tolerations", id="a text, not a list"),
        pytest.param(running(affinity=AFFINITY), "spec.affinity.nodeAffinity", id="deep inside"),
        pytest.param(
            running(topologySpreadConstraints=[SPREAD]),
            "spec.topologySpreadConstraints[0].maxSkew",
            id="a number out of range",
        ),
        pytest.param(
            running(overhead={"example.com/fpga": "-1"}),
            "spec.overhead.example.com/fpga",
            id="a name with dots",
        ),
        pytest.param(
            running(metadata={"annotations": {"a.b/c": 5}}),
            "metadata.annotations",
            id="an annotation",
        ),
        pytest.param(
            {**running(), "status": {"phase": "Running", "conditions": [{"type": 3}]}},
            "status.conditions[0].type",
            id="a condition",
        ),
    ],
)
def test_running_pod_counts_for_what_is_understood(tree: Tree, path: str) -> None:
    pod, faults = read(tree)

    assert pod is not None
    assert (pod.node_name, pod.priority, pod.labels) == ("a", 7, {"app": "web"})
    assert pod.requests["cpu"] == 2000
    assert pod.requests["example.com/gpu"] == 1
    assert [port.port for port in pod.spec.host_ports] == [80]
    assert pod.status.phase == "Running"
    assert faults[0].startswith(path)


def test_only_the_faulty_request_is_dropped() -> None:
    tree = running()
    tree["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "two"

    pod, faults = read(tree)

    assert pod is not None
    assert pod.requests.get("cpu", 0) == 0
    assert pod.requests["example.com/gpu"] == 1
    assert len(faults) == 1


def test_several_faults_are_all_named() -> None:
    pod, faults = read(running(priority="high", tolerations="all", schedulerName=5))

    assert pod is not None
    assert len(faults) == 3


def test_object_without_faults_has_none() -> None:
    pod, faults = read(running())

    assert pod is not None
    assert faults == []


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(running(metadata={"name": 5}), id="a name that is a number"),
        pytest.param(running(metadata={"uid": {}}), id="a uid that is an object"),
        pytest.param({**running(), "metadata": []}, id="metadata that is a list"),
        pytest.param([], id="a list"),
    ],
)
def test_object_without_identity_is_not_read(tree: Any) -> None:
    obj, faults = read(tree)

    assert obj is None
    assert faults


def test_pending_pod_whose_spec_has_a_fault_is_not_read() -> None:
    assert read(running(nodeName="", affinity=AFFINITY)).obj is None


def test_pending_pod_whose_status_has_a_fault_is_read() -> None:
    assert read({**running(nodeName=""), "status": {"phase": 5}}).obj is not None


def test_object_with_very_many_faults_is_not_read() -> None:
    containers = [{"name": i} for i in range(MAX_FAULTS + 1)]

    obj, faults = read(running(containers=containers))

    assert obj is None
    assert len(faults) == MAX_FAULTS


def test_node_is_read_without_a_taint_of_an_unknown_effect() -> None:
    taints = [{"key": "a", "effect": "Shrug"}, {"key": "b", "effect": "NoSchedule"}]
    status = {"allocatable": {"cpu": "4", "memory": "much"}}
    tree = {"metadata": {"name": "n"}, "spec": {"taints": taints}, "status": status}

    node, _ = read(tree, "Node")

    assert node is not None
    assert [taint.key for taint in node.taints] == ["b"]
    assert node.allocatable == {"cpu": 4000}
