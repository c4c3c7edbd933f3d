"""Refused workloads: the message of a workload whose pods a quota refuses."""

import pytest

from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.pod_index import OwnedPods
from bayplan.cluster.memory.refusals import RefusedWorkloads
from bayplan.testing.builders import make_object


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        pytest.param("ReplicaSet", "used: 2170m", id="the condition of a replica set keeps it"),
        pytest.param("StatefulSet", "used: 2370m", id="others have events: the last one"),
    ],
)
def test_the_message_of_a_replica_set_stays_until_it_has_its_pods(kind: str, message: str) -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": []}}
    spec = {"replicas": 2, "template": template, "selector": {"matchLabels": {"app": "w"}}}
    workload = make_object(kind, "w", namespace="shop", spec=spec)
    refused, key = RefusedWorkloads(), (kind, "shop", "w")

    cluster = MemoryCluster()
    cluster.add(workload)

    refused.note(key, "used: 2170m")
    refused.note(key, "used: 2370m")
    (found,) = refused.listed(cluster, lambda _: OwnedPods())

    assert (found.message, found.count) == (message, 2)
    refused.clear(key)
    refused.note(key, "used: 2500m")
    (again,) = refused.listed(cluster, lambda _: OwnedPods())
    assert again.message == "used: 2500m"
