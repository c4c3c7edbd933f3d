"""Controllers: names, labels, owners and number of pods."""

import re
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.storage import PersistentVolumeClaim
from bayplan.api.workloads import Deployment, Job
from bayplan.cluster.memory.admission import Admission, AdmissionError
from bayplan.cluster.memory.controllers import Controllers
from bayplan.cluster.memory.created_names import ALPHABET
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.workload_pods import WORKLOAD_KINDS
from tests.rig.objects import decoded, stored
from tests.rig.trees import node_of

from .workloads import LABELS, make_cluster, make_owned, make_template, make_workload

SAFE = f"[{ALPHABET}]"


def run(cluster: MemoryCluster) -> list[Pod]:
    """Create the missing pods of all workloads."""
    controllers = Controllers(cluster, Admission(cluster), cluster.list("Pod"))
    workloads = [obj for kind in WORKLOAD_KINDS for obj in cluster.list(kind)]
    return [pod for workload in workloads for pod in controllers.sync(workload)]


def names(pods: list[Pod]) -> list[str]:
    return [pod.name for pod in pods]


def owner_of(pod: Pod) -> tuple[str, str, str, bool]:
    assert pod.controller is not None
    owner = pod.controller
    return owner.api_version, owner.kind, owner.name, owner.uid != ""


def test_a_deployment_makes_a_replica_set_that_makes_pods() -> None:
    cluster = make_cluster(make_workload("Deployment", replicas=3))

    pods = run(cluster)

    (replica_set,) = cluster.list("ReplicaSet")
    hashed = replica_set.labels["pod-template-hash"]
    assert re.fullmatch(f"{SAFE}{{1,10}}", hashed)
    assert replica_set.name == f"web-{hashed}"
    assert replica_set.namespace == "shop"
    assert replica_set.replicas == 3
    assert replica_set.spec.selector.match_labels == {**LABELS, "pod-template-hash": hashed}
    assert [(o.kind, o.name, o.controller) for o in replica_set.owner_references] == [
        ("Deployment", "web", True)
    ]
    assert len(pods) == len(set(names(pods))) == 3
    for pod in pods:
        assert re.fullmatch(f"web-{hashed}-{SAFE}{{5}}", pod.name)
        assert pod.namespace == "shop"
        assert pod.labels == {**LABELS, "pod-template-hash": hashed}
        assert owner_of(pod) == ("apps/v1", "ReplicaSet", replica_set.name, True)
        assert pod.controller is not None
        assert pod.controller.uid == replica_set.uid
        assert cluster.get("Pod", "shop", pod.name) is pod


def test_names_are_the_same_in_every_run_and_differ_with_the_template() -> None:
    first = run(make_cluster(make_workload("Deployment", replicas=2)))
    again = run(make_cluster(make_workload("Deployment", replicas=2)))
    template = make_template(containers=[{"name": "c", "image": "web:2"}])
    other = run(make_cluster(make_workload("Deployment", replicas=2, template=template)))

    assert names(first) == names(again)
    assert set(names(first)).isdisjoint(names(other))


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        pytest.param("ReplicaSet", "apps/v1", id="replica set"),
        pytest.param("ReplicationController", "v1", id="replication controller"),
    ],
)
def test_like_pods_of_one_owner(kind: str, api_version: str) -> None:
    pods = run(make_cluster(make_workload(kind, replicas=2)))

    assert all(re.fullmatch(f"web-{SAFE}{{5}}", pod.name) for pod in pods)
    assert [owner_of(pod) for pod in pods] == [(api_version, kind, "web", True)] * 2


def test_replicas_default_to_one_and_zero_is_zero() -> None:
    assert len(run(make_cluster(make_workload("ReplicaSet")))) == 1
    assert run(make_cluster(make_workload("ReplicaSet", replicas=0))) == []


