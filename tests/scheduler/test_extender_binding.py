"""Extenders that choose victims, bind, and get whole objects."""

from typing import Any

import pytest

from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.sourced import keeping_sources
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_pod
from bayplan.testing.extenders import FakeExtender
from tests.scheduler.extender_bench import DEAD, GPU, NODES, Bench

PREEMPT = {"preemptVerb": "preempt", "nodeCacheCapable": True}
BIND = {"bindVerb": "bind"}


# Preemption

LOW = make_pod("low", uid="low", cpu="4", node_name="a", priority=1)
LOWER = make_pod("lower", uid="lower", cpu="4", node_name="b", priority=0)
HIGH = make_pod("high", uid="high", cpu="4", priority=9)
TWO_NODES = (NODES[0], NODES[1], LOW, LOWER)


def meta(**victims: str) -> dict[str, Any]:
    """An answer of the preempt verb: one victim per node, by uid; none when empty."""
    nodes = {
        node: {"Pods": [{"UID": uid}] if uid else [], "NumPDBViolations": 0}
        for node, uid in victims.items()
    }
    return {"NodeNameToMetaVictims": nodes}


def test_an_extender_chooses_among_the_candidates() -> None:
    fake = FakeExtender(preempt=meta(a="low"))
    bench = Bench(*TWO_NODES, extenders=[(PREEMPT, fake)])

    attempt = bench.place(HIGH)

    assert attempt.nominated_node_name == "a", "b would have cost less"
    sent = fake.asked[0].args["NodeNameToMetaVictims"]
    assert sent == meta(a="low", b="lower")["NodeNameToMetaVictims"]
    assert bench.cluster.get("Pod", "default", "low") is None


def test_without_an_interested_extender_the_cheapest_is_chosen() -> None:
    fake = FakeExtender(preempt=meta(a="low"))
    managed = {**PREEMPT, "managedResources": [{"name": GPU}]}
    bench = Bench(*TWO_NODES, extenders=[(managed, fake)])

    assert bench.place(HIGH).nominated_node_name == "b"
    assert fake.asked == []


def test_one_extender_after_the_other_is_asked() -> None:
    first, second = FakeExtender(preempt=meta(a="low")), FakeExtender(preempt=meta())
    bench = Bench(*TWO_NODES, extenders=[(PREEMPT, first), (PREEMPT, second)])

    attempt = bench.place(HIGH)

    assert list(second.asked[0].args["NodeNameToMetaVictims"]) == ["a"]
    assert attempt.nominated_node_name is None
    assert attempt.message.endswith("preemption: no candidate node for preemption")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(DEAD, str(DEAD), id="dead"),
        pytest.param(meta(a=""), 'expected at least one victim pod on node "a"', id="no victim"),
        pytest.param(meta(a="lower"), "but the pod is not found on that node", id="not there"),
    ],
)
def test_an_extender_that_fails_to_preempt(answer: Any, text: str) -> None:
    strict = Bench(*TWO_NODES, extenders=[(PREEMPT, FakeExtender(preempt=answer))])
    ignorable = {**PREEMPT, "ignorable": True}
    lenient = Bench(*TWO_NODES, extenders=[(ignorable, FakeExtender(preempt=answer))])

    attempt = strict.place(HIGH)
    assert text in attempt.message
    assert strict.pod("low").node_name == "a"
    assert strict.pod("lower").node_name == "b"

    attempt = lenient.place(HIGH)
    expected = None if answer == meta(a="") else "b"
    assert attempt.nominated_node_name == expected


# Bind


class Unbound(MemoryCluster):
    """A cluster that notices a Bind plugin."""

    def bind(self, pod: Any, node_name: str) -> None:
        raise AssertionError("bound by the plugin")


def test_an_extender_binds_before_the_plugins() -> None:
    fake = FakeExtender(bind={})
    bench = Bench(*NODES, extenders=[(BIND, fake)], cluster=Unbound())

    attempt = bench.place(make_pod("p"))

    assert attempt.outcome is Outcome.BOUND
    assert fake.asked[0].args["Node"] == attempt.node_name
    assert bench.part_of("p") == "assumed", "until the cluster says so"


