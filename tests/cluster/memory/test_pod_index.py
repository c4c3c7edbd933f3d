"""Pods by the node that they are on or wait for."""

import pytest

from bayplan.api.pod import Pod
from bayplan.cluster.memory.pod_index import PodIndex
from bayplan.testing.builders import make_pod


def names(pods: list[Pod]) -> list[str]:
    return [pod.name for pod in pods]


@pytest.fixture(params=[False, True], ids=["asked at the end", "asked before and at the end"])
def is_asked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def make_index(pods: list[Pod], is_asked: bool) -> PodIndex:
    index = PodIndex(pods)
    if is_asked:
        index.on_node("a")
    return index


def test_pods_of_a_node_are_in_the_order_in_which_they_came(is_asked: bool) -> None:
    first, second = make_pod("first"), make_pod("second")
    index = make_index([first, second], is_asked)

    index.add(second.with_node("a"))
    index.add(first.with_node("a"))

    assert names(index.on_node("a")) == ["first", "second"]


def test_a_pod_leaves_its_node_when_it_is_removed(is_asked: bool) -> None:
    pods = [make_pod("stays", node_name="a"), make_pod("goes", node_name="a")]
    index = make_index(pods, is_asked)

    index.remove(make_pod("goes"))

    assert names(index.on_node("a")) == ["stays"]
    index.remove(make_pod("stays", node_name="a"))
    assert index.on_node("a") == []


def test_a_pod_that_names_a_node_waits_for_it() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    index = PodIndex([make_pod("daemon", node_affinity=affinity)])

    assert names(index.on_node("a")) == ["daemon"]
