"""Controllers: reactions to changes of workloads, pods and nodes."""

from typing import Any

import pytest

from bayplan.api.pod import Pod, PodStatus
from bayplan.api.workloads import ReplicaSet
from bayplan.cluster.memory.admission import Admission
from bayplan.cluster.memory.controllers import Controllers
from bayplan.cluster.memory.pod_index import target_node
from bayplan.cluster.memory.quotas import QuotaLedger
from bayplan.cluster.memory.workload_pods import first_to_go
from tests.rig.objects import decoded, stored
from tests.rig.trees import node_of

from .workloads import LABELS, make_cluster, make_owned, make_template, make_workload


class Watched:
    """A cluster whose controllers watch it."""

    def __init__(self, *objects: Any) -> None:
        self.cluster = make_cluster(*objects)
        self.controllers = Controllers(self.cluster, Admission(self.cluster), ())
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"):
            for workload in list(self.cluster.list(kind)):
                self.controllers.sync(workload)
        self.cluster.watch(self.controllers, replay=False)

    def pods(self) -> list[str]:
        return sorted(pod.name for pod in self.cluster.list("Pod"))

    def change(self, kind: str, **spec: Any) -> None:
        self.cluster.update(make_workload(kind, **spec))
        self.controllers.run()


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "ReplicationController"])
def test_a_workload_that_is_changed_grows_and_shrinks(kind: str) -> None:
    watched = Watched()
    watched.cluster.add(make_workload(kind, replicas=2))
    counts = []
    for replicas in (2, 5, 1, 0):
        watched.change(kind, replicas=replicas)
        counts.append(len(watched.pods()))

    assert counts == [2, 5, 1, 0]


def test_surplus_pods_of_the_input_stay_until_the_workload_changes() -> None:
    pods = [make_owned(f"web-{i}", "ReplicaSet", "web") for i in range(3)]
    cluster = make_cluster(make_workload("ReplicaSet", replicas=1), *pods)
    controllers = Controllers(cluster, Admission(cluster), pods)
    cluster.watch(controllers, replay=False)

    controllers.sync(stored(cluster, ReplicaSet, "web", "shop"))
    assert cluster.count("Pod") == 3
    cluster.update(make_workload("ReplicaSet", replicas=1, metadata={"labels": {"a": "b"}}))
    controllers.run()
    assert cluster.count("Pod") == 1


def test_a_stateful_set_shrinks_from_its_end() -> None:
    watched = Watched(make_workload("StatefulSet", replicas=3))

    watched.change("StatefulSet", replicas=1)

    assert watched.pods() == ["web-0"]


def test_a_job_that_is_suspended_stops_its_pods() -> None:
    watched = Watched(make_workload("Job", parallelism=3))

    watched.change("Job", parallelism=3, suspend=True)

    assert watched.pods() == []


def test_a_removed_workload_removes_its_pods() -> None:
    watched = Watched(make_workload("Deployment", replicas=3), make_workload("StatefulSet", "db"))

    watched.cluster.delete(make_workload("Deployment"))
    watched.controllers.run()

    assert watched.pods() == ["db-0"]
    assert list(watched.cluster.list("ReplicaSet")) == []


def test_a_deleted_adopted_pod_is_replaced() -> None:
    orphan = decoded(
        {"kind": "Pod", "metadata": {"name": "stray", "namespace": "shop", "labels": LABELS}}
    )
    cluster = make_cluster(make_workload("ReplicaSet"), orphan)
    controllers = Controllers(cluster, Admission(cluster), cluster.list("Pod"))
    cluster.watch(controllers, replay=False)
    assert controllers.sync(make_workload("ReplicaSet")) == []

    cluster.delete(orphan)

    assert len(controllers.run()) == 1


def test_a_daemon_is_deleted_from_a_node_that_no_longer_matches() -> None:
    selector = {"nodeSelector": {"disk": "ssd"}}
    daemons = make_workload("DaemonSet", template=make_template(**selector))
    watched = Watched(node_of("n", labels={"disk": "ssd"}), daemons)
    assert len(watched.pods()) == 1

    watched.cluster.update(node_of("n", labels={"disk": "hdd"}))
    watched.controllers.run()

    assert watched.pods() == []


def daemons_of(watched: Watched) -> list[str]:
    """The nodes that have a daemon, in the order in which the daemons were made."""
    return [target_node(pod) for pod in watched.cluster.list("Pod")]


def test_daemons_come_to_nodes_that_join_or_change_and_come_back_where_they_were_deleted() -> None:
    template = make_template(nodeSelector={"disk": "ssd"})
    daemons = make_workload("DaemonSet", template=template)
    watched = Watched(node_of("first", labels={"disk": "ssd"}), node_of("other"), daemons)
    assert daemons_of(watched) == ["first"]

    for node in (
        node_of("third", labels={"disk": "ssd"}),
        node_of("second", labels={"disk": "ssd"}),
    ):
        watched.cluster.add(node)
    watched.cluster.update(node_of("other", labels={"disk": "ssd"}))
    watched.controllers.run()
    assert daemons_of(watched) == ["first", "other", "third", "second"]

    for pod in list(watched.cluster.list("Pod"))[:2]:
        watched.cluster.delete(pod)
    watched.controllers.run()
    assert daemons_of(watched) == ["third", "second", "first", "other"]

    watched.cluster.delete(node_of("third"))
    watched.controllers.run()
    assert daemons_of(watched) == ["second", "first", "other"]


def test_daemons_that_a_quota_refuses_are_made_when_there_is_room() -> None:
    quota = {
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "shop"},
        "spec": {"hard": {"pods": "2"}},
    }
    watched = Watched(make_workload("DaemonSet"), decoded({"apiVersion": "v1", **quota}))
    ledger = QuotaLedger(watched.cluster)
    watched.cluster.watch(ledger)
    watched.controllers = Controllers(watched.cluster, Admission(watched.cluster, ledger), ())
    watched.cluster.watch(watched.controllers)
    for name in "abc":
        watched.cluster.add(node_of(name))
    watched.controllers.run()
    assert daemons_of(watched) == ["a", "b"]

    quota["spec"] = {"hard": {"pods": "3"}}
    watched.cluster.update(decoded({"apiVersion": "v1", **quota}))
    watched.controllers.run()

    assert daemons_of(watched) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("pods", "first"),
    [
        pytest.param([("a", "n", 0, "1"), ("b", "", 0, None)], "b", id="one that waits"),
        pytest.param([("a", "n", 5, "1"), ("b", "m", -5, "1")], "b", id="the cheaper one"),
        pytest.param(
            [("a", "m", 0, "3"), ("b", "n", 0, "1"), ("c", "n", 0, "2")], "c", id="on a shared node"
        ),
        pytest.param([("a", "n", 0, "2"), ("b", "m", 0, "1")], "a", id="the younger one"),
        pytest.param([("a", "n", 0, "1"), ("b", "m", 0, "1")], "b", id="the one that came last"),
    ],
)
def test_deletion_order(pods: list[tuple[str, str, int, str | None]], first: str) -> None:
    made = [
        Pod(
            name,
            node_name=node,
            annotations={"controller.kubernetes.io/pod-deletion-cost": str(cost)},
            status=PodStatus(start_time=started),
        )
        for name, node, cost, started in pods
    ]

    assert first_to_go(made)[0].name == first