def test_a_cluster_in_memory_is_told_what_an_extender_bound() -> None:
    cluster = MemoryCluster()
    bench = Bench(
        *NODES,
        extenders=[(BIND, FakeExtender(bind={}))],
        cluster=cluster,
        bound_by_extender=cluster.bind,
    )

    attempt = bench.place(make_pod("p"))

    assert bench.pod("p").node_name == attempt.node_name
    assert bench.part_of("p") == "bound"


def test_pods_that_the_binder_does_not_care_for_are_bound_by_plugins() -> None:
    fake = FakeExtender(bind={})
    managed = {**BIND, "managedResources": [{"name": GPU}]}
    bench = Bench(*NODES, extenders=[(managed, fake)])

    assert bench.place(make_pod("p")).outcome is Outcome.BOUND
    assert bench.part_of("p") == "bound"
    assert fake.asked == []


def test_a_binding_that_fails_is_undone() -> None:
    fake = FakeExtender(bind={"Error": "node is gone"})
    bench = Bench(*NODES, extenders=[(BIND, fake)])

    attempt = bench.place(make_pod("p"))

    assert (attempt.outcome, attempt.message) == (Outcome.ERROR, "node is gone")
    assert bench.part_of("p") == "backoff"


def test_an_ignorable_binder_that_fails_leaves_it_to_the_plugins() -> None:
    ignorable = {**BIND, "ignorable": True}
    bench = Bench(*NODES, extenders=[(ignorable, FakeExtender(bind=DEAD))])

    bench.place(make_pod("p"))

    assert bench.part_of("p") == "bound"


# Whole objects


WHOLE_NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "a", "uid": "node-a"},
    "spec": {"providerID": "cloud://a"},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"kernelVersion": "6.1"},
        "allocatable": {"cpu": "1", "pods": "10"},
    },
}


def whole_pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "app:1",
        "command": ["run"],
        "env": [{"name": "A", "value": "1"}],
        "resources": {"requests": {"cpu": "1"}},
    }
    more = {"restartPolicy": "Never", "serviceAccountName": "robot", "containers": [container]}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {**more, **spec}}


def with_sources(*trees: dict[str, Any]) -> list[Any]:
    with keeping_sources():
        return [decode_object(tree) for tree in trees]


def without_versions(tree: dict[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in tree["metadata"].items() if k != "resourceVersion"}
    return {**{k: v for k, v in tree.items() if k != "status"}, "metadata": metadata}


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_extenders_are_sent_whole_objects(verb: str) -> None:
    fake = FakeExtender(filter=lambda args: {"Nodes": args["Nodes"]}, prioritize=[])
    config = {f"{verb}Verb": verb, **({"weight": 1} if verb == "prioritize" else {})}
    node, other, pod = with_sources(
        WHOLE_NODE, {**WHOLE_NODE, "metadata": {"name": "b"}}, whole_pod("p")
    )
    bench = Bench(node, other, extenders=[(config, fake)])

    assert bench.place(pod).outcome is Outcome.BOUND

    sent = fake.asked[0].args
    assert without_versions(sent["Pod"]) == without_versions(whole_pod("p"))
    first = sent["Nodes"]["items"][0]
    assert without_versions(first) == without_versions(WHOLE_NODE)
    assert first["status"] == WHOLE_NODE["status"]


def test_extenders_are_sent_whole_victims() -> None:
    fake = FakeExtender(preempt={"NodeNameToMetaVictims": {}})
    node, low, high = with_sources(
        WHOLE_NODE, whole_pod("low", nodeName="a"), whole_pod("high", priority=9)
    )
    bench = Bench(node, low, extenders=[({"preemptVerb": "preempt"}, fake)])

    bench.place(high)

    sent = fake.asked[0].args
    victims = sent["NodeNameToVictims"]["a"]["Pods"]
    assert [without_versions(victim) for victim in victims] == [
        without_versions(whole_pod("low", nodeName="a"))
    ]
    assert without_versions(sent["Pod"]) == without_versions(whole_pod("high", priority=9))
