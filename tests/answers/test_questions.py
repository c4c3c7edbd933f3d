"""Questions of a live page: what they answer, what they refuse, and which pods another configuration places anew."""

import json
from typing import Any

import pytest

from bayplan.answers.questions import MOST_NODES, answer_question
from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned
from tests.rig.scenarios import make_config

NODES = [make_node("a"), make_node("b")]
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
EXTENDER = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}


def ask(
    objects: list[Any], question: dict[str, Any], settings: Settings | None = None
) -> dict[str, Any]:
    return answer_question(objects, settings or Settings(seed=0), json.dumps(question).encode())


def try_other(objects: list[Any], **fields: Any) -> dict[str, Any]:
    """The answer to a question about a configuration with these fields."""
    return ask(objects, {"ask": "configuration", "text": json.dumps({**HEAD, **fields})})


def most_allocated() -> dict[str, Any]:
    """A profile that fills a node before it takes the next."""
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    return {"pluginConfig": [fit]}


def places(answer: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """By pod, its node before and after; "-" for none."""
    return {
        pod["name"]: (pod["was"]["node"] or "-", pod["now"]["node"] or "-")
        for pod in answer["pods"]
    }


def web(name: str = "web", **fields: Any) -> Pod:
    """A pod of a controller, on the node `a` unless told otherwise."""
    return owned(make_pod(name, **{"cpu": "1", "node_name": "a", **fields}))


def test_a_drained_node_gives_its_pods_to_the_others() -> None:
    answer = ask([*NODES, web()], {"ask": "drain", "node": "a"})

    assert places(answer) == {"web": ("a", "b")}
    assert answer["headline"] == "drain a: 1 moved; pending 0 → 0"


LOCAL_STORAGE = {"volumes": [{"name": "v", "emptyDir": {}}]}
BUDGET = make_object(
    "PodDisruptionBudget",
    "web",
    namespace="default",
    spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
)
FLAGS = [
    pytest.param("force", [make_pod("p", node_name="a")], id="a pod without a controller"),
    pytest.param("deleteEmptydirData", [web("p", spec=LOCAL_STORAGE)], id="a pod with an emptyDir"),
    pytest.param(
        "disableEviction", [web("p", labels={"app": "web"}), BUDGET], id="a pod that a budget keeps"
    ),
]


@pytest.mark.parametrize(("flag", "objects"), FLAGS)
def test_a_drain_stalls_without_the_flag_of_kubectl(flag: str, objects: list[Any]) -> None:
    flags = ["force", "deleteEmptydirData", "disableEviction"]
    others = {other: True for other in flags if other != flag}

    answer = ask([*NODES, *objects], {"ask": "drain", "node": "a", **others})

    assert (places(answer), answer["summary"]["stalls"]) == ({}, 1)


@pytest.mark.parametrize(("flag", "objects"), FLAGS)
def test_a_drain_goes_on_with_the_flag_of_kubectl(flag: str, objects: list[Any]) -> None:
    answer = ask([*NODES, *objects], {"ask": "drain", "node": "a", flag: True})

    assert (places(answer), answer["summary"]["stalls"]) == ({"p": ("a", "b")}, 0)


def test_added_nodes_take_the_pods_that_wait() -> None:
    objects = [make_node("a", cpu="4"), make_pod("there", cpu="4", node_name="a")]
    waits = make_pod("waits", cpu="4")

    answer = ask([*objects, waits], {"ask": "add-nodes", "node": "a", "number": 1})

    assert places(answer) == {"waits": ("-", "a-new-1")}


@pytest.mark.parametrize("number", [1, MOST_NODES])
def test_so_many_nodes_can_be_added(number: int) -> None:
    answer = ask(NODES[:1], {"ask": "add-nodes", "node": "a", "number": number})

    assert len(answer["nodes"]["added"]) == number


@pytest.mark.parametrize("number", [-1, 0, MOST_NODES + 1])
def test_another_number_of_nodes_is_refused(number: int) -> None:
    with pytest.raises(InputError, match=f"number: expected 1 to 1000 nodes; got {number}"):
        ask(NODES, {"ask": "add-nodes", "node": "a", "number": number})


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param(b"{", "question: Input data was truncated", id="no JSON"),
        pytest.param(b"{}", "question: Object missing required field `ask`", id="no question"),
        pytest.param(b'{"ask":"x"}', r"question: Invalid value 'x'", id="an unknown question"),
        pytest.param(b'{"ask":"drain"}', "question: .* field `node`", id="no node"),
        pytest.param(
            b'{"ask":"configuration","text":"kind: X"}',
            'configuration: kind: expected .*; got "X"',
            id="another document than a configuration",
        ),
    ],
)
def test_a_question_that_cannot_be_read_is_an_input_error(body: bytes, error: str) -> None:
    with pytest.raises(InputError, match=error):
        answer_question(NODES, Settings(), body)


