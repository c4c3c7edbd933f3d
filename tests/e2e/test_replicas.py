"""Replicas: several schedulers, of which one at a time holds the lease and binds."""

import signal
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.rig.live.client import Tree
from tests.rig.live.cluster import ClusterUnderTest, pod_tree
from tests.rig.live.follower import Key, ListFollower
from tests.rig.live.kinds import path_of
from tests.rig.live.processes import Process

LEASE_S, RETRY_S = 5, 1
SLOW_S = 5
"""Allowance for requests on a busy machine."""


class Replicas:
    """Schedulers with one lease, and the lease."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        self._cluster = cluster
        self._name = f"{cluster.namespace}-scheduler"
        self._renewals: dict[str, float] = {}
        self._leases = ListFollower(cluster.client, path_of("Lease", "kube-system"), self._on_lease)

    def _on_lease(self, kind: str, lease: Tree) -> None:
        if lease["metadata"]["name"] == self._name and lease["spec"].get("holderIdentity"):
            self._renewals[holder(lease)] = moment(lease, "renewTime")

    def last_renewal_of(self, name: str) -> float:
        """Time of the last observed renewal of the lease by this holder."""
        return self._renewals[name]

    def start(self, lease_s: int = LEASE_S) -> Process:
        election: dict[str, Any] = {
            "leaderElect": True,
            "leaseDuration": f"{lease_s}s",
            "renewDeadline": f"{lease_s - 1}s",
            "retryPeriod": f"{RETRY_S}s",
            "resourceName": self._name,
            "resourceNamespace": "kube-system",
        }
        return self._cluster.start_scheduler(
            leaderElection=election,
            clientConnection={
                "kubeconfig": str(self._cluster.server.kubeconfig),
                "qps": 150,
                "burst": 50,
            },
        )

    def wait_leader(self, other_than: str = "", timeout_s: float = 60) -> Tree:
        """Wait until another scheduler holds the lease, and return it."""

        def look(leases: dict[Key, Tree]) -> Tree:
            lease = leases.get(("kube-system", self._name), {})
            holder = (lease.get("spec") or {}).get("holderIdentity")
            return lease if holder and holder != other_than else {}

        return self._leases.wait(look, "there is a (new) leader", timeout_s)

    def stop(self) -> None:
        self._leases.stop()
        self._cluster.client.delete(path_of("Lease", "kube-system", self._name))


@pytest.fixture
def replicas(cluster: ClusterUnderTest) -> Iterator[Replicas]:
    made = Replicas(cluster)
    yield made
    made.stop()


def holder(lease: Tree) -> str:
    name: str = lease["spec"]["holderIdentity"]
    return name


def moment(lease: Tree, field: str) -> float:
    return datetime.fromisoformat(lease["spec"][field]).timestamp()


def test_the_leader_is_killed(cluster: ClusterUnderTest, replicas: Replicas) -> None:
    for number in range(5):
        cluster.node(f"n-{number}", room={"cpu": "1"})
    leader = replicas.start()
    first = replicas.wait_leader()
    replicas.start()
    cluster.pods_like(pod_tree("", {"cpu": "10m"}), (f"p-{number}" for number in range(500)))
    cluster.wait_all_bound(100)

    leader.kill()
    second = replicas.wait_leader(other_than=holder(first))
    nodes = cluster.wait_all_bound(500)

    assert len(nodes) == 500
    assert cluster.bindings.moved() == {}
    assert max(list(nodes.values()).count(node) for node in set(nodes.values())) == 100
    # The other reads the lease once in up to 2.2 retry periods, and takes it when it has not
    # changed for the lease duration.
    waited_s = moment(second, "acquireTime") - replicas.last_renewal_of(holder(first))
    assert waited_s <= LEASE_S + 2 * 2.2 * RETRY_S + SLOW_S
    assert second["spec"]["leaseTransitions"] == first["spec"].get("leaseTransitions", 0) + 1


def test_a_terminated_leader_releases_the_lease_at_once(
    cluster: ClusterUnderTest, replicas: Replicas
) -> None:
    cluster.node("a")
    leader = replicas.start(lease_s=300)
    first = replicas.wait_leader()
    replicas.start(lease_s=300)
    cluster.pod("before")
    cluster.wait_bound("before")

    status = leader.stop()
    replicas.wait_leader(other_than=holder(first))  # long before the lease is over
    cluster.pod("after")

    assert cluster.wait_bound("after") == "a"
    assert status == 0


def test_a_leader_that_lost_the_lease_stops_binding(
    cluster: ClusterUnderTest, replicas: Replicas
) -> None:
    cluster.node("a")
    frozen = replicas.start()
    first = replicas.wait_leader()
    replicas.start()
    cluster.pod("before")
    cluster.wait_bound("before")

    frozen.send(signal.SIGSTOP)
    cluster.pods_like(pod_tree(""), (f"p-{number}" for number in range(20)))
    second = replicas.wait_leader(other_than=holder(first))
    cluster.wait_all_bound(21)
    frozen.send(signal.SIGCONT)
    status = frozen.wait(60)
    cluster.pod("after")

    assert cluster.wait_bound("after") == "a"
    assert status not in (0, None)
    taken_over = int(second["metadata"]["resourceVersion"])
    early = [
        name
        for (_, name), version in cluster.bindings.versions.items()
        if name.startswith("p-") and version < taken_over
    ]
    assert early == []
    assert cluster.bindings.moved() == {}
