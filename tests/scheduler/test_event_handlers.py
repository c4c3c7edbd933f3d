"""Effect of each change in the cluster on the cache and the queue."""

from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.framework import SKIP, Status, unresolvable, wait
from bayplan.framework.events import ClusterEvent
from bayplan.framework.interface import PreEnqueuePlugin
from bayplan.plugins.gang_scheduling.plugin import GangScheduling
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.scenarios import DelayedResult, Scenario, Scripted

SCRIPTED = [{"name": "Scripted"}]
PROFILE = {"plugins": {"multiPoint": {"enabled": SCRIPTED}, "bind": {"enabled": SCRIPTED}}}


class Told(Scenario):
    """A scenario that notes the events of the queue."""

    def __init__(
        self, *objects: Any, plugins: Any = (Scripted,), profile: dict[str, Any] | None = PROFILE
    ) -> None:
        super().__init__(*objects, plugins=plugins, profile=profile)
        self.told: list[str] = []
        self.checked: list[bool] = []
        move = self.scheduler.queue.move_all_to_active_or_backoff

        def note(event: ClusterEvent, old: Any, new: Any, pre_check: Any = None) -> int:
            self.told.append(str(event))
            self.checked.append(pre_check is not None)
            return move(event, old, new, pre_check)

        self.scheduler.queue.move_all_to_active_or_backoff = note  # type: ignore[method-assign]

    def counts(self) -> dict[str, int]:
        """Pods on each node."""
        table = self.scheduler.cache.table
        return {name: int(table.pod_count[row]) for name, row in table.row_of.items()}

    def set_status(self, name: str, **changes: Any) -> None:
        self.change(name, status=replace(self.pod(name).status, **changes))


# Nodes


def test_nodes_come_change_and_go() -> None:
    told = Told()

    told.add(make_node("a"))
    assert told.told == ["NodeAdd"]
    assert told.scheduler.cache.table.node_count == 1

    told.cluster.update(make_node("a"))
    assert told.told == ["NodeAdd"], "nothing that matters has changed"

    told.cluster.update(make_node("a", cpu="8", labels={"x": "y"}, taints=["k:NoSchedule"]))
    assert told.told[1:] == [
        "NodeUpdateNodeAllocatable",
        "NodeUpdateNodeLabel",
        "NodeUpdateNodeTaint",
    ]

    told.cluster.delete(make_node("a"))
    assert told.told[4:] == ["NodeDelete"]
    assert told.scheduler.cache.table.node_count == 0


def test_a_node_is_there_before_others_are_told_and_until_they_were() -> None:
    told = Told()
    seen: list[tuple[str, int]] = []
    queue = told.scheduler.queue
    move = queue.move_all_to_active_or_backoff

    def look(event: ClusterEvent, *rest: Any) -> int:
        seen.append((str(event), told.scheduler.cache.table.node_count))
        return move(event, *rest)

    with patch.object(queue, "move_all_to_active_or_backoff", look):
        told.add(make_node("a"))
        told.cluster.delete(make_node("a"))

    assert seen == [("NodeAdd", 1), ("NodeDelete", 1)]


# Pods that wait


def test_a_new_pod_goes_to_the_queue_without_an_event() -> None:
    told = Told()

    told.add(make_pod("p"))

    assert told.part_of("p") == "active"
    assert told.told == []


class Company(PreEnqueuePlugin):
    """Holds every pod back; it waits for anything."""

    name = "Company"

    def pre_enqueue(self, pod: Pod) -> Status:
        return unresolvable("alone")


@pytest.mark.parametrize("plugin", [GangScheduling, Company])
def test_with_plugins_that_wait_for_company_new_pods_are_told(plugin: Any) -> None:
    if plugin is GangScheduling:
        enabled = {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}
        told = Told(profile={"plugins": enabled})
    else:
        told = Told(plugins=(Company,), profile=None)

    told.add(make_pod("p"))

    assert told.told == ["UnschedulablePodAdd"]


def test_a_pod_of_another_scheduler_is_ignored() -> None:
    told = Told(make_node("a"))
    other = {"schedulerName": "other"}
    told.told.clear()

    told.add(make_pod("p", spec=other))
    told.change("p", labels={"x": "y"})
    told.cluster.delete(told.pod("p"))

    assert len(told.scheduler.queue) == 0
    assert told.told == []


