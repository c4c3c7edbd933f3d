"""Tests of the queue in which pod groups are entries."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from bayplan.api.meta import ObjectMeta
from bayplan.api.pod import Pod
from bayplan.api.pod_groups import GangPolicy, PodGroup, PodGroupPolicy, PodGroupSpec
from bayplan.clock import ManualClock
from bayplan.framework import SUCCESS, Code, Status, failure, unschedulable
from bayplan.framework.events import UNSCHEDULED_POD_ADD
from bayplan.queue.active import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE
from bayplan.queue.backoff import QueueSettings
from bayplan.queue.group_queue import INCOMPLETE, PENDING, GroupQueue, QueuedGroupInfo
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import DEFAULT_RELEASE
from bayplan.testing.builders import make_pod

GATES = FeatureGates(
    {"GenericWorkload": True}, release=replace(DEFAULT_RELEASE, names_target_pods=True)
)
REFUSED = unschedulable("it does not fit")
PLUGIN = "Gate"
HELD = Status(Code.UnschedulableAndUnresolvable, ("held",), PLUGIN)


def group(name: str = "train", priority: int = 0) -> PodGroup:
    policy = PodGroupPolicy(gang=GangPolicy(min_count=2))
    spec = PodGroupSpec(scheduling_policy=policy, priority=priority)
    return PodGroup(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=spec)


def member(name: str, of: str = "train", priority: int = 0) -> Pod:
    return make_pod(name, priority=priority, spec={"schedulingGroup": {"podGroupName": of}})


class Rig:
    """A queue, its clock, and a gate that holds the pods in `held`."""

    def __init__(self, *groups: PodGroup) -> None:
        self.clock = ManualClock()
        self.held: set[str] = set()
        settings = QueueSettings(gates=GATES)
        registered = ((UNSCHEDULED_POD_ADD, PLUGIN, None),)
        self.queue = GroupQueue(
            self.clock,
            lambda info: (-info.pod.priority, info.timestamp),
            self._pre_enqueue,
            hints={"default-scheduler": registered},
            settings=settings,
        )
        for one in groups:
            self.queue.add_group(one)

    def _pre_enqueue(self, pod: Pod) -> Status:
        return HELD if pod.name in self.held else SUCCESS

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.clock.advance(0.001)
            self.queue.add(pod)

    def pop(self) -> QueuedGroupInfo:
        info = self.queue.pop()
        assert isinstance(info, QueuedGroupInfo)
        return info

    def fail(self, entry: QueuedGroupInfo, infos: Iterable[QueuedPodInfo], status: Status) -> None:
        """End an attempt in which these members got no node."""
        for info in infos:
            info.set_rejectors(["NodeResourcesFit"])
            self.queue.add_unschedulable_if_not_present(info)
        for info in entry.members:
            self.queue.done(info.pod.uid)
        self.queue.end_group(entry, status)


def names(entry: QueuedGroupInfo) -> list[str]:
    return [info.pod.name for info in entry.members]


def test_members_are_one_entry_in_the_order_in_which_they_came() -> None:
    rig = Rig(group())
    rig.add(member("b"), member("a"))

    entry = rig.pop()

    assert names(entry) == ["b", "a"]
    assert rig.queue.pop() is None
    assert [info.attempts for info in (entry, *entry.members)] == [1, 1, 1]


def test_groups_and_pods_are_ordered_by_their_priority() -> None:
    rig = Rig(group("low", 1), group("high", 100))
    rig.add(member("l", "low", 1), make_pod("single", priority=50), member("h", "high", 100))

    popped = [rig.queue.pop() for _ in range(3)]

    assert [info and info.pod.name for info in popped] == [
        "podgroup:high",
        "single",
        "podgroup:low",
    ]


def test_a_member_without_a_group_waits_for_it() -> None:
    rig = Rig()
    rig.add(member("a"))

    assert rig.queue.part_of("default/a") == INCOMPLETE
    assert rig.queue.pending()[INCOMPLETE] == 1
    rig.queue.add_group(group())
    assert rig.queue.part_of("default/a") == ACTIVE


def test_members_of_a_group_that_went_wait_for_another_one() -> None:
    rig = Rig(group())
    rig.add(member("a"), member("b"))

    rig.queue.delete_group(group())

    assert rig.queue.pop() is None
    assert rig.queue.pending()[INCOMPLETE] == 2
    rig.queue.add_group(group())
    assert names(rig.pop()) == ["a", "b"]


def test_a_member_that_comes_during_the_attempt_is_tried_after_it() -> None:
    rig = Rig(group())
    rig.add(member("a"))
    entry = rig.pop()

    rig.add(member("b"))

    assert rig.queue.part_of("default/b") == PENDING
    rig.queue.done(entry.members[0].pod.uid)
    rig.queue.end_group(entry, SUCCESS)
    assert rig.queue.part_of("default/b") == ACTIVE
    assert names(rig.pop()) == ["b"]


def test_nothing_is_left_of_a_group_whose_members_are_bound() -> None:
    rig = Rig(group())
    rig.add(member("a"))
    entry = rig.pop()

    rig.fail(entry, (), SUCCESS)

    assert len(rig.queue) == 0
    assert rig.queue.waits_for_events


def test_members_left_behind_are_tried_at_once_after_a_success() -> None:
    rig = Rig(group())
    rig.add(member("a"), member("b"))
    entry = rig.pop()
    came = entry.timestamp
    rig.clock.advance(5)

    rig.fail(entry, entry.members[1:], SUCCESS)

    again = rig.pop()
    assert names(again) == ["b"]
    assert again.timestamp == came


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        pytest.param(REFUSED, (1, 0), id="refused"),
        pytest.param(failure("broken"), (0, 1), id="an error"),
    ],
)
def test_a_group_that_fails_backs_off(status: Status, counts: tuple[int, int]) -> None:
    rig = Rig(group())
    rig.add(member("a"), member("b"))
    entry = rig.pop()

    rig.fail(entry, entry.members, status)

    assert rig.queue.part_of("default/a") == BACKOFF
    assert rig.queue.pop() is None, "a group is not popped before its backoff is over"
    assert (entry.unschedulable_count, entry.consecutive_errors_count) == counts
    rig.clock.advance(2.5)
    assert rig.queue.flush_due() == 1
    assert names(rig.pop()) == ["a", "b"]


def test_the_longest_backoff_grows_with_the_square_root_of_the_size() -> None:
    rig = Rig(group())
    rig.add(*(member(f"m{number}") for number in range(9)))
    entry = rig.pop()
    entry.unschedulable_count = 20

    rig.fail(entry, entry.members, REFUSED)

    assert int(entry.backoff_expiration) == int(entry.timestamp + 30)


def test_a_group_is_gated_as_long_as_one_member_is() -> None:
    rig = Rig(group())
    rig.held = {"b"}
    rig.add(member("a"), member("b"))

    assert rig.queue.pop() is None
    assert rig.queue.part_of("default/a") == UNSCHEDULABLE
    assert rig.queue.pending()[GATED] == 2
    assert [info.pod.name for info in rig.queue.gated()] == ["b"]

    rig.held.clear()
    rig.queue.move_all_to_active_or_backoff(UNSCHEDULED_POD_ADD, None, member("c"))
    assert names(rig.pop()) == ["a", "b"]


def test_activating_a_member_activates_its_group() -> None:
    rig = Rig(group())
    rig.add(member("a"), member("b"))
    entry = rig.pop()
    rig.fail(entry, entry.members, REFUSED)

    rig.queue.activate([entry.members[0].pod])

    assert names(rig.pop()) == ["a", "b"]


def test_a_deleted_member_leaves_the_entry_and_the_last_one_ends_it() -> None:
    rig = Rig(group())
    first, second = member("a"), member("b")
    rig.add(first, second)

    rig.queue.delete(first)
    assert rig.queue.part_of("default/b") == ACTIVE
    assert rig.queue.get(first) is None
    rig.queue.delete(second)

    assert rig.queue.pop() is None
    assert len(rig.queue) == 0


def test_members_that_were_tried_before_come_first() -> None:
    rig = Rig(group())
    rig.add(member("b"))
    entry = rig.pop()
    rig.add(member("a"))
    rig.clock.advance(1)

    rig.fail(entry, entry.members, SUCCESS)

    assert names(rig.pop()) == ["b", "a"]
