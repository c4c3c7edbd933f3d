"""Hints of the plugins that look at a node, or at the pod alone."""

from typing import Any

import pytest

from bayplan.api.affinity import NodeAffinity as Affinity
from bayplan.api.selectors import NodeSelector, NodeSelectorTerm, Requirement
from bayplan.errors import InputError
from bayplan.framework import Hint, Plugin
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_declared_features import NodeDeclaredFeatures
from bayplan.plugins.node_name import NodeName
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.scheduling_gates import SchedulingGates
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.testing.builders import ask_plugin, make_handle, make_node, make_object, make_pod

QUEUE, SKIP, NEVER = Hint.QUEUE, Hint.SKIP, None
POD = make_pod("waiting")
OTHER = make_pod("other", node_name="a")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(POD, QUEUE, id="its own gates went"),
        pytest.param(OTHER, SKIP, id="the gates of another pod went"),
    ],
)
def test_scheduling_gates(changed: Any, expected: Hint) -> None:
    event = "UnschedulablePod/UpdatePodSchedulingGatesEliminated"

    assert ask_plugin(SchedulingGates(), event, POD, changed, changed) is expected


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param("Node/Add", None, {}, QUEUE, id="an open node comes"),
        pytest.param("Node/Add", None, {"unschedulable": True}, SKIP, id="a closed node comes"),
        pytest.param("Node/UpdateNodeTaint", {"unschedulable": True}, {}, QUEUE, id="opened"),
        pytest.param("Node/UpdateNodeTaint", {}, {}, SKIP, id="it was open before"),
        pytest.param("Node/UpdateNodeLabel", {}, {}, NEVER, id="labels are not its affair"),
    ],
)
def test_node_unschedulable_after_node_change(
    event: str, old: dict[str, Any] | None, new: dict[str, Any], expected: Hint | None
) -> None:
    before = None if old is None else make_node(**old)

    assert ask_plugin(NodeUnschedulable(), event, POD, before, make_node(**new)) is expected


@pytest.mark.parametrize(
    ("plugin", "name", "toleration", "expected"),
    [
        pytest.param(
            NodeUnschedulable(), "waiting", "node.kubernetes.io/unschedulable", QUEUE, id="cordons"
        ),
        pytest.param(NodeUnschedulable(), "waiting", "gpu", SKIP, id="of no use for cordons"),
        pytest.param(NodeUnschedulable(), "other", "", SKIP, id="another pod tolerates cordons"),
        pytest.param(TaintToleration(), "waiting", "gpu", QUEUE, id="any new toleration"),
        pytest.param(TaintToleration(), "other", "gpu", SKIP, id="another pod tolerates more"),
    ],
)
def test_after_toleration_change(
    plugin: Plugin, name: str, toleration: str, expected: Hint
) -> None:
    before, after = make_pod(name), make_pod(name, tolerations=[toleration])
    event = "UnschedulablePod/UpdatePodToleration"

    assert ask_plugin(plugin, event, POD, before, after) is expected


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param("Node/Add", None, [], QUEUE, id="comes without taints"),
        pytest.param("Node/Add", None, ["gpu:NoSchedule"], QUEUE, id="comes with a tolerated one"),
        pytest.param("Node/Add", None, ["x:NoExecute"], SKIP, id="comes with another one"),
        pytest.param(
            "Node/Add", None, ["x:PreferNoSchedule"], QUEUE, id="a soft taint does not block"
        ),
        pytest.param("Node/UpdateNodeTaint", ["x:NoSchedule"], [], QUEUE, id="loses it"),
        pytest.param("Node/UpdateNodeTaint", ["gpu:NoSchedule"], [], SKIP, id="was good before"),
        pytest.param("Node/UpdateNodeTaint", ["x:NoSchedule"], ["y:NoSchedule"], SKIP, id="still"),
    ],
)
def test_taint_toleration_after_node_change(
    event: str, old: list[str] | None, new: list[str], expected: Hint
) -> None:
    pod = make_pod("waiting", tolerations=["gpu"])
    before = None if old is None else make_node(taints=old)

    assert ask_plugin(TaintToleration(), event, pod, before, make_node(taints=new)) is expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param("Node/Add", QUEUE, id="every new node"),
        pytest.param("Node/UpdateNodeTaint", QUEUE, id="every change of taints"),
        pytest.param("Node/UpdateNodeLabel", NEVER, id="no other change"),
    ],
)
def test_node_name(event: str, expected: Hint | None) -> None:
    assert ask_plugin(NodeName(), event, POD, None, make_node()) is expected


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
UNREADABLE = {"matchExpressions": [{"key": "disk", "operator": "In"}]}


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param("Node/Add", None, "ssd", QUEUE, id="comes and matches"),
        pytest.param("Node/Add", None, "hdd", SKIP, id="comes and does not match"),
        pytest.param("Node/UpdateNodeLabel", "hdd", "ssd", QUEUE, id="matches now"),
        pytest.param("Node/UpdateNodeLabel", "ssd", "ssd", SKIP, id="matched before"),
        pytest.param("Node/UpdateNodeLabel", "ssd", "hdd", SKIP, id="matches no more"),
        pytest.param("Node/UpdateNodeTaint", "hdd", "hdd", QUEUE, id="taints wake it, hint or not"),
    ],
)
def test_node_affinity(event: str, old: str | None, new: str, expected: Hint) -> None:
    pod = make_pod("waiting", node_affinity=required(SSD))
    before = None if old is None else make_node(labels={"disk": old})
    after = make_node(labels={"disk": new})

    assert ask_plugin(NodeAffinity(), event, pod, before, after) is expected