def test_an_update_without_a_new_version_is_no_update() -> None:
    told = Told()
    told.add(make_pod("p").replace(resource_version="7"))
    pod = told.pod("p")

    told.scheduler.on_update(pod, pod.replace(labels={"x": "y"}))

    info = told.scheduler.queue.get(pod)
    assert info is not None
    assert info.pod is pod


def test_an_update_of_a_waiting_pod_reaches_the_queue() -> None:
    told = Told(make_node("a", cpu="1"))
    told.add(make_pod("p", cpu="2"))
    told.run()
    assert told.part_of("p") == "unschedulable"
    told.told.clear()

    told.change("p", spec=make_pod("p", cpu="1").spec)

    assert told.part_of("p") in ("active", "backoff"), "it asks for less"
    assert told.told == []


@pytest.mark.parametrize(
    ("before", "after", "told_of"),
    [
        pytest.param("", "a", [], id="a first nomination takes nothing from anyone"),
        pytest.param("a", "a", [], id="the same"),
        pytest.param("a", "b", ["AssignedPodDelete"], id="to another node"),
        pytest.param("a", "", ["AssignedPodDelete"], id="to none"),
    ],
)
def test_a_nomination_that_ends_gives_room_to_pods_that_are_not_more_important(
    before: str, after: str, told_of: list[str]
) -> None:
    told = Told(make_node("a", cpu="1"))
    for name, priority in (("low", 4), ("same", 5), ("high", 6)):
        told.add(make_pod(name, cpu="2", priority=priority))
    told.run()
    told.add(make_pod("p", cpu="1", priority=5, nominated_node_name=before))
    told.told.clear()
    told.checked.clear()

    told.set_status("p", nominated_node_name=after)

    assert told.told == told_of
    assert all(told.checked)


def test_the_check_of_a_nomination_that_ends_is_by_priority() -> None:
    told = Told(make_node("a"))
    told.plugin(Scripted).answers["permit"] = unresolvable("no")  # it waits for anything
    for name, priority in (("low", 4), ("same", 5), ("high", 6)):
        told.add(make_pod(name, priority=priority))
    told.run()
    told.add(make_pod("p", priority=5, nominated_node_name="a"))

    told.cluster.delete(told.pod("p"))

    assert told.told[-1] == "AssignedPodDelete"
    assert told.part_of("high") == "unschedulable"
    assert {told.part_of("low"), told.part_of("same")} <= {"active", "backoff"}


def test_a_waiting_pod_that_goes_causes_no_event() -> None:
    told = Told()
    told.add(make_pod("p"))

    told.cluster.delete(told.pod("p"))

    assert len(told.scheduler.queue) == 0
    assert told.told == []


# Pods on nodes


def test_pods_on_nodes_come_change_and_go() -> None:
    told = Told(make_node("a"))
    told.told.clear()

    told.add(make_pod("p", node_name="a", cpu="2"))
    assert told.told == ["AssignedPodAdd"]
    assert told.counts() == {"a": 1}

    told.change("p", labels={"x": "y"}, spec=make_pod("p", cpu="1").spec)
    assert told.told[1:] == ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"]

    told.change("p", annotations={"x": "y"})
    assert told.told[3:] == ["AssignedPodUpdate"]

    told.cluster.delete(told.pod("p"))
    assert told.told[4:] == ["AssignedPodDelete"]
    assert told.counts() == {"a": 0}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_finishes_is_seen_as_one_that_goes(phase: str) -> None:
    told = Told(make_node("a"))
    told.add(make_pod("p", node_name="a"))
    told.told.clear()

    told.set_status("p", phase=phase)
    assert told.told == ["AssignedPodDelete"]
    assert told.counts() == {"a": 0}

    told.cluster.delete(told.pod("p"))
    assert told.told == ["AssignedPodDelete"]


def test_a_waiting_pod_that_another_places_leaves_the_queue() -> None:
    told = Told(make_node("a"))
    told.add(make_pod("p", gates=["g"]))
    assert told.part_of("p") == "gated"
    told.told.clear()

    told.cluster.bind(told.pod("p"), "a")

    assert told.part_of("p") == "bound"
    assert told.told == ["AssignedPodAdd"]


def test_a_pod_that_takes_the_name_of_another_is_another() -> None:
    """A watch may leave out the delete between two lives of a name."""
    told = Told(make_node("a"))
    told.add(make_pod("p", node_name="a"))
    old = told.pod("p")
    told.told.clear()

    told.scheduler.on_update(old, make_pod("p", uid="another").replace(resource_version="99"))

    assert told.told == ["AssignedPodDelete"]
    assert told.counts() == {"a": 0}
    assert [info.pod.uid for info in told.scheduler.queue.active.heap] == ["another"]


