"""Faults: the scheduler is killed, the API server is unreachable. No pod is lost, none is bound
twice."""

from collections import Counter

from tests.rig.live.client import Tree
from tests.rig.live.cluster import ClusterUnderTest, pod_tree
from tests.rig.live.follower import Key

AWAY_S = 6
RECOVERY_S = 120
"""Includes the backoff of clients that lost the API server."""
SLOWLY = {"qps": 150, "burst": 50}
"""Slows binding down, so that faults can be injected in the middle."""


def slowly(cluster: ClusterUnderTest) -> dict[str, object]:
    return {"clientConnection": {"kubeconfig": str(cluster.server.kubeconfig), **SLOWLY}}


def count_bound(cluster: ClusterUnderTest) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in list(cluster.pods.objects.values()))


def make_full_cluster(cluster: ClusterUnderTest, nodes: int, pods_per_node: int) -> int:
    """Nodes with room for exactly the created pods; returns the number of pods."""
    for number in range(nodes):
        cluster.node(f"n-{number}", room={"cpu": f"{pods_per_node * 10}m"})
    total = nodes * pods_per_node
    cluster.pods_like(pod_tree("", {"cpu": "10m"}), (f"p-{number}" for number in range(total)))
    return total


def check_all_bound_once(cluster: ClusterUnderTest, total: int, pods_per_node: int) -> None:
    """Check that every pod has a node, no node is overcommitted, and no pod ever had another node."""
    nodes = cluster.wait_all_bound(total, RECOVERY_S)
    assert len(nodes) == total
    assert max(Counter(nodes.values()).values()) == pods_per_node
    assert cluster.bindings.moved() == {}


def test_a_scheduler_is_killed_in_the_middle_of_a_thousand_pods(cluster: ClusterUnderTest) -> None:
    total = make_full_cluster(cluster, nodes=10, pods_per_node=100)
    first = cluster.start_scheduler(**slowly(cluster))
    cluster.wait_all_bound(200)

    first.kill()
    bound = count_bound(cluster)
    cluster.start_scheduler()

    assert 200 <= bound < total
    check_all_bound_once(cluster, total, 100)


def test_the_api_server_is_restarted(cluster: ClusterUnderTest) -> None:
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


def test_changes_during_a_restart_of_the_scheduler_are_seen(cluster: ClusterUnderTest) -> None:
    """After a restart it has the cluster from the API server alone: nodes and pods deleted and
    added."""
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