@pytest.mark.parametrize(
    ("terms", "disk", "answer"),
    [
        pytest.param([UNREADABLE], "hdd", "raises", id="the unreadable term might have picked it"),
        pytest.param([UNREADABLE, SSD], "ssd", QUEUE, id="another term picks it"),
        pytest.param([UNREADABLE, SSD], "hdd", "raises", id="no other term picks it"),
        pytest.param([{}, SSD], "hdd", SKIP, id="an empty term picks nothing, and is no fault"),
    ],
)
def test_node_affinity_with_terms_that_cannot_be_read(
    terms: list[dict[str, Any]], disk: str, answer: Any
) -> None:
    pod = make_pod("waiting", node_affinity=required(*terms))
    node = make_node(labels={"disk": disk})

    if answer == "raises":
        with pytest.raises(InputError, match="matchExpressions"):
            ask_plugin(NodeAffinity(), "Node/Add", pod, None, node)
    else:
        assert ask_plugin(NodeAffinity(), "Node/Add", pod, None, node) is answer


def test_node_outside_the_affinity_of_the_profile_is_no_help() -> None:
    condition = Requirement(key="pool", operator="In", values=("a",))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(condition,)),))
    plugin = NodeAffinity(Affinity(required_during_scheduling_ignored_during_execution=selector))

    inside, outside = make_node(labels={"pool": "a"}), make_node(labels={"pool": "b"})

    assert ask_plugin(plugin, "Node/Add", POD, None, inside) is QUEUE
    assert ask_plugin(plugin, "Node/Add", POD, None, outside) is SKIP
    assert ask_plugin(plugin, "Node/UpdateNodeLabel", POD, outside, inside) is SKIP, (
        "whether the profile's affinity matched before is not asked, and the pod's own did"
    )


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(make_pod("o", node_name="a", host_ports=[80]), QUEUE, id="held the port"),
        pytest.param(make_pod("o", host_ports=[80]), SKIP, id="was on no node"),
        pytest.param(
            make_pod("o", host_ports=[80], nominated_node_name="a"), QUEUE, id="was nominated"
        ),
        pytest.param(make_pod("o", node_name="a", host_ports=[81]), SKIP, id="held another port"),
        pytest.param(make_pod("o", node_name="a", host_ports=["80/UDP"]), SKIP, id="protocol"),
        pytest.param(
            make_pod("o", node_name="a", host_ports=["10.0.0.1:80"]),
            QUEUE,
            id="any address clashes",
        ),
        pytest.param(make_pod("o", node_name="a"), SKIP, id="held no port"),
    ],
)
def test_node_ports(deleted: Any, expected: Hint) -> None:
    pod = make_pod("waiting", host_ports=[80])

    assert ask_plugin(NodePorts(), "AssignedPod/Delete", pod, deleted) is expected