def test_running_the_controllers_again_makes_nothing() -> None:
    cluster = make_cluster(
        node_of("n"),
        make_workload("Deployment", replicas=2),
        make_workload("StatefulSet", "db", replicas=2, podManagementPolicy="Parallel"),
        make_workload("DaemonSet", "logs"),
        make_workload("Job", "report", parallelism=2, completions=4),
    )
    assert len(run(cluster)) == 7

    assert run(cluster) == []


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        pytest.param({"spec": {"nodeName": "n"}}, 1, id="a running pod counts"),
        pytest.param({}, 1, id="a waiting pod counts"),
        pytest.param({"status": {"phase": "Failed"}}, 2, id="a failed pod does not"),
        pytest.param({"status": {"phase": "Succeeded"}}, 2, id="a pod that is done does not"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            2,
            id="a terminating pod does not",
        ),
    ],
)
def test_a_replica_set_makes_only_the_missing_pods(fields: dict[str, Any], made: int) -> None:
    present = make_owned("web-abcde", "ReplicaSet", "web", **fields)

    assert len(run(make_cluster(present, make_workload("ReplicaSet", replicas=2)))) == made


def test_an_orphan_that_the_selector_matches_counts() -> None:
    orphan = {"kind": "Pod", "metadata": {"name": "x", "namespace": "shop", "labels": LABELS}}
    stranger = {"kind": "Pod", "metadata": {"name": "y", "namespace": "other", "labels": LABELS}}
    cluster = make_cluster(decoded(orphan), decoded(stranger))
    cluster.add(make_workload("ReplicaSet", replicas=2))

    assert len(run(cluster)) == 1


def make_replica_set(name: str, replicas: int, revision: str, image: str) -> Any:
    return make_workload(
        "ReplicaSet",
        name,
        replicas=replicas,
        template=make_template(containers=[{"name": "c", "image": image}]),
        metadata={
            "annotations": {"deployment.kubernetes.io/revision": revision},
            "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}],
        },
    )


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        pytest.param(3, {"web-old": 1, "web-new": 2}, id="as many as there are"),
        pytest.param(5, {"web-old": 1, "web-new": 4}, id="more: the set of the template grows"),
        pytest.param(1, {"web-old": 1, "web-new": 2}, id="fewer: nothing is taken away"),
    ],
)
def test_a_deployment_adopts_its_replica_sets(replicas: int, expected: dict[str, int]) -> None:
    cluster = make_cluster(
        make_workload("Deployment", replicas=replicas),
        make_replica_set("web-old", 1, "9", "web:0"),
        make_replica_set("web-new", 2, "3", "web:1"),
    )

    pods = run(cluster)

    assert {found.name: found.replicas for found in cluster.list("ReplicaSet")} == expected
    owners = [pod.controller.name for pod in pods if pod.controller]
    assert {name: owners.count(name) for name in expected} == expected


def test_a_deployment_that_changed_grows_its_latest_revision() -> None:
    cluster = make_cluster(
        make_workload("Deployment", replicas=2),
        make_replica_set("web-a", 0, "10", "web:7"),
        make_replica_set("web-b", 0, "9", "web:8"),
    )

    assert {pod.controller.name for pod in run(cluster) if pod.controller} == {"web-a"}


def test_a_stateful_set_numbers_its_pods() -> None:
    workload = make_workload(
        "StatefulSet", "db", replicas=2, ordinals={"start": 3}, podManagementPolicy="Parallel"
    )

    pods = run(make_cluster(workload))

    assert names(pods) == ["db-3", "db-4"]
    assert pods[0].labels["statefulset.kubernetes.io/pod-name"] == "db-3"
    assert pods[0].labels["apps.kubernetes.io/pod-index"] == "3"
    assert re.fullmatch(f"db-{SAFE}+", pods[0].labels["controller-revision-hash"])
    assert owner_of(pods[0]) == ("apps/v1", "StatefulSet", "db", True)


def test_a_stateful_set_fills_the_gaps() -> None:
    cluster = make_cluster(
        make_owned("db-1", "StatefulSet", "db", spec={"nodeName": "n"}),
        make_owned("db-2", "StatefulSet", "db", status={"phase": "Failed"}),
        make_workload("StatefulSet", "db", replicas=3, podManagementPolicy="Parallel"),
    )
    failed = stored(cluster, Pod, "db-2", "shop")

    assert names(run(cluster)) == ["db-0", "db-2"]
    assert stored(cluster, Pod, "db-2", "shop").uid != failed.uid