def test_a_pod_that_takes_the_name_and_another_node() -> None:
    told = Told(make_node("a"), make_node("b"))
    told.add(make_pod("p", node_name="a"))
    another = make_pod("p", uid="another", node_name="b").replace(resource_version="99")

    told.scheduler.on_update(told.pod("p"), another)
    assert told.counts() == {"a": 0, "b": 1}

    told.scheduler.on_delete(another)
    assert told.counts() == {"a": 0, "b": 0}


def test_a_pod_that_takes_the_name_of_one_that_waits_starts_anew() -> None:
    told = Told(make_node("a", cpu="1"))
    told.add(make_pod("p", cpu="2"))
    told.run()
    another = make_pod("p", uid="another", cpu="2").replace(resource_version="99")

    told.scheduler.on_update(told.pod("p"), another)

    info = told.scheduler.queue.get(another)
    assert info is not None
    assert (info.pod, info.attempts) == (another, 0)
    assert another.key in told.scheduler.queue.active.heap


# Pods that are assumed


def assumed(answers: dict[str, Any]) -> Told:
    """`p` has a node by our decision alone; it waits on Permit, or is in PreBind."""
    told = Told(make_node("a", cpu="2"))
    told.plugin(Scripted).answers.update(answers)
    told.add(make_pod("p", cpu="2"))
    told.run()
    told.plugin(Scripted).answers.clear()
    told.add(make_pod("rival", cpu="2"))
    told.run()
    assert told.part_of("p") in ("waiting", "assumed")
    assert told.part_of("rival") == "unschedulable"
    assert told.counts() == {"a": 1}
    told.told.clear()
    return told


WAITING = {"permit": (wait("a moment"), 30)}
IN_PRE_BIND = {"pre_bind": DelayedResult(30)}
IN_BIND = {"bind": DelayedResult(30, SKIP)}


@pytest.mark.parametrize("answers", [WAITING, IN_PRE_BIND, IN_BIND])
def test_an_update_of_an_assumed_pod_changes_nothing(answers: dict[str, Any]) -> None:
    told = assumed(answers)
    held = told.scheduler.cache.get_pod(told.pod("p"))

    told.change("p", labels={"x": "y"})

    assert told.told == []
    assert told.scheduler.cache.get_pod(told.pod("p")) is held
    assert told.scheduler.queue.get(told.pod("p")) is None
    told.advance(30)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_pod_deleted_while_it_waits_on_permit_is_rejected_and_undone(at_once: bool) -> None:
    told = assumed(WAITING)
    pod = told.pod("p")

    if at_once:
        told.cluster.delete(pod)
    else:
        told.change("p", deletion_timestamp="2000-01-01T00:00:00Z")

    assert told.counts() == {"a": 0}
    assert len(told.scheduler.waiting_pods) == 0
    assert [call[1] for call in told.plugin(Scripted).journal if call[2] == "p"][-1] == "unreserve"
    assert told.events_of("p")[-1].note == "0/1 nodes are available: 1 removed."
    assert told.part_of("rival") in ("active", "backoff")
    assert "AssignedPodDelete" in told.told
    if at_once:
        assert len(told.scheduler.queue.in_flight) == 0
        told.advance(2)
        assert told.part_of("rival") == "bound"
    else:
        info = told.scheduler.queue.get(told.pod("p"))
        assert info is not None, "it is in the queue until it is gone"
        told.cluster.delete(told.pod("p"))
        told.advance(2)
        assert told.part_of("rival") == "bound"


@pytest.mark.parametrize("answers", [IN_PRE_BIND, IN_BIND])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_pod_deleted_during_pre_bind_frees_its_place_at_once(
    answers: dict[str, Any], at_once: bool
) -> None:
    told = assumed(answers)

    if at_once:
        told.cluster.delete(told.pod("p"))
    else:
        told.change("p", deletion_timestamp="2000-01-01T00:00:00Z")

    assert told.counts() == {"a": 0}
    assert told.told == ["AssignedPodDelete"]
    told.advance(2)
    assert told.part_of("rival") == "bound"
    assert told.counts() == {"a": 1}

    told.advance(30)  # its binding ends only now, and fails
    calls = [call[1] for call in told.plugin(Scripted).journal if call[2] == "p"]
    assert calls.count("unreserve") == 1
    assert told.counts() == {"a": 1}
    assert told.part_of("rival") == "bound"
    if not at_once:
        told.cluster.delete(told.pod("p"))
    assert len(told.scheduler.queue) == 0
    assert len(told.scheduler.queue.in_flight) == 0


