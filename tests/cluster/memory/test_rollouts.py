"""Rollouts: deployments, stateful sets and daemon sets replace their pods step by step."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.answers.what_if import Patch, ask_what_if
from bayplan.api.pod import Pod
from bayplan.api.workloads import RollingUpdate
from bayplan.cluster.memory.admission import Admission
from bayplan.cluster.memory.controllers import Controllers
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.pod_index import target_node
from bayplan.cluster.memory.rollouts import (
    ReplicaCount,
    plan_rollout,
    rollout_limits,
    scale_replica_sets,
)
from bayplan.manifests.timeline import ObjectPatch, Timeline, TimelineEvent, TimelineTarget
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import stored

LABELS = {"app": "web"}


def make_workload(kind: str = "Deployment", cpu: str = "1", **spec: Any) -> Any:
    requests = {"requests": {"cpu": cpu}}
    container = {"name": "c", "image": "web:1", "resources": requests}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": LABELS}, "template": template, **spec}
    return make_object(kind, "web", namespace="default", spec=spec)


class RolloutRig:
    """A cluster with its workload controllers; pods are placed by hand."""

    def __init__(self, *objects: Any) -> None:
        self.cluster = MemoryCluster()
        for obj in objects:
            self.cluster.add(obj)
        self.controllers = Controllers(self.cluster, Admission(self.cluster), ())
        self.cluster.watch(self.controllers, replay=False)
        for obj in objects:
            self.controllers.sync(obj)
        self.place()

    def place(self, most: int = 1000) -> None:
        """Give pods a node until none waits, at most `most` pods."""
        while (pods := [pod for pod in self.cluster.list("Pod") if not pod.node_name]) and most:
            self.cluster.update(pods[0].with_node(target_node(pods[0]) or "n"))
            self.controllers.run()
            most -= 1

    def change(self, **spec: Any) -> None:
        kind = spec.pop("kind", "Deployment")
        self.cluster.update(make_workload(kind, **spec))
        self.controllers.run()

    def sizes(self) -> list[int]:
        """The replicas of the replica sets, the oldest first."""
        return [found.replicas for found in self.cluster.list("ReplicaSet")]

    def cpus(self) -> dict[str, int]:
        """Requests of each pod, by which its template is known."""
        return {
            pod.name: pod.requests["cpu"] // 1000
            for pod in sorted(self.cluster.list("Pod"), key=lambda pod: pod.name)
        }


@pytest.mark.parametrize(
    ("given", "replicas", "limits"),
    [
        pytest.param(None, 10, (3, 2), id="25% of each, rounded up and down"),
        pytest.param(RollingUpdate(max_surge=0, max_unavailable=0), 4, (0, 1), id="never both 0"),
        pytest.param(RollingUpdate(max_surge="50%", max_unavailable=1), 3, (2, 1), id="both"),
        pytest.param(RollingUpdate(max_unavailable=9), 3, (1, 3), id="not more than there are"),
    ],
)
def test_the_limits_of_a_rollout(
    given: RollingUpdate | None, replicas: int, limits: tuple[int, int]
) -> None:
    assert rollout_limits(given, replicas) == limits


def strategy(**limits: Any) -> dict[str, Any]:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        pytest.param({"maxSurge": 1, "maxUnavailable": 0}, [[4, 1], [3, 2], [2, 3]], id="surge"),
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, [[3, 1], [2, 2], [1, 3]], id="no surge"),
        pytest.param({"maxSurge": 2, "maxUnavailable": 2}, [[2, 4], [1, 4], [0, 4]], id="both"),
        pytest.param({"maxSurge": "100%", "maxUnavailable": 0}, [[4, 4], [3, 4]], id="all at once"),
    ],
)
def test_a_rollout_goes_on_as_pods_become_ready(limits: Any, steps: list[list[int]]) -> None:
    rig = RolloutRig(make_workload(replicas=4, **strategy(**limits)))

    rig.change(replicas=4, cpu="2", **strategy(**limits))
    seen = [rig.sizes()]
    for _ in steps[1:]:
        rig.place(1)
        seen.append(rig.sizes())
    rig.place()

    assert seen == steps
    assert rig.sizes() == [0, 4]
    assert list(rig.cpus().values()) == [2, 2, 2, 2]


ONE_BY_ONE = strategy(maxSurge=0, maxUnavailable=1)
SURGE_3 = strategy(maxSurge=3, maxUnavailable=2)


@pytest.mark.parametrize(
    ("spec", "change", "sizes", "found"),
    [
        pytest.param(
            SURGE_3, (3, 5), {"old": 3}, {"old": 5}, id="a single one that is active gets all"
        ),
        pytest.param(
            SURGE_3, (0, 2), {"new": 0, "old": 0}, {"new": 2}, id="of none that is active the new"
        ),
        pytest.param(
            SURGE_3, (0, 2), {"b": 0, "a": 0}, {"b": 2}, id="without a new one the latest gets all"
        ),
        pytest.param(SURGE_3, (0, 2), {}, {}, id="without replica sets there is nothing to scale"),
        pytest.param(
            {"strategy": {"type": "Recreate"}},
            (3, 5),
            {"new": 1, "old": 2},
            {"new": 1, "old": 2},
            id="to recreate, all stay as they are",
        ),
        pytest.param(
            SURGE_3,
            (10, 15),
            {"new": 5, "old": 8},
            {"new": 7, "old": 11},
            id="more pods are shared by size, as in the documentation of Kubernetes",
        ),
        pytest.param(
            SURGE_3,
            (10, 6),
            {"new": 5, "old": 8},
            {"new": 3, "old": 6},
            id="fewer pods are shared by size, with room for the surge",
        ),
        pytest.param(
            SURGE_3,
            (10, 5),
            {"new": 5, "old": 8},
            {"new": 3, "old": 5},
            id="the new one is not enough while its pods are not available",
        ),
        pytest.param(
            strategy(maxSurge=1, maxUnavailable=0),
            (4, 3),
            {"new": 2, "old": 2},
            {"new": 2, "old": 2},
            id="as many as the surge allows stay",
        ),
        pytest.param(
            ONE_BY_ONE,
            (3, 5),
            {"new": 1, "b": 1, "a": 1},
            {"new": 2, "b": 2, "a": 1},
            id="where shares are too many, the oldest gets none",
        ),
        pytest.param(
            ONE_BY_ONE,
            (3, 4),
            {"new": 1, "b": 1, "a": 1},
            {"new": 2, "b": 1, "a": 1},
            id="the rest goes to the newest of the largest",
        ),
        pytest.param(
            ONE_BY_ONE,
            (3, 2),
            {"new": 1, "b": 1, "a": 1},
            {"new": 1, "b": 1},
            id="the rest is taken from the oldest of the largest",
        ),
        pytest.param(SURGE_3, (10, 0), {"new": 5, "old": 8}, {}, id="no replicas are none in any"),
    ],
)
def test_a_new_number_of_replicas_is_shared_among_the_replica_sets(
    spec: Any, change: tuple[int, int], sizes: dict[str, int], found: dict[str, int]
) -> None:
    """Newest first in `sizes`; replica sets that `found` does not name get none."""
    former, deployment = (make_workload(replicas=replicas, **spec) for replicas in change)
    newest = "new" if "new" in sizes else ""

    shared = scale_replica_sets(former, deployment, sizes, newest)

    assert shared == dict.fromkeys(sizes, 0) | found


def test_a_deployment_that_is_scaled_in_a_rollout_keeps_the_shares() -> None:
    rig = RolloutRig(make_workload(replicas=10, **SURGE_3))

    rig.change(replicas=10, cpu="2", **SURGE_3)
    before = rig.sizes()
    rig.change(replicas=15, cpu="2", **SURGE_3)

    assert before == [8, 5]
    assert rig.sizes() == [11, 7]


def test_a_new_replica_set_that_is_too_large_shrinks_before_the_old_ones_go() -> None:
    deployment = make_workload(replicas=3, **strategy(maxSurge=1, maxUnavailable=0))
    counts = {"old": ReplicaCount(2, 2), "new": ReplicaCount(5, 1)}

    sizes = plan_rollout(deployment, counts, "new")

    assert sizes == {"old": 2, "new": 3}, "with one new pod available, both old ones must stay"


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    rig = RolloutRig(make_workload(replicas=2, strategy={"type": "Recreate"}))

    rig.change(replicas=2, cpu="2", strategy={"type": "Recreate"})

    assert rig.sizes() == [0, 2]
    assert set(rig.cpus().values()) == {2}


def test_a_paused_deployment_is_not_rolled_out() -> None:
    rig = RolloutRig(make_workload(replicas=2))

    rig.change(replicas=3, cpu="2", paused=True)

    assert rig.sizes() == [3]


def test_a_rollback_takes_the_old_replica_set_again() -> None:
    rig = RolloutRig(make_workload(replicas=2))
    rig.change(replicas=2, cpu="2")
    rig.place(1)
    rig.change(replicas=2)
    rig.place()

    assert rig.sizes() == [2, 0]


def test_a_stateful_set_creates_one_pod_after_the_other() -> None:
    rig = RolloutRig(make_workload("StatefulSet", replicas=0))
    rig.change(kind="StatefulSet", replicas=3)

    seen = [list(rig.cpus())]
    for _ in range(3):
        rig.place(1)
        seen.append(list(rig.cpus()))

    every = ["web-0", "web-1", "web-2"]
    assert seen == [every[:1], every[:2], every, every]


def test_a_stateful_set_shrinks_from_the_last_one() -> None:
    rig = RolloutRig(make_workload("StatefulSet", replicas=3))

    rig.change(kind="StatefulSet", replicas=1)

    assert list(rig.cpus()) == ["web-0"]


def test_parallel_pods_come_at_once() -> None:
    rig = RolloutRig(make_workload("StatefulSet", replicas=0, podManagementPolicy="Parallel"))

    rig.change(kind="StatefulSet", replicas=3, podManagementPolicy="Parallel")

    assert list(rig.cpus()) == ["web-0", "web-1", "web-2"]


def test_a_stateful_set_is_updated_from_the_last_pod_one_at_a_time() -> None:
    rig = RolloutRig(make_workload("StatefulSet", replicas=3))

    rig.change(kind="StatefulSet", replicas=3, cpu="2")
    seen = [rig.cpus()]
    for _ in range(3):
        rig.place(1)
        seen.append(rig.cpus())

    assert seen == [
        {"web-0": 1, "web-1": 1, "web-2": 2},
        {"web-0": 1, "web-1": 2, "web-2": 2},
        {"web-0": 2, "web-1": 2, "web-2": 2},
        {"web-0": 2, "web-1": 2, "web-2": 2},
    ]


def test_pods_below_the_partition_keep_their_template_also_when_they_are_made_again() -> None:
    rolling: dict[str, Any] = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
    rig = RolloutRig(make_workload("StatefulSet", replicas=3, **rolling))

    rig.change(kind="StatefulSet", replicas=3, cpu="2", **rolling)
    rig.place()
    rig.cluster.delete(stored(rig.cluster, Pod, "web-0"))
    rig.controllers.run()
    rig.place()

    assert rig.cpus() == {"web-0": 1, "web-1": 1, "web-2": 2}


def test_pods_of_a_stateful_set_are_updated_when_they_are_deleted() -> None:
    on_delete: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}
    rig = RolloutRig(make_workload("StatefulSet", replicas=2, **on_delete))

    rig.change(kind="StatefulSet", replicas=2, cpu="2", **on_delete)
    rig.cluster.delete(stored(rig.cluster, Pod, "web-0"))
    rig.controllers.run()
    rig.place()

    assert rig.cpus() == {"web-0": 2, "web-1": 1}


def test_daemons_are_replaced_as_many_at_a_time_as_may_be_unavailable() -> None:
    nodes = [make_node(f"n{i}") for i in range(4)]
    rolling: dict[str, Any] = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}
    rig = RolloutRig(*nodes, make_workload("DaemonSet", **rolling))

    rig.change(kind="DaemonSet", cpu="2", **rolling)
    after_one = sorted(rig.cpus().values())
    rig.place()

    assert after_one == [1, 1, 2, 2]
    assert sorted(rig.cpus().values()) == [2, 2, 2, 2]


def test_with_a_surge_daemons_go_when_the_new_one_of_their_node_runs() -> None:
    nodes = [make_node(f"n{i}") for i in range(4)]
    rolling: dict[str, Any] = {
        "updateStrategy": {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    }
    rig = RolloutRig(*nodes, make_workload("DaemonSet", **rolling))

    rig.change(kind="DaemonSet", cpu="2", **rolling)
    before = sorted(rig.cpus().values())
    rig.place(most=1)
    after_one = sorted(rig.cpus().values())
    rig.place()

    assert before == [1, 1, 1, 1, 2, 2], "two nodes have both, and none is without"
    assert after_one == [1, 1, 1, 2, 2, 2], "an old one has gone, and the next node has both"
    assert sorted(rig.cpus().values()) == [2, 2, 2, 2]
    assert sorted(pod.node_name for pod in rig.cluster.list("Pod")) == ["n0", "n1", "n2", "n3"]


def patched(kind: str) -> Timeline:
    """A new template after ten minutes."""
    patch = {"spec": {"template": {"metadata": {"labels": {**LABELS, "v": "2"}}}}}
    target = TimelineTarget(kind, "default", "web")
    return Timeline((TimelineEvent(600, change=(ObjectPatch(target, patch),)),))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param(
            "Deployment",
            {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
            id="a deployment goes on when the new pod was ready for 30 s; the last may be younger",
        ),
        pytest.param(
            "StatefulSet",
            {"replicas": 3},
            id="a stateful set makes the next pod when the one before was ready for 30 s",
        ),
        pytest.param(
            "DaemonSet",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}},
            id="a daemon set replaces the next pod when the one before was ready for 30 s",
        ),
    ],
)
def test_a_rollout_waits_for_min_ready_seconds(kind: str, spec: Any) -> None:
    nodes = [make_node(f"n{i}", cpu="4") for i in range(3)]
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    ends_at_once = {"containers": containers, "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": LABELS}, "spec": ends_at_once}
    workload = make_workload(kind, minReadySeconds=30, template=template, **spec)

    report = Simulation([*nodes, workload, patched(kind)]).run()

    made = sorted(r.created_s for r in report.pods if r.pod.labels.get("v") == "2")
    assert made == [600, 630, 660]


def test_a_rollout_without_room_stops_and_keeps_the_old_pods() -> None:
    deployment = make_workload(replicas=4, **strategy(maxSurge=1, maxUnavailable=0))
    nodes = [make_node("a", cpu="2"), make_node("b", cpu="2")]
    patch = {"spec": {"template": {"metadata": {"labels": {**LABELS, "v": "2"}}}}}
    change = Patch(ObjectPatch(TimelineTarget("Deployment", "default", "web"), patch))

    answer = ask_what_if([*nodes, deployment], [change])

    assert answer.running == (4, 4)
    assert len(answer.pending_after) == 1


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_stateful_set_without_room_waits_with_its_first_pending_pod(replicas: int) -> None:
    report = Simulation(
        [make_node("a", cpu="1"), make_workload("StatefulSet", replicas=replicas)]
    ).run()

    assert [result.pod.name for result in report.placed] == ["web-0"]
    assert [result.pod.name for result in report.pending] == (["web-1"] if replicas > 1 else [])


def make_patient_pods(number: int) -> list[Any]:
    """Pods of high priority that preempt no others."""
    pods = [make_pod(f"high-{i}", cpu="1", priority=1000) for i in range(number)]
    return [pod.with_spec(replace(pod.spec, preemption_policy="Never")) for pod in pods]


def test_daemons_come_with_their_node_before_pods_of_higher_priority() -> None:
    objects = [
        make_node("a", cpu="4"),
        *make_patient_pods(6),
        make_workload("DaemonSet"),
    ]

    report = Simulation(objects).run()

    assert report.preempted == []
    (daemon,) = [r for r in report.pods if r.pod.name.startswith("web-")]
    assert daemon.is_placed
    assert daemon.attempts == 1
    assert len(report.placed) == 4


def test_daemons_of_an_added_node_come_first() -> None:
    timeline = make_object(
        "Timeline",
        "",
        events=[{"at": "1m", "add": [make_tree("b")]}],
    )
    objects = [
        make_node("a", cpu="2"),
        *make_patient_pods(6),
        make_workload("DaemonSet"),
        timeline,
    ]

    report = Simulation(objects).run()

    daemons = [r for r in report.pods if r.pod.name.startswith("web-")]
    assert [daemon.is_placed for daemon in daemons] == [True, True]
    assert report.preempted == []


def make_tree(name: str) -> dict[str, Any]:
    amounts = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts},
    }
