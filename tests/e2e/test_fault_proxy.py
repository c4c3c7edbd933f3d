"""Requests fail, are delayed, cut and lost while pods are added and deleted: none is lost, none is bound twice, no
node is overcommitted at any moment, and soon after the faults end everything that fits is bound.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.faults import Faults
from tests.rig.live.client import Tree
from tests.rig.live.cluster import ClusterUnderTest, pod_tree
from tests.rig.live.fault_proxy import FaultProxy
from tests.rig.live.follower import Key, ListFollower
from tests.rig.live.kinds import path_of

NODES, PODS_PER_NODE, PODS = 50, 10, 600
SETTLED_S = 20.0
"""Seconds after the faults until everything is bound; on an idle machine it is two or three."""

SOME = Faults(
    seed=1, refused=0.02, delayed=0.02, cut=0.01, lost=0.01, watch_cut=0.2, watch_expired=0.1
)
MANY = Faults(
    seed=2,
    refused=0.1,
    delayed=0.1,
    cut=0.05,
    lost=0.05,
    watch_cut=0.2,
    watch_stalled=0.1,
    watch_expired=0.2,
)


class Loads:
    """The number of pods on each node, after each change of a pod that the API server shows."""

    def __init__(self) -> None:
        self.most: Counter[str] = Counter()
        """The highest number that was seen on each node."""
        self._nodes: dict[str, str] = {}
        self._loads: Counter[str] = Counter()

    def on_pod(self, kind: str, pod: Tree) -> None:
        """Count a change."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if kind == "DELETED":
            node = ""
        before = self._nodes.pop(uid, "")
        self._loads[before] -= 1
        if node:
            self._nodes[uid] = node
            self._loads[node] += 1
            self.most[node] = max(self.most[node], self._loads[node])


@pytest.fixture
def loads(cluster: ClusterUnderTest) -> Iterator[Loads]:
    counted = Loads()
    follower = ListFollower(cluster.client, path_of("Pod"), counted.on_pod)
    yield counted
    follower.stop()


class Traffic:
    """Creates all pods in small batches; each batch deletes some pods of the one before it."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
        self.left: set[str] = set()

    def run(self) -> None:
        """Create and delete; a batch waits until half of the one before it is bound."""
        tree, batch = pod_tree("", {"cpu": "100m"}), 40
        for first in range(0, PODS, batch):
            names = [f"p-{number}" for number in range(first, first + batch)]
            self._cluster.pods_like(tree, names)
            self.left.update(names)
            self._wait_for_half(names)
            gone = names[: batch // 4]
            self._cluster.client.delete_all(self._cluster.path("Pod", name) for name in gone)
            self.left.difference_update(gone)

    def _wait_for_half(self, names: list[str]) -> None:
        def look(pods: dict[Key, Tree]) -> bool:
            found = [pods.get((self._cluster.namespace, name), {}) for name in names]
            bound = sum(bool(pod.get("spec", {}).get("nodeName")) for pod in found)
            return bound * 2 >= len(names)

        self._cluster.pods.wait(look, "half of a batch is bound", 120)


@pytest.mark.parametrize("faults", [SOME, MANY], ids=["few faults", "many faults"])
def test_nothing_is_lost_or_overcommitted_by_faults(
    cluster: ClusterUnderTest, loads: Loads, tmp_path: Path, faults: Faults
) -> None:
    for number in range(NODES):
        cluster.node(f"n-{number}", room={"cpu": f"{PODS_PER_NODE * 100}m"})
    proxy = FaultProxy(cluster.server.kubeconfig, tmp_path, faults)
    try:
        scheduler = cluster.start_scheduler(
            clientConnection={"kubeconfig": str(proxy.kubeconfig), "qps": 5000, "burst": 10000}
        )
        traffic = Traffic(cluster)
        traffic.run()
        tail = [f"tail-{number}" for number in range(40)]
        cluster.pods_like(pod_tree("", {"cpu": "100m"}), tail)
        proxy.end()

        nodes = cluster.wait_all_bound(len(traffic.left) + len(tail), SETTLED_S)

        assert set(nodes) == traffic.left | set(tail)
        assert max(loads.most.values()) <= PODS_PER_NODE
        assert cluster.bindings.moved() == {}
        assert scheduler.wait(0) is None, scheduler.last_words()
        assert {"refused", "delayed", "cut", "lost"} <= set(proxy.injected)
    finally:
        proxy.stop()
    assert threading.active_count() < 100
