"""Quotas: when the use of pods is counted, and when it is released."""

from collections.abc import Callable

from bayplan.api.pod import Pod
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.quotas import QuotaLedger
from bayplan.cluster.objects.object_index import ClusterObject
from bayplan.testing.builders import make_pod
from tests.rig.objects import decoded, stored


def make_quota(name: str, cpu: str) -> ClusterObject:
    return decoded(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"hard": {"requests.cpu": cpu}},
        }
    )


def test_a_deleted_pod_is_released_later() -> None:
    cluster, waiting = MemoryCluster(), list[tuple[Pod, Callable[[], None]]]()
    ledger = QuotaLedger(cluster, lambda pod, release: waiting.append((pod, release)))
    cluster.watch(ledger)
    cluster.add(make_quota("team", "2"))
    cluster.add(make_pod("old", cpu="1500m"))

    cluster.delete(stored(cluster, Pod, "old"))
    before = ledger.refusal(make_pod("new", cpu="1"))
    cluster.add(make_quota("later", "2"))
    for _, release in waiting:
        release()

    assert "used: requests.cpu=1500m" in before
    assert ledger.refusal(make_pod("new", cpu="2")) == "", "also in a quota that never counted it"
    assert "exceeded quota" in ledger.refusal(make_pod("new", cpu="2001m"))
