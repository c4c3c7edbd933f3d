"""Replay: recorded events are replayed, and decisions are compared."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.sim.recording_file import RecordedEvent, Recording
from bayplan.sim.replay import Replay
from bayplan.sim.replay_report import ReplayReport, ReplayVerdict
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod

START = datetime(2026, 1, 1, tzinfo=UTC)
Happening = tuple[float, str, Any]


def pod(name: str, node: str = "", **more: Any) -> Pod:
    return make_pod(name, uid=f"uid-{name}", node_name=node, **more)


def replay(objects: list[Any], happenings: list[Happening], **options: Any) -> ReplayReport:
    events = [RecordedEvent(at_s, kind, obj) for at_s, kind, obj in happenings]
    return Replay(Recording(START, objects, events, duration_s=1000.0), Settings(**options)).run()


def verdicts(report: ReplayReport) -> dict[str, ReplayVerdict]:
    return {one.pod.name: one.verdict for one in report.pods}


NEVER_PREEMPTS = {"preemptionPolicy": "Never"}
SMALL, LARGE = make_node("small", cpu="2"), make_node("large", cpu="8")


def test_every_verdict() -> None:
    report = replay(
        [SMALL, LARGE, pod("running", "small", cpu="1"), pod("waiting", cpu="1")],
        [
            (1.0, "MODIFIED", pod("waiting", "large", cpu="1")),
            (2.0, "ADDED", pod("elsewhere", cpu="1")),
            (2.5, "MODIFIED", pod("elsewhere", "small", cpu="1")),
            (3.0, "ADDED", pod("too-big", cpu="64")),
            (4.0, "ADDED", pod("squeezed", cpu="7")),
            (4.5, "MODIFIED", pod("squeezed", "large", cpu="7")),
            (5.0, "ADDED", pod("forgotten", cpu="100m")),
        ],
    )

    assert verdicts(report) == {
        "waiting": ReplayVerdict.SAME,
        "elsewhere": ReplayVerdict.OTHER,  # LeastAllocated prefers the large node
        "too-big": ReplayVerdict.PENDING,
        "squeezed": ReplayVerdict.PENDING_HERE,  # two pods are on the large node here
        "forgotten": ReplayVerdict.PENDING_THEN,
    }
    assert [one.pod.name for one in report.differing] == ["elsewhere", "squeezed", "forgotten"]


def test_another_node_of_equal_total_is_equal() -> None:
    twins = [make_node(name, cpu="4") for name in ("a", "b", "c", "d")]
    pods = [f"p{i}" for i in range(4)]
    happenings: list[Happening] = []
    for i, name in enumerate(pods):
        happenings.append((i + 1.0, "ADDED", pod(name, cpu="1")))
        happenings.append((i + 1.5, "MODIFIED", pod(name, twins[i].name, cpu="1")))

    report = replay(twins, happenings, seed=0)

    assert report.pods[0].verdict is ReplayVerdict.EQUAL  # all nodes are empty
    assert report.counts()[ReplayVerdict.EQUAL] >= 1
    assert report.pods[0] not in report.differing
    assert report.to_dict()["summary"]["equal"] == report.counts()[ReplayVerdict.EQUAL]


@pytest.mark.parametrize(
    ("later_s", "first"),
    [
        pytest.param(0.005, "vip", id="delivered together: the more important one is first"),
        pytest.param(0.5, "plain", id="delivered later: the other has the room by then"),
    ],
)
def test_events_within_a_moment_are_delivered_together(later_s: float, first: str) -> None:
    plain, vip = pod("plain", cpu="2"), pod("vip", cpu="2", priority=9, spec=NEVER_PREEMPTS)

    report = replay([SMALL], [(1.001, "ADDED", plain), (1.001 + later_s, "ADDED", vip)])

    assert [one.pod.name for one in report.pods if one.replayed is not None] == [first]


def test_pods_are_deleted_at_their_recorded_time() -> None:
    report = replay(
        [SMALL, pod("first", "small", cpu="2"), pod("second", cpu="2")],
        [
            (7.0, "DELETED", pod("first", "small", cpu="2")),
            (7.5, "MODIFIED", pod("second", "small", cpu="2")),
        ],
    )

    (second,) = report.pods
    assert second.verdict is ReplayVerdict.SAME
    assert second.replayed is not None
    assert second.replayed.time_s == pytest.approx(7.0, abs=1.5)  # after its backoff


def test_a_pod_deleted_while_pending_here_is_gone() -> None:
    leaving = pod("p", "small", cpu="4").replace(deletion_timestamp="2026-01-01T00:01:00Z")
    report = replay(
        [SMALL],
        [
            (1.0, "ADDED", pod("p", cpu="4")),
            (2.0, "MODIFIED", pod("p", "small", cpu="4")),
            (3.0, "MODIFIED", leaving),
            (4.0, "ADDED", make_node("larger", cpu="8")),
        ],
    )

    assert verdicts(report) == {"p": ReplayVerdict.PENDING_HERE}


def test_pods_of_another_scheduler_keep_their_recorded_node() -> None:
    other = {"schedulerName": "another"}
    report = replay(
        [SMALL, LARGE],
        [
            (1.0, "ADDED", pod("theirs", cpu="8", spec=other)),
            (1.1, "MODIFIED", pod("theirs", "large", cpu="8", spec=other)),
            (2.0, "ADDED", pod("ours", cpu="1")),
            (2.1, "MODIFIED", pod("ours", "small", cpu="1")),
        ],
    )

    assert verdicts(report) == {"ours": ReplayVerdict.SAME}


def test_preemption_is_recomputed() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim = pod("low", "small", cpu="2", priority=0)
    going = make_pod(
        "low",
        uid="uid-low",
        node_name="small",
        cpu="2",
        priority=0,
        status={"conditions": [condition]},
    ).replace(deletion_timestamp="2026-01-01T00:00:31Z")
    happenings: list[Happening] = [
        (1.0, "ADDED", pod("high", cpu="2", priority=100)),
        (1.1, "MODIFIED", going),
        (31.0, "DELETED", going),
        (31.2, "MODIFIED", pod("high", "small", cpu="2", priority=100)),
    ]

    alone = replay([SMALL, victim], happenings)
    with_room = replay([SMALL, LARGE, victim], happenings)

    assert verdicts(alone) == {"high": ReplayVerdict.SAME}
    assert [(v.name, p.name) for v, p in alone.preempted] == [("low", "high")]
    assert verdicts(with_room) == {"high": ReplayVerdict.OTHER}
    assert with_room.preempted == []


def test_a_deleted_node_takes_its_current_pods_along() -> None:
    report = replay(
        [SMALL, LARGE],
        [
            (1.0, "ADDED", pod("p", cpu="1")),
            (1.1, "MODIFIED", pod("p", "small", cpu="1")),
            (2.0, "DELETED", LARGE),
        ],
    )

    (one,) = report.pods
    assert (one.verdict, one.is_lost) == (ReplayVerdict.OTHER, True)


def test_nodes_may_be_added_later_and_change() -> None:
    cordoned = LARGE.replace(unschedulable=True)
    report = replay(
        [],
        [
            (1.0, "ADDED", pod("p", cpu="4")),
            (2.0, "ADDED", cordoned),
            (60.0, "MODIFIED", LARGE),
            (61.0, "MODIFIED", pod("p", "large", cpu="4")),
        ],
    )

    (one,) = report.pods
    assert one.verdict is ReplayVerdict.SAME
    assert one.replayed is not None
    assert one.replayed.time_s >= 60.0


def test_workloads_create_no_pods() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    replica_set = decode_object(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
    )

    assert replay([SMALL, replica_set], [(1.0, "MODIFIED", replica_set)]).pods == []


def claim(**more: Any) -> Any:
    metadata = {"name": "data", "namespace": "default", "uid": "c-1", **more.pop("metadata", {})}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
        **more,
    }
    tree = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    return decode_object(tree)


def test_volumes_are_provisioned_for_the_new_placements() -> None:
    storage_class = decode_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "late"},
            "provisioner": "csi.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    volume = decode_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": "pvc-c-1",
                "annotations": {"pv.kubernetes.io/provisioned-by": "csi.example.com"},
            },
            "spec": {
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "default", "name": "data"},
            },
        }
    )
    uses = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    report = replay(
        [SMALL, LARGE, storage_class],
        [
            (1.0, "ADDED", claim()),
            (1.0, "ADDED", pod("p", cpu="1", spec=uses)),
            (1.5, "MODIFIED", claim(metadata={"annotations": {"volume.kubernetes.io/selected-node": "small"}})),
            (2.0, "ADDED", volume),
            (2.1, "MODIFIED", claim(volumeName="pvc-c-1")),
            (2.2, "MODIFIED", pod("p", "small", cpu="1", spec=uses)),
        ],
    )  # fmt: skip

    (one,) = report.pods
    assert one.verdict is ReplayVerdict.OTHER
    assert one.replayed is not None
    assert one.replayed.node_name == "large"


def test_a_replay_is_deterministic() -> None:
    objects = [make_node(f"n{i}", cpu="8") for i in range(5)]
    happenings: list[Happening] = [(i * 0.1, "ADDED", pod(f"p{i}", cpu="1")) for i in range(30)]

    def places() -> list[str]:
        pods = replay(list(objects), happenings, seed=0).pods
        return [one.replayed.node_name for one in pods if one.replayed]

    assert places() == places()