def test_ports_on_different_addresses_do_not_clash() -> None:
    pod = make_pod("waiting", host_ports=["10.0.0.2:80"])
    deleted = make_pod("o", node_name="a", host_ports=["10.0.0.1:80"])

    assert ask_plugin(NodePorts(), "AssignedPod/Delete", pod, deleted) is SKIP


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, [], QUEUE, id="any new node"),
        pytest.param(["A"], ["A", "B"], QUEUE, id="declares more"),
        pytest.param(["A"], ["A"], SKIP, id="declares the same"),
    ],
)
def test_node_declared_features_after_node_change(
    old: list[str] | None, new: list[str], expected: Hint
) -> None:
    event = "Node/Add" if old is None else "Node/UpdateNodeDeclaredFeature"
    before = None if old is None else make_node(features=old)
    after = make_node(features=new)

    assert ask_plugin(NodeDeclaredFeatures(), event, POD, before, after) is expected


NEEDY = {"hostNetwork": True, "hostUsers": False}


@pytest.mark.parametrize(
    ("event", "name", "expected"),
    [
        pytest.param("UnschedulablePod/Update", "waiting", QUEUE, id="needs less now"),
        pytest.param("UnschedulablePod/Update", "other", SKIP, id="another pod needs less"),
        pytest.param("UnschedulablePod/UpdatePodLabel", "waiting", QUEUE, id="in any update"),
        pytest.param("AssignedPod/Add", "waiting", NEVER, id="but only in updates"),
    ],
)
def test_node_declared_features_after_pod_update(
    event: str, name: str, expected: Hint | None
) -> None:
    before, after = make_pod(name, spec=NEEDY), make_pod(name)

    assert ask_plugin(NodeDeclaredFeatures(), event, POD, before, after) is expected


def fit(*objects: Any, **args: Any) -> NodeResourcesFit:
    plugin = NodeResourcesFit(**args)
    plugin.handle = make_handle(objects=objects)
    return plugin


@pytest.mark.parametrize(
    ("wants", "old", "new", "expected"),
    [
        pytest.param(
            {"cpu": "2"}, None, {"cpu": "2"}, QUEUE, id="a node comes that is large enough"
        ),
        pytest.param({"cpu": "2"}, None, {"cpu": "1"}, SKIP, id="a node comes that is too small"),
        pytest.param({}, None, {"pods": 0}, SKIP, id="a node comes that takes no pods"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, {"cpu": "4"}, QUEUE, id="more of what it needs"),
        pytest.param(
            {"cpu": "1"}, {"cpu": "4"}, {"cpu": "2"}, SKIP, id="less, though it still fits"
        ),
        pytest.param(
            {"cpu": "1"}, {"memory": "1Gi"}, {"memory": "2Gi"}, SKIP, id="more of something else"
        ),
        pytest.param({"cpu": "1"}, {"pods": 1}, {"pods": 2}, QUEUE, id="room for one pod more"),
        pytest.param(
            {"cpu": "8"}, {"pods": 1}, {"pods": 2}, SKIP, id="room for a pod, but not this one"
        ),
    ],
)
def test_fit_after_node_change(
    wants: dict[str, Any], old: dict[str, Any] | None, new: dict[str, Any], expected: Hint
) -> None:
    event = "Node/Add" if old is None else "Node/UpdateNodeAllocatable"
    before = None if old is None else make_node(**old)
    pod = make_pod("waiting", **wants)

    assert ask_plugin(fit(), event, pod, before, make_node(**new)) is expected


GPU = "example.com/gpu"
BACKING = make_object("DeviceClass", "gpu", spec={"extendedResourceName": GPU})
PLAIN = make_object("DeviceClass", "gpu", spec={})


def test_ignored_resource_is_not_ignored_by_the_hint() -> None:
    pod = make_pod("waiting", requests={GPU: 1})

    assert ask_plugin(fit(ignored_resources=[GPU]), "Node/Add", pod, None, make_node()) is SKIP


@pytest.mark.parametrize(
    ("resource", "classes", "has", "expected"),
    [
        pytest.param(GPU, [BACKING], 0, QUEUE, id="a class stands in for it"),
        pytest.param(GPU, [PLAIN], 0, SKIP, id="the class names no resource"),
        pytest.param(GPU, [BACKING], 1, SKIP, id="the node has some, but too little"),
        pytest.param("deviceclass.resource.kubernetes.io/gpu", [PLAIN], 0, QUEUE, id="by its name"),
    ],
)
def test_fit_leaves_resources_to_classes_of_devices(
    resource: str, classes: list[Any], has: int, expected: Hint
) -> None:
    pod = make_pod("waiting", requests={resource: 2})
    node = make_node(extended={resource: has})

    assert ask_plugin(fit(*classes), "Node/Add", pod, None, node) is expected
    assert ask_plugin(fit(*classes), "Node/UpdateNodeAllocatable", pod, node, node) is expected


