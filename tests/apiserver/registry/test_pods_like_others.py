"""Pods with a spec that was sent before: checked once, and otherwise like the first."""

from typing import Any

import pytest

from bayplan.framework.handle import PodEvent
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RANGES = "/api/v1/namespaces/default/limitranges"
EVENTS = "/api/v1/namespaces/default/events"
NODES = "/api/v1/nodes"


def made(api: ServerInThread, name: str, **more: Any) -> dict[str, Any]:
    tree = pod_tree(name)
    tree["metadata"] |= more
    return api.make(PODS, tree)


def same_parts(pod: dict[str, Any]) -> dict[str, Any]:
    return {key: pod[key] for key in ("spec", "status")}


def test_a_pod_like_another_has_its_spec_and_its_own_metadata(api: ServerInThread) -> None:
    first, second = made(api, "a"), made(api, "b", labels={"app": "web"})

    assert same_parts(first) == same_parts(second)
    assert second["metadata"]["labels"] == {"app": "web"}
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_pod_like_another_gets_what_applies_now(api: ServerInThread) -> None:
    made(api, "a")
    api.make(CLASSES, {"metadata": {"name": "high"}, "value": 7, "globalDefault": True})
    limit = {"type": "Container", "default": {"cpu": "3"}}
    api.make(RANGES, {"metadata": {"name": "r"}, "spec": {"limits": [limit]}})

    spec = made(api, "b")["spec"]

    assert (spec["priority"], spec["priorityClassName"]) == (7, "high")
    assert spec["containers"][0]["resources"]["limits"]["cpu"] == "3"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission "
            "controller computed 0 from the given PriorityClass name",
            id="no class",
        ),
        pytest.param(
            {"priority": 5, "priorityClassName": "high"},
            "the integer value of priority (5) must not be provided in pod spec; priority admission "
            "controller computed 7 from the given PriorityClass name",
            id="of another class",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority "
            "admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="a policy without a class",
        ),
        pytest.param({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}, "", id="equal"),
        pytest.param({"priority": 7, "priorityClassName": "high"}, "", id="that of the class"),
    ],
)
def test_a_pod_has_the_priority_of_its_class(
    api: ServerInThread, spec: dict[str, Any], message: str
) -> None:
    api.make(CLASSES, {"metadata": {"name": "high"}, "value": 7})

    answer = api.post(PODS, pod_tree("p", **spec))

    if not message:
        assert answer.status == 201
        return
    assert (answer.status, answer.tree["reason"]) == (403, "Forbidden")
    assert answer.tree["message"] == f'pods "p" is forbidden: {message}'


def test_label_keys_are_those_of_the_pod_itself(api: ServerInThread) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["rev"],
    }
    found = []
    for name, rev in (("a", "1"), ("b", "2")):
        tree = pod_tree(name, topologySpreadConstraints=[spread])
        tree["metadata"]["labels"] = {"app": "web", "rev": rev}
        (constraint,) = api.make(PODS, tree)["spec"]["topologySpreadConstraints"]
        found += constraint["labelSelector"]["matchExpressions"]

    assert [expression["values"] for expression in found] == [["1"], ["2"]]


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        pytest.param({"name": "B_"}, 422, id="an invalid name"),
        pytest.param({"labels": {"a b": "c"}}, 422, id="an invalid label"),
        pytest.param({"labels": 3}, 400, id="labels that are not a map"),
        pytest.param({"name": "a"}, 409, id="a name that is taken"),
        pytest.param({"labels": None}, 201, id="labels that are null"),
    ],
)
def test_the_metadata_of_a_pod_like_another_is_checked(
    api: ServerInThread, metadata: dict[str, Any], code: int
) -> None:
    made(api, "a")
    tree = pod_tree("b")
    tree["metadata"] |= metadata

    assert api.post(PODS, tree).status == code


def test_pods_like_one_another_are_placed_each_on_its_node(api: ServerInThread) -> None:
    api.make(NODES, node_tree("x"), node_tree("y"))
    for name, node in (("a", "x"), ("b", "y"), ("c", "x")):
        made(api, name)
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        api.make(f"{PODS}/{name}/binding", body)

    api.settle()

    pods = api.within(lambda server: [*server.plane.cluster.list("Pod")])
    assert [(pod.name, pod.node_name) for pod in pods] == [("a", "x"), ("b", "y"), ("c", "x")]
    assert [pod.status.phase for pod in pods] == ["Running"] * 3
    assert len({id(pod.spec) for pod in pods}) == 1


def test_events_of_scheduler_and_kubelet_at_one_moment_have_names_of_their_own(
    api: ServerInThread,
) -> None:
    api.make(NODES, node_tree("x"))
    tree = pod_tree("a")
    tree["spec"]["nodeName"] = "x"
    api.make(PODS, tree)
    api.settle()  # the clock stands still
    kubelets = len(api.get(EVENTS).names)

    def tell(server: Any) -> None:
        pod = server.plane.cluster.get("Pod", "default", "a")
        for reason in ("One", "Two", "Three", "Four"):
            server.plane.cluster.record_event(PodEvent(pod, "Normal", reason, "Binding", "said"))

    api.within(tell)

    assert kubelets == 3
    assert len(api.get(EVENTS).names) == kubelets + 4
