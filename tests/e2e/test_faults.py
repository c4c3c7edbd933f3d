"""Faults: the scheduler is killed, the API server goes away. No pod is lost, none is bound twice."""

from collections import Counter

from bayplan.testing.live.client import Tree
from bayplan.testing.live.cluster import Cluster, pod_tree
from bayplan.testing.live.follower import Key

AWAY_S = 20
RECOVERY_S = 120
"""Whoever lost the API server looks for it less and less often, as clients of Kubernetes do."""
SLOWLY = {"qps": 150, "burst": 50}
"""So that there is a middle in which something can happen."""


def slowly(cluster: Cluster) -> dict[str, object]:
    return {"clientConnection": {"kubeconfig": str(cluster.server.kubeconfig), **SLOWLY}}


def count_bound(cluster: Cluster) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in list(cluster.pods.objects.values()))


def make_full_cluster(cluster: Cluster, nodes: int, pods_per_node: int) -> int:
    """Nodes that hold just the pods that are made, and not one more; returns the number of pods."""
    for number in range(nodes):
        cluster.node(f"n-{number}", room={"cpu": f"{pods_per_node * 10}m"})
    total = nodes * pods_per_node
    cluster.pods_like(pod_tree("", {"cpu": "10m"}), (f"p-{number}" for number in range(total)))
    return total


def check_all_bound_once(cluster: Cluster, total: int, pods_per_node: int) -> None:
    """Every pod has a node, no node has more than fit, and no pod ever had another node."""
    nodes = cluster.wait_all_bound(total, RECOVERY_S)
    assert len(nodes) == total
    assert max(Counter(nodes.values()).values()) == pods_per_node
    assert cluster.bindings.moved() == {}


def test_a_scheduler_is_killed_in_the_middle_of_a_thousand_pods(cluster: Cluster) -> None:
    total = make_full_cluster(cluster, nodes=10, pods_per_node=100)
    first = cluster.start_scheduler(**slowly(cluster))
    cluster.wait_all_bound(200)

    first.kill()
    bound = count_bound(cluster)
    cluster.start_scheduler()

    assert 200 <= bound < total
    check_all_bound_once(cluster, total, 100)


def test_the_api_server_goes_away_and_comes_back(cluster: Cluster) -> None:
    total = make_full_cluster(cluster, nodes=4, pods_per_node=100)
    scheduler = cluster.start_scheduler(**slowly(cluster))
    cluster.wait_all_bound(100)

    cluster.server.kill_api_server()
    assert scheduler.wait(AWAY_S) is None, scheduler.last_words()
    bound = count_bound(cluster)
    cluster.server.start_api_server()

    assert 100 <= bound < total
    check_all_bound_once(cluster, total, 100)
    cluster.node("new")
    cluster.pod("late", nodeSelector={"kubernetes.io/hostname": "new"})
    assert cluster.wait_bound("late") == "new"


def test_what_changes_while_the_scheduler_is_away_is_seen(cluster: Cluster) -> None:
    """Restarted, it knows the cluster from the API server alone: nodes gone and new, pods gone and new."""
    cluster.node("old", room={"cpu": "1"})
    first = cluster.start_scheduler()
    cluster.pod("there", {"cpu": "1"})
    cluster.wait_bound("there")
    cluster.pod("waits", {"cpu": "1"})
    cluster.wait_refused("waits", "Insufficient cpu")
    first.kill()

    cluster.client.delete(cluster.path("Node", "old"))
    cluster.wait_gone("there")
    cluster.node("new", room={"cpu": "2"})
    cluster.pod("placed", {"cpu": "1"}, nodeName="new")
    cluster.pod("more", {"cpu": "1"})
    cluster.start_scheduler()

    def is_settled(pods: dict[Key, Tree]) -> set[str]:
        names = {
            name
            for (namespace, name), pod in pods.items()
            if namespace == cluster.namespace and pod["spec"].get("nodeName") == "new"
        }
        return names if len(names) == 2 else set()

    placed = cluster.pods.wait(is_settled, "the node is full")
    (left,) = {"waits", "more"} - placed
    cluster.wait_refused(left, "0/1 nodes are available: 1 Insufficient cpu.")