def test_an_assumed_pod_that_another_places_elsewhere_is_there() -> None:
    told = Told(make_node("a"), make_node("b"))
    told.plugin(Scripted).answers.update(IN_PRE_BIND)
    told.add(make_pod("p"))
    told.run()

    told.cluster.bind(told.pod("p"), "b")
    assert told.counts() == {"a": 0, "b": 1}
    told.advance(60)

    assert told.counts() == {"a": 0, "b": 1}
    assert told.part_of("p") == "bound"


# Other objects


@pytest.mark.parametrize(
    ("kind", "namespace", "resource"),
    [
        ("PersistentVolume", "", "PersistentVolume"),
        ("PersistentVolumeClaim", "default", "PersistentVolumeClaim"),
        ("StorageClass", "", "storage.k8s.io/StorageClass"),
        ("CSINode", "", "storage.k8s.io/CSINode"),
        ("CSIDriver", "", "storage.k8s.io/CSIDriver"),
        ("CSIStorageCapacity", "default", "storage.k8s.io/CSIStorageCapacity"),
        ("VolumeAttachment", "", "storage.k8s.io/VolumeAttachment"),
        ("ResourceClaim", "default", "resource.k8s.io/ResourceClaim"),
        ("ResourceSlice", "", "resource.k8s.io/ResourceSlice"),
        ("DeviceClass", "", "resource.k8s.io/DeviceClass"),
        ("PodGroup", "default", "scheduling.k8s.io/PodGroup"),
    ],
)
def test_other_objects_are_told_by_their_resource(kind: str, namespace: str, resource: str) -> None:
    told = Told()
    extra: dict[str, Any] = {"StorageClass": {"provisioner": "x"}}.get(kind, {})

    told.add(make_object(kind, "x", namespace=namespace, **extra))
    found = told.cluster.get(kind, namespace, "x")
    told.cluster.update(found)
    told.cluster.delete(found)

    assert told.told == [f"{resource}Add", f"{resource}Update", f"{resource}Delete"]


def test_namespaces_and_objects_that_affect_no_plugin_cause_no_event() -> None:
    told = Told()

    told.add(make_object("Namespace", "n", metadata={"labels": {"team": "x"}}))
    assert told.scheduler.cache.table.namespace_labels("n")["team"] == "x"
    told.cluster.delete(told.cluster.get("Namespace", "", "n"))
    assert told.scheduler.cache.table.namespace_labels("n") == {}
    told.add(make_object("Service", "s", namespace="default"))

    assert told.told == []


# Events that contradict the cache


@pytest.mark.parametrize(
    ("event", "told_events", "message"),
    [
        pytest.param(
            lambda scheduler: scheduler.on_add(make_pod("p", node_name="a")),
            ["AssignedPodAdd"],
            "AddPod failed: pod default/p(default/p) was already in added state",
            id="a pod that is on its node is added again",
        ),
        pytest.param(
            lambda scheduler: scheduler.on_update(
                make_pod("q", node_name="a", labels={"x": "1"}), make_pod("q", node_name="a")
            ),
            ["AssignedPodUpdatePodLabel"],
            "UpdatePod failed: pod default/q(default/q) is not added to scheduler cache",
            id="a pod that is not in the cache is changed",
        ),
        pytest.param(
            lambda scheduler: scheduler.on_delete(make_pod("q", node_name="a")),
            ["AssignedPodDelete"],
            "RemovePod failed: pod default/q(default/q) is not found in scheduler cache",
            id="a pod that is not in the cache is deleted",
        ),
        pytest.param(
            lambda scheduler: scheduler.on_delete(make_node("b")),
            ["NodeDelete"],
            "RemoveNode failed: node b is not found",
            id="a node that is not in the cache is deleted",
        ),
    ],
)
def test_what_the_cache_refuses_is_logged_and_the_event_goes_on(
    event: Any, told_events: list[str], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told(make_node("a"), make_pod("p", node_name="a"))

    event(told.scheduler)

    assert told.told == told_events
    assert message in caplog.text
    assert told.counts() == {"a": 1}
