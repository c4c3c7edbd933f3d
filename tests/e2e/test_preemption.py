"""Preemption: pods of lower priority are deleted gracefully for those of higher priority."""

import time

import pytest

from tests.rig.live.client import Tree
from tests.rig.live.cluster import ClusterUnderTest, condition
from tests.rig.live.follower import Key

GRACE_S = 3


@pytest.fixture
def high(cluster: ClusterUnderTest) -> str:
    """The name of a priority class that may preempt."""
    name = f"{cluster.namespace}-high"
    cluster.make("PriorityClass", name, value=1000)
    return name


def wait_leaving(cluster: ClusterUnderTest, name: str) -> Tree:
    """Wait until the pod is terminating, and return it."""

    def look(pods: dict[Key, Tree]) -> Tree:
        pod = pods.get((cluster.namespace, name), {})
        return pod if "deletionTimestamp" in pod.get("metadata", {}) else {}

    return cluster.pods.wait(look, f"pod {name} is terminating")


def test_a_victim_has_its_grace_period(cluster: ClusterUnderTest, high: str) -> None:
    cluster.node("a", room={"cpu": "1"})
    cluster.start_scheduler()
    cluster.pod("victim", {"cpu": "1"}, terminationGracePeriodSeconds=GRACE_S)
    assert cluster.wait_bound("victim") == "a"

    cluster.pod("vip", {"cpu": "1"}, priorityClassName=high)
    leaving = wait_leaving(cluster, "victim")
    began = time.monotonic()

    assert leaving["metadata"]["deletionGracePeriodSeconds"] == GRACE_S
    assert "preempting" in condition(leaving, "DisruptionTarget", "True")

    def is_nominated(pods: dict[Key, Tree]) -> bool:
        status = pods[cluster.namespace, "vip"].get("status") or {}
        return status.get("nominatedNodeName") == "a"

    cluster.pods.wait(is_nominated, "the pod is nominated")
    assert cluster.node_of("vip") == ""
    cluster.wait_gone("victim")
    assert cluster.wait_bound("vip") == "a"
    assert time.monotonic() - began >= GRACE_S - 1  # the API counts in whole seconds


def test_the_fewest_and_least_important_victims_are_chosen(
    cluster: ClusterUnderTest, high: str
) -> None:
    low = f"{cluster.namespace}-low"
    cluster.make("PriorityClass", low, value=-10)
    cluster.node("a", room={"cpu": "2"})
    cluster.node("b", room={"cpu": "2"})
    cluster.pod("low", {"cpu": "1"}, priorityClassName=low, nodeName="a")
    cluster.pod("a-middle", {"cpu": "1"}, nodeName="a")
    cluster.pod("b-middle", {"cpu": "1"}, nodeName="b")
    cluster.pod("b-other", {"cpu": "1"}, nodeName="b")
    cluster.start_scheduler()

    cluster.pod("vip", {"cpu": "1"}, priorityClassName=high)

    assert cluster.wait_bound("vip") == "a"
    cluster.wait_gone("low")
    names = {name for namespace, name in cluster.pods.objects if namespace == cluster.namespace}
    assert names == {"vip", "a-middle", "b-middle", "b-other"}


def test_disruption_budgets_are_spared(cluster: ClusterUnderTest, high: str) -> None:
    cluster.node("a", room={"cpu": "1"})
    cluster.node("b", room={"cpu": "1"})
    selector = {"matchLabels": {"app": "guarded"}}
    cluster.make("PodDisruptionBudget", "guard", spec={"minAvailable": 1, "selector": selector})
    cluster.pod("guarded", {"cpu": "1"}, {"app": "guarded"}, nodeName="a")
    cluster.pod("free", {"cpu": "1"}, nodeName="b")
    cluster.start_scheduler()

    cluster.pod("vip", {"cpu": "1"}, priorityClassName=high)

    assert cluster.wait_bound("vip") == "b"
    assert cluster.node_of("guarded") == "a"


def test_a_pod_with_preemption_policy_never_waits(cluster: ClusterUnderTest) -> None:
    polite = f"{cluster.namespace}-polite"
    cluster.make("PriorityClass", polite, value=1000, preemptionPolicy="Never")
    cluster.node("a", room={"cpu": "1"})
    cluster.pod("there", {"cpu": "1"}, nodeName="a")
    cluster.start_scheduler()

    cluster.pod("polite", {"cpu": "1"}, priorityClassName=polite)

    cluster.wait_refused("polite", "Insufficient cpu")
    assert cluster.node_of("there") == "a"
    assert "deletionTimestamp" not in cluster.pods.objects[cluster.namespace, "there"]["metadata"]