def test_a_stateful_set_gives_each_pod_its_claims() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    template = make_template(
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "shared", "persistentVolumeClaim": {"claimName": "common"}},
        ]
    )
    cluster = make_cluster(
        make_workload(
            "StatefulSet",
            "db",
            replicas=2,
            template=template,
            volumeClaimTemplates=[claim],
            podManagementPolicy="Parallel",
        )
    )

    pods = run(cluster)

    found = [claim.name for claim in cluster.list("PersistentVolumeClaim", "shop")]
    assert found == ["data-db-0", "data-db-1"]
    assert stored(cluster, PersistentVolumeClaim, "data-db-0", "shop").labels == LABELS
    used = [
        [v.persistent_volume_claim and v.persistent_volume_claim.claim_name for v in volumes]
        for volumes in (pod.spec.volumes or () for pod in pods)
    ]
    assert used == [["data-db-0", "common"], ["data-db-1", "common"]]


@pytest.mark.parametrize(
    ("spec", "phases", "made"),
    [
        pytest.param({}, [], 1, id="one by default"),
        pytest.param({"parallelism": 3}, [], 3, id="no completions: as many as run at once"),
        pytest.param({"parallelism": 3}, ["Succeeded"], 0, id="no completions: one success ends"),
        pytest.param({"completions": 2, "parallelism": 5}, [], 2, id="no more than to complete"),
        pytest.param({"completions": 5, "parallelism": 2}, [], 2, id="no more than at once"),
        pytest.param(
            {"completions": 5, "parallelism": 2}, ["Succeeded"] * 4, 1, id="the rest of them"
        ),
        pytest.param({"completions": 5, "parallelism": 2}, ["Running"], 1, id="one runs already"),
        pytest.param({"completions": 1}, ["Succeeded"], 0, id="done"),
        pytest.param({"completions": 1}, ["Failed"], 1, id="a failed pod is replaced"),
        pytest.param({"backoffLimit": 0}, ["Failed"], 0, id="failed too often"),
        pytest.param({"suspend": True}, [], 0, id="suspended"),
    ],
)
def test_how_many_pods_a_job_makes(spec: dict[str, Any], phases: list[str], made: int) -> None:
    present = (
        make_owned(f"report-{i}", "Job", "report", status={"phase": phase})
        for i, phase in enumerate(phases)
    )

    assert len(run(make_cluster(*present, make_workload("Job", "report", **spec)))) == made


def test_the_labels_of_a_job_s_pods() -> None:
    cluster = make_cluster(make_workload("Job", "report"))

    (pod,) = run(cluster)

    uid = stored(cluster, Job, "report", "shop").uid
    assert re.fullmatch(f"report-{SAFE}{{5}}", pod.name)
    assert owner_of(pod) == ("batch/v1", "Job", "report", True)
    assert pod.labels == {
        **LABELS,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "report",
        "controller-uid": uid,
        "job-name": "report",
    }


def test_an_indexed_job_names_its_pods_by_number() -> None:
    index = "batch.kubernetes.io/job-completion-index"
    done = make_owned(
        "report-0-abcde",
        "Job",
        "report",
        metadata={"annotations": {index: "0"}},
        status={"phase": "Succeeded"},
    )
    runs = make_owned("report-2-abcde", "Job", "report", metadata={"annotations": {index: "2"}})
    workload = make_workload(
        "Job", "report", completions=6, parallelism=3, completionMode="Indexed"
    )

    pods = run(make_cluster(done, runs, workload))

    assert [pod.annotations[index] for pod in pods] == ["1", "3"]
    assert [pod.labels[index] for pod in pods] == ["1", "3"]
    assert re.fullmatch(f"report-1-{SAFE}{{5}}", pods[0].name)


def test_a_long_job_name_is_cut_before_the_number() -> None:
    workload = make_workload("Job", "x" * 63, completions=1, completionMode="Indexed")

    (pod,) = run(make_cluster(workload))

    assert len(pod.name) == 63
    assert re.fullmatch(f"x+-0-{SAFE}{{5}}", pod.name)