def test_a_configuration_moves_the_pods_that_it_places_elsewhere() -> None:
    there = make_pod("there", cpu="1", node_name="a")

    answer = try_other([*NODES, there, web()], profiles=[most_allocated()])

    assert places(answer) == {"web": ("b", "a")}
    assert answer["headline"] == (
        "1 of 2 pods get another node; pending: 0 with the configuration in use, 0 with this one"
    )


def test_the_configuration_in_use_changes_nothing() -> None:
    there = make_pod("there", cpu="1", node_name="a")

    answer = try_other([*NODES, there, web()])

    assert answer["pods"] == []
    assert answer["headline"].startswith("0 of 2 pods get another node")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("p", cpu="1", node_name="b"), id="a pod without a controller"),
        pytest.param(
            owned(make_pod("p", cpu="1", node_name="b"), "logs", "DaemonSet"), id="a daemon"
        ),
        pytest.param(owned(make_pod("p", cpu="1", node_name="b"), "b", "Node"), id="a static pod"),
        pytest.param(web("p", node_name="b", status={"phase": "Succeeded"}), id="a finished pod"),
    ],
)
def test_a_pod_that_no_controller_would_place_anew_stays(pod: Pod) -> None:
    there = make_pod("there", cpu="1", node_name="a")

    # Placed anew with this configuration, it would go to the node of the other pod.
    answer = try_other([*NODES, there, pod], profiles=[most_allocated()])

    assert places(answer) == {}


@pytest.mark.parametrize(
    ("pod", "count"),
    [
        pytest.param(web("p"), 2, id="a pod that runs counts"),
        pytest.param(
            make_pod("p", node_name="a", terminating=True), 1, id="a pod that leaves does not count"
        ),
        pytest.param(
            web("p", status={"phase": "Succeeded"}), 1, id="a finished pod does not count"
        ),
    ],
)
def test_the_headline_counts_the_pods_that_are_there(pod: Pod, count: int) -> None:
    answer = try_other([*NODES, web(), pod])

    assert answer["headline"].startswith(f"0 of {count} pods get another node")


def test_a_pod_that_only_the_other_configuration_places_was_pending() -> None:
    off = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeAffinity"}]}}}
    choosy = web("choosy", node_selector={"disk": "fast"})

    answer = try_other([NODES[0], choosy], profiles=[off])

    assert places(answer) == {"choosy": ("-", "a")}
    assert answer["headline"] == (
        "0 of 1 pods get another node; pending: 1 with the configuration in use, 0 with this one"
    )


@pytest.mark.parametrize(
    "question",
    [
        pytest.param({"ask": "drain", "node": "a"}, id="a drain"),
        pytest.param({"ask": "add-nodes", "node": "a", "number": 1}, id="nodes to add"),
        pytest.param({"ask": "configuration", "text": json.dumps(HEAD)}, id="a configuration"),
    ],
)
def test_extenders_of_the_configuration_in_use_are_refused(question: dict[str, Any]) -> None:
    settings = Settings(config=make_config(extenders=[EXTENDER]))

    with pytest.raises(InputError, match="extenders: expected none"):
        ask(NODES, question, settings)


def test_extenders_of_the_other_configuration_are_refused() -> None:
    with pytest.raises(InputError, match="extenders: expected none"):
        try_other(NODES, extenders=[EXTENDER])
