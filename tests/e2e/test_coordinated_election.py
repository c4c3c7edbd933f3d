"""Feature gate CoordinatedLeaderElection: the API server chooses which replica holds the lease.

The controller that chooses is part of kube-apiserver, so there is no test with the embedded server.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.live.client import Tree
from tests.rig.live.cluster import ClusterUnderTest
from tests.rig.live.control_plane import LiveControlPlane, need_assets
from tests.rig.live.follower import Key, ListFollower
from tests.rig.live.kinds import path_of
from tests.rig.live.processes import Process

LEASE = "kube-scheduler"
LOST_LEASE = 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterUnderTest]:
    need_assets()
    folder = tmp_path / "server"
    folder.mkdir()
    server = LiveControlPlane(folder, gates=("CoordinatedLeaderElection",))
    made = ClusterUnderTest(server, tmp_path)
    yield made
    made.close()
    server.stop()


def start(cluster: ClusterUnderTest, version: str) -> Process:
    election: dict[str, Any] = {
        "leaderElect": True,
        "leaseDuration": "5s",
        "renewDeadline": "3s",
        "retryPeriod": "1s",
        "resourceName": LEASE,
        "resourceNamespace": "kube-system",
    }
    return cluster.start_scheduler(f"--emulated-version={version}", leaderElection=election)


def test_the_replica_with_the_oldest_version_gets_the_lease(cluster: ClusterUnderTest) -> None:
    cluster.node("a")
    leases = ListFollower(cluster.client, path_of("Lease", "kube-system"))

    def wait_holder(other_than: str) -> str:
        def look(found: dict[Key, Tree]) -> str:
            spec = found.get(("kube-system", LEASE), {}).get("spec") or {}
            holder = spec.get("holderIdentity") or ""
            return holder if holder != other_than and spec.get("strategy") else ""

        return leases.wait(look, "another candidate has the lease", 90)

    newer = start(cluster, "1.36")
    first = wait_holder(other_than="")
    cluster.pod("one")
    assert cluster.wait_bound("one") == "a"

    start(cluster, "1.35")
    second = wait_holder(other_than=first)

    assert newer.wait(60) == LOST_LEASE
    cluster.pod("two")
    assert cluster.wait_bound("two") == "a"
    candidates = cluster.client.get(path_of("LeaseCandidate", "kube-system"))["items"]
    versions = {c["metadata"]["name"]: c["spec"]["emulationVersion"] for c in candidates}
    assert (versions[first], versions[second]) == ("1.36.0", "1.35.0")
    leases.stop()