@pytest.mark.parametrize(
    ("old", "new", "asked", "expected"),
    [
        pytest.param(None, BACKING, {GPU: 1}, QUEUE, id="a class comes that names it"),
        pytest.param(None, BACKING, {GPU: 0}, QUEUE, id="asking for none is asking"),
        pytest.param(None, BACKING, {"a.com/x": 1}, SKIP, id="a class comes for something else"),
        pytest.param(
            None,
            PLAIN,
            {"deviceclass.resource.kubernetes.io/gpu": 1},
            QUEUE,
            id="class by its name",
        ),
        pytest.param(PLAIN, BACKING, {GPU: 1}, QUEUE, id="names it now"),
        pytest.param(BACKING, BACKING, {GPU: 1}, SKIP, id="named it before"),
        pytest.param(BACKING, PLAIN, {GPU: 1}, SKIP, id="names it no more"),
        pytest.param(
            PLAIN,
            BACKING,
            {"deviceclass.resource.kubernetes.io/gpu": 1},
            SKIP,
            id="its own name was there before",
        ),
    ],
)
def test_fit_after_device_class_event(
    old: Any, new: Any, asked: dict[str, int], expected: Hint
) -> None:
    action = "Add" if old is None else "Update"
    pod = make_pod("waiting", requests=asked)

    assert ask_plugin(fit(), f"resource.k8s.io/DeviceClass/{action}", pod, old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(make_pod("o", node_name="a"), None, QUEUE, id="a pod left a node"),
        pytest.param(make_pod("o"), None, SKIP, id="a pod left that was on no node"),
        pytest.param(
            make_pod("o", nominated_node_name="a"), None, QUEUE, id="a nominated pod left"
        ),
        pytest.param(
            make_pod("o", node_name="a", cpu="2"),
            make_pod("o", node_name="a", cpu="1"),
            QUEUE,
            id="a pod on a node needs less of it",
        ),
        pytest.param(
            make_pod("o", node_name="a", memory="2Gi"),
            make_pod("o", node_name="a", memory="1Gi"),
            SKIP,
            id="a pod on a node needs less of something else",
        ),
        pytest.param(make_pod("o", cpu="2"), make_pod("o", cpu="1"), SKIP, id="a waiting pod does"),
        pytest.param(
            make_pod("o", cpu="2", nominated_node_name="a"),
            make_pod("o", cpu="1", nominated_node_name="a"),
            SKIP,
            id="a nominated pod has no node yet",
        ),
        pytest.param(
            make_pod("waiting", memory="2Gi"), make_pod("waiting"), QUEUE, id="the pod itself does"
        ),
    ],
)
def test_fit_after_pod_event(old: Any, new: Any, expected: Hint) -> None:
    event = "AssignedPod/Delete" if new is None else "AssignedPod/UpdatePodScaleDown"
    pod = make_pod("waiting", cpu="1")

    assert ask_plugin(fit(), event, pod, old, new) is expected


def test_preemption_is_never_a_reason_of_its_own() -> None:
    assert ask_plugin(DefaultPreemption(), "AssignedPod/Delete", POD, OTHER) is SKIP
    assert ask_plugin(DefaultPreemption(), "Node/Add", POD, None, make_node()) is NEVER


@pytest.mark.parametrize(
    ("plugin", "event"),
    [
        pytest.param(
            SchedulingGates(), "UnschedulablePod/UpdatePodSchedulingGatesEliminated", id="gates"
        ),
        pytest.param(NodeUnschedulable(), "Node/Add", id="cordons"),
        pytest.param(TaintToleration(), "Node/Add", id="taints"),
        pytest.param(NodeAffinity(), "Node/Add", id="node affinity"),
        pytest.param(NodeDeclaredFeatures(), "Node/Add", id="features"),
        pytest.param(fit(), "Node/Add", id="resources"),
        pytest.param(fit(), "AssignedPod/Delete", id="resources of pods"),
    ],
)
def test_object_of_another_kind_is_an_error(plugin: Plugin, event: str) -> None:
    with pytest.raises(InputError, match="object of the event"):
        ask_plugin(plugin, event, POD, None, make_object("Service", "s"))
