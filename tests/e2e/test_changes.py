"""Changes of nodes and pods while other pods are pending."""

from tests.rig.live.cluster import ClusterUnderTest

TAINT = {"key": "broken", "value": "yes", "effect": "NoSchedule"}


def test_a_taint_is_added_while_pods_wait(cluster: ClusterUnderTest) -> None:
    cluster.node("a", room={"cpu": "1"})
    cluster.start_scheduler()
    cluster.pod("first", {"cpu": "1"})
    cluster.wait_bound("first")
    for number in range(3):
        cluster.pod(f"waits-{number}", {"cpu": "300m"})
        cluster.wait_refused(f"waits-{number}", "Insufficient cpu")

    cluster.client.patch(cluster.path("Node", "a"), {"spec": {"taints": [TAINT]}})
    cluster.client.delete(cluster.path("Pod", "first"), gracePeriodSeconds=0)
    for number in range(3):
        cluster.wait_refused(f"waits-{number}", "untolerated taint")
    cluster.client.patch(cluster.path("Node", "a"), {"spec": {"taints": None}})

    assert set(cluster.wait_all_bound(3).values()) == {"a"}


def test_a_node_is_deleted_and_recreated(cluster: ClusterUnderTest) -> None:
    cluster.node("a", room={"cpu": "2"})
    cluster.node("b", room={"cpu": "1"})
    cluster.start_scheduler()
    for number in range(3):
        cluster.pod(f"p-{number}", {"cpu": "1"})
    nodes = cluster.wait_all_bound(3)
    (gone,) = (name for name, node in nodes.items() if node == "b")

    cluster.client.delete(cluster.path("Node", "b"))
    cluster.wait_gone(gone)
    # Nodes and pods come by watches of their own. A pod on a node made after the deletion shows
    # that the scheduler has seen it; before that, "late" could still go to "b".
    cluster.node("c", room={"cpu": "1"})
    cluster.pod("on-c", {"cpu": "1"}, nodeSelector={"kubernetes.io/hostname": "c"})
    assert cluster.wait_bound("on-c") == "c"
    cluster.pod("late", {"cpu": "1"})
    assert cluster.wait_refused("late").startswith("0/2 nodes are available: 2 Insufficient cpu.")
    cluster.node("b", room={"cpu": "1"})

    assert cluster.wait_bound("late") == "b"
    assert cluster.bindings.moved() == {}


def test_every_way_to_free_resources(cluster: ClusterUnderTest) -> None:
    """Adding, labelling and growing a node, and shrinking a pod, each let a pending pod run."""
    cluster.node("a", room={"cpu": "1"})
    cluster.start_scheduler()
    cluster.pod("there", {"cpu": "1"})
    cluster.wait_bound("there")
    cluster.pod("for-label", nodeSelector={"disk": "fast"})
    cluster.pod("for-node", {"cpu": "100m"}, nodeSelector={"kubernetes.io/hostname": "new"})
    cluster.pod("for-room", {"cpu": "3"})
    for name in ("for-label", "for-node", "for-room"):
        cluster.wait_refused(name)

    cluster.client.patch(cluster.path("Node", "a"), {"metadata": {"labels": {"disk": "fast"}}})
    assert cluster.wait_bound("for-label") == "a"
    cluster.node("new", room={"cpu": "200m"})
    assert cluster.wait_bound("for-node") == "new"
    room = {"allocatable": {"cpu": "5"}, "capacity": {"cpu": "5"}}
    cluster.client.patch(cluster.path("Node", "a") + "/status", {"status": room})
    assert cluster.wait_bound("for-room") == "a"
