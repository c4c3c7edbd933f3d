"""SchedulingQueue driven at random: every pod is in exactly one place, and nothing is left behind."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.framework import SUCCESS, Status, unresolvable
from bayplan.framework.events import (
    FORCE_ACTIVATE,
    NODE,
    NODE_ADD,
    POD,
    ActionType,
    ClusterEvent,
    Hint,
)
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.testing.builders import make_pod
from tests.rig.random_examples import examples

PLUGINS = st.sets(st.sampled_from(["Nodes", "Pods", "Unregistered"]), max_size=2)
EVENTS = st.sampled_from(
    [
        NODE_ADD,
        FORCE_ACTIVATE,
        ClusterEvent("AssignedPod", ActionType.Delete),
        ClusterEvent("PersistentVolume", ActionType.Add),
    ]
)


def rank(info: QueuedPodInfo) -> tuple[int, float]:
    return -info.pod.priority, info.timestamp


def gate(pod: Pod) -> Status:
    gated = unresolvable("held back").by("SchedulingGates")
    return gated if pod.spec.scheduling_gates else SUCCESS


def version(name: str, priority: int, gated: bool, mark: str) -> Pod:
    gates = ["wait"] if gated else []
    return make_pod(name, uid=name, priority=priority, gates=gates, labels={"mark": mark})


class QueueMachine(RuleBasedStateMachine):
    pods = Bundle("pods")
    flying = Bundle("flying")

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.known: dict[str, Pod] = {}
        self.in_flight: dict[str, QueuedPodInfo] = {}
        self.queue = SchedulingQueue(
            self.clock,
            rank,
            gate,
            hints={
                "default-scheduler": [
                    (ClusterEvent(NODE, ActionType.Add), "Nodes", None),
                    (ClusterEvent(POD, ActionType.All), "Pods", self.odd_ones),
                    (
                        ClusterEvent(POD, ActionType.UpdatePodSchedulingGatesEliminated),
                        "SchedulingGates",
                        None,
                    ),
                ]
            },
        )

    @staticmethod
    def odd_ones(pod: Pod, old: object, new: object) -> Hint:
        return Hint.QUEUE if pod.priority % 2 else Hint.SKIP

    @rule(target=pods, priority=st.integers(0, 3), gated=st.booleans())
    def add(self, priority: int, gated: bool) -> str:
        name = f"p{len(self.known)}"
        self.wait(0.001)
        self.known[name] = pod = version(name, priority, gated, "")
        self.queue.add(pod)
        return name

    @rule(name=pods, priority=st.integers(0, 3), gated=st.booleans(), mark=st.sampled_from("ab"))
    def update(self, name: str, priority: int, gated: bool, mark: str) -> None:
        if name not in self.known:
            return
        old, new = self.known[name], version(name, priority, gated, mark)
        if gated and not old.spec.scheduling_gates:
            return  # gates cannot be added later
        self.known[name] = new
        self.queue.update(old, new)

    @rule(name=pods)
    def delete(self, name: str) -> None:
        if name in self.known:
            self.queue.delete(self.known.pop(name))
            self.known[f"gone {name}"] = make_pod(f"gone-{name}")  # keeps names unique

    @rule(target=flying)
    def pop(self) -> str:
        active = sorted(self.queue.active.heap, key=rank)
        early = sorted(self.queue.backoff.rejected, key=lambda i: (i.backoff_expiration, *rank(i)))
        info = self.queue.pop()
        assert info is next(iter(active or early), None)
        if info is None:
            return ""
        self.in_flight[info.pod.uid] = info
        return info.pod.uid

    @rule(uid=consumes(flying), unschedulable=PLUGINS, pending=PLUGINS)
    def fail(self, uid: str, unschedulable: set[str], pending: set[str]) -> None:
        info = self.in_flight.pop(uid, None)
        if info is None:
            return
        if uid not in self.known:
            self.queue.done(uid)
            return
        info.pod = self.known[uid]
        info.set_rejectors(unschedulable, pending)
        self.wait(0.001)
        assert self.queue.add_unschedulable_if_not_present(info) is not None

    @rule(uid=consumes(flying))
    def bind(self, uid: str) -> None:
        if self.in_flight.pop(uid, None) is not None:
            self.queue.done(uid)
            if uid in self.known:
                self.queue.delete(self.known.pop(uid))
                self.known[f"gone {uid}"] = make_pod(f"gone-{uid}")

    @rule(event=EVENTS)
    def happen(self, event: ClusterEvent) -> None:
        self.queue.move_all_to_active_or_backoff(event, None, None)

    @rule(names=st.lists(pods, max_size=3))
    def activate(self, names: list[str]) -> None:
        self.queue.activate([self.known[name] for name in names if name in self.known])

    @rule(seconds=st.sampled_from([0.1, 1, 7, 31, 400]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.queue.flush_due()

    @rule()
    def sleep_until_the_next_timer(self) -> None:
        due = self.queue.next_timer()
        if due is not None:
            self.clock.advance(max(due - self.clock.monotonic(), 0))
            moved_or_gated = self.queue.flush_due() or self.queue.gated()
            assert moved_or_gated, "the timer was for nothing"

    @invariant()
    def each_known_pod_is_in_exactly_one_place(self) -> None:
        queue = self.queue
        places = [
            *(info.pod.uid for info in queue.active.heap),
            *(info.pod.uid for info in queue.backoff.rejected),
            *(info.pod.uid for info in queue.backoff.errors),
            *(info.pod.uid for info in queue.unschedulable),
        ]
        flying = {info.pod.uid for info in queue.in_flight.infos()}
        waiting = {name for name in self.known if not name.startswith("gone ")} - flying
        assert sorted(places) == sorted(waiting)
        assert flying == set(self.in_flight)
        assert sum(queue.pending().values()) == len(queue) == len(places)

    @invariant()
    def the_groups_hold_the_unschedulable_pods(self) -> None:
        grouped = {
            info.pod.uid: rejection
            for rejection, infos in self.queue.unschedulable.groups()
            for info in infos
        }
        assert grouped == {i.pod.uid: i.rejection for i in self.queue.unschedulable}
        assert all(rejection.plugins for rejection in grouped.values())

    @invariant()
    def the_queue_holds_the_latest_versions(self) -> None:
        for name, pod in self.known.items():
            info = self.queue.get(pod)
            assert info is None or info.pod is pod, name

    @invariant()
    def backoff_is_not_over_and_not_too_long(self) -> None:
        now = self.clock.now().timestamp()
        for info in (*self.queue.backoff.rejected, *self.queue.backoff.errors):
            assert 0 <= info.backoff_expiration + 1 - info.timestamp <= 11
            assert not info.is_gated
            assert info.backoff_expiration + 1 > now

    @invariant()
    def events_are_kept_only_for_pods_in_flight(self) -> None:
        if not self.in_flight:
            assert self.queue.in_flight.event_count == 0

    @invariant()
    def gated_pods_and_no_others_are_held_back(self) -> None:
        for info in self.queue.active.heap:
            assert not info.is_gated
        for info in self.queue.gated():
            assert info.gating_plugin in info.unschedulable_plugins


QueueMachine.TestCase.settings = settings(
    max_examples=examples(30), stateful_step_count=40, deadline=None
)
TestQueue = QueueMachine.TestCase