def test_a_daemon_set_creates_a_pod_for_each_node_and_binds_it_there() -> None:
    cluster = make_cluster(node_of("n1"), node_of("n2"), make_workload("DaemonSet", "logs"))

    pods = run(cluster)

    assert len(pods) == 2
    assert all(re.fullmatch(f"logs-{SAFE}{{5}}", pod.name) for pod in pods)
    assert owner_of(pods[0]) == ("apps/v1", "DaemonSet", "logs", True)
    ties = [pod.spec.required_node_selector for pod in pods]
    assert [tie.matches({}, "n1") for tie in ties if tie] == [True, False]
    assert [tie.matches({}, "n2") for tie in ties if tie] == [False, True]
    tolerated = {(t.key.rpartition("/")[2], t.effect) for t in pods[0].tolerations}
    assert tolerated == {
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    }
    assert all(t.toleration_seconds is None for t in pods[0].tolerations)


SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}


@pytest.mark.parametrize(
    ("node", "spec", "runs"),
    [
        pytest.param(node_of("n", unschedulable=True), {}, True, id="cordoned"),
        pytest.param(
            node_of("n", taints=[{"key": "gpu", "effect": "NoSchedule"}]), {}, False, id="tainted"
        ),
        pytest.param(
            node_of("n", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            True,
            id="tainted and tolerated",
        ),
        pytest.param(
            node_of("n", taints=[{"key": "gpu", "effect": "PreferNoSchedule"}]),
            {},
            True,
            id="a soft taint",
        ),
        pytest.param(
            node_of(
                "n",
                taints=[{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}],
            ),
            {"hostNetwork": True},
            True,
            id="no network, and none needed",
        ),
        pytest.param(
            node_of("n", labels={"disk": "hdd"}),
            {"nodeSelector": {"disk": "ssd"}},
            False,
            id="selector",
        ),
        pytest.param(
            node_of("n", labels={"disk": "hdd"}),
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [SSD]
                        }
                    }
                }
            },
            False,
            id="affinity",
        ),
        pytest.param(node_of("n"), {"nodeName": "m"}, False, id="tied to another node"),
    ],
)
def test_where_a_daemon_belongs(node: Any, spec: dict[str, Any], runs: bool) -> None:
    workload = make_workload("DaemonSet", "logs", template=make_template(**spec))

    assert len(run(make_cluster(node, workload))) == runs


def test_a_node_with_a_daemon_gets_no_second_one() -> None:
    waiting = {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n2"]}
                            ]
                        }
                    ]
                }
            }
        }
    }
    cluster = make_cluster(
        *(node_of(name) for name in ("n1", "n2", "n3")),
        make_owned("logs-a", "DaemonSet", "logs", spec={"nodeName": "n1"}),
        make_owned("logs-b", "DaemonSet", "logs", spec=waiting),
        make_workload("DaemonSet", "logs"),
    )

    (pod,) = run(cluster)

    assert pod.spec.required_node_selector is not None
    assert pod.spec.required_node_selector.matches({}, "n3")


def test_pods_are_admitted() -> None:
    template = make_template(priorityClassName="system-node-critical")

    (pod,) = run(make_cluster(make_workload("ReplicaSet", template=template)))

    assert pod.priority == 2_000_001_000


def test_rejected_pods_are_reported_for_the_workload() -> None:
    template = make_template(priorityClassName="gold")

    with pytest.raises(AdmissionError, match=r"^deployment shop/web: spec.template.spec.priority"):
        run(make_cluster(make_workload("Deployment", template=template)))


def test_too_many_replicas_are_rejected() -> None:
    with pytest.raises(AdmissionError, match=r"^replicaset shop/web: spec.replicas: expected at"):
        run(make_cluster(make_workload("ReplicaSet", replicas=2_000_000_000)))


def test_a_terminating_workload_creates_nothing() -> None:
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

    assert run(make_cluster(make_workload("ReplicaSet", metadata=gone))) == []


def test_a_deleted_pod_is_replaced_by_its_owner() -> None:
    cluster = make_cluster(make_workload("Deployment", replicas=2))
    admission = Admission(cluster)
    controllers = Controllers(cluster, admission, ())
    first, second = controllers.sync(stored(cluster, Deployment, "web", "shop"))
    cluster.watch(controllers, replay=False)
    cluster.delete(first)

    (replacement,) = controllers.run()

    assert replacement.name not in (first.name, second.name)
    assert owner_of(replacement) == owner_of(first)
