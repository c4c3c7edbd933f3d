"""History: the first state of a cluster, and each change of a pod or a node since. Read this first.

It watches a cluster as the scheduler does, so it works for simulations and live clusters alike: the
report file holds all of it, the live page requests the changes since its last request.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import msgspec

from ..api.node import Node
from ..api.pod import Pod
from ..api.pod_status import DISRUPTION_TARGET, POD_SCHEDULED
from ..clock import Clock
from ..scheduler import Attempt, Scheduler
from .value_numbers import NONE, Numbering, Tree, in_columns

FORMAT = 2
"""Version of the data format; a page reads the format it was made for."""
MOST_LOOKUPS = 2_000_000
"""Limit of queue look-ups during a run; beyond it, only the end is recorded."""


class HistoryState(IntEnum):
    """State of a pod, or an event of a node."""

    GONE = 0
    ACTIVE = 1
    BACKOFF = 2
    UNSCHEDULABLE = 3
    GATED = 4
    HELD = 5
    """A node is reserved for it: it waits on Permit, or is being bound."""
    RUNNING = 6
    TERMINATING = 7
    FINISHED = 8
    KIND = 10
    """Not a state: the pod's class changed."""
    NODE = 20
    """The node's state is this row now."""
    NODE_GONE = 21


WAITING = frozenset(
    {
        HistoryState.ACTIVE,
        HistoryState.BACKOFF,
        HistoryState.UNSCHEDULABLE,
        HistoryState.GATED,
        HistoryState.HELD,
    }
)
TEXTED = WAITING | {HistoryState.GONE}
"""States whose events carry a text; the others carry a node."""


class Moment(msgspec.Struct):
    """The state of everything, by the number of a pod or of a node."""

    state: list[int] = msgspec.field(default_factory=list)
    node: list[int] = msgspec.field(default_factory=list)
    text: list[int] = msgspec.field(default_factory=list)
    kind: list[int] = msgspec.field(default_factory=list)
    row: list[int] = msgspec.field(default_factory=list)
    """The current row of each node; NONE: absent."""

    def copy(self) -> Moment:
        """A copy."""
        return Moment(self.state[:], self.node[:], self.text[:], self.kind[:], self.row[:])


class History:
    """Watches a cluster. Objects before `begin` are its first state; later changes are recorded.

    With a `scheduler` of the same cluster, `sync` records the pods' places in the queue.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._zero = clock.monotonic()
        self.started = clock.now()
        self.numbering = Numbering()
        self.now = Moment()
        self.first = Moment()
        self.events: list[tuple[float, int, int, int]] = []
        """Time in seconds since the start, State, pod or row or node, and text or node or class."""
        self.attempts: dict[int, Attempt] = {}
        """The last recorded attempt, by pod number."""
        self.scheduler: Scheduler | None = None
        self._numbers: dict[str, int] = {}
        self._waiting: dict[int, Pod] = {}
        self._lookups = 0
        self._has_begun = False

    def begin(self) -> None:
        """Make the current state the first state."""
        self.first = self.now.copy()
        self.events.clear()
        self._has_begun = True

    @property
    def release(self) -> str:
        """The tag of the kube-scheduler whose decisions these are; empty without a scheduler."""
        return "" if self.scheduler is None else self.scheduler.release.patch

    @property
    def time_s(self) -> float:
        """Seconds since the history began to watch."""
        return self._clock.monotonic() - self._zero

    # The cluster

    def on_add(self, obj: Any) -> None:
        """Record an added pod or node."""
        if isinstance(obj, Pod):
            kind = self.numbering.kind(obj)
            number = self._numbers[obj.uid] = self.numbering.pod(obj, kind)
            self.now.state.append(int(HistoryState.GONE))
            self.now.node.append(NONE)
            self.now.text.append(0)
            self.now.kind.append(kind)
            self._pod_is(number, obj)
        elif isinstance(obj, Node):
            self._node_is(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Record a changed pod or node."""
        if isinstance(new, Pod):
            number = self._numbers.get(new.uid)
            if number is None:  # it replaced another pod of its name
                self.on_delete(old)
                self.on_add(new)
                return
            if new.labels != old.labels or new.usage != old.usage:
                kind = self.numbering.kind(new)
                if kind != self.now.kind[number]:
                    self.now.kind[number] = kind
                    self._note(HistoryState.KIND, number, kind)
            self._pod_is(number, new)
        elif isinstance(new, Node):
            self._node_is(new)

    def on_delete(self, obj: Any) -> None:
        """Record a deleted pod or node."""
        if isinstance(obj, Pod):
            number = self._numbers.get(obj.uid, NONE)
            if number != NONE:
                self._waiting.pop(number, None)
                disrupted = obj.status.condition(DISRUPTION_TARGET)
                message = disrupted.message if disrupted is not None else ""
                self._set(number, HistoryState.GONE, NONE, self.numbering.texts.of(message))
        elif isinstance(obj, Node):
            number = self.numbering.nodes.known(obj.name)
            if number != NONE and self.now.row[number] != NONE:
                self.now.row[number] = NONE
                self._note(HistoryState.NODE_GONE, number, NONE)

    def note(self, attempt: Attempt) -> None:
        """Record a finished attempt, the pod's last so far."""
        number = self._numbers.get(attempt.pod.uid)
        if number is not None:
            self.attempts[number] = attempt

    # The queue

    def moment_ends(self) -> None:
        """Record the queue before time advances, within the limit of look-ups."""
        if self._lookups < MOST_LOOKUPS:
            self.sync()

    def sync(self) -> None:
        """Record the place of the pending pods in the queue."""
        if self.scheduler is None:
            return
        self._lookups += len(self._waiting)
        held = {waiting.pod.uid: waiting for waiting in self.scheduler.waiting_pods}
        for number, pod in self._waiting.items():
            state, text = self._place(self.scheduler, pod, self.now.text[number])
            if state is HistoryState.HELD and pod.uid in held:
                waiting = held[pod.uid]
                by = ", ".join(waiting.pending_plugins)
                text = self.numbering.texts.of(
                    f"waits on Permit: {by}; {waiting.pod.node_name} is reserved"
                )
            self._set(number, state, NONE, text)

    def _place(self, scheduler: Scheduler, pod: Pod, text: int) -> tuple[HistoryState, int]:
        """The place of the pod in the queue, and the message about it."""
        queue, key, of = scheduler.queue, pod.key, self.numbering.texts.of
        info = queue.unschedulable.get(key)
        if info is not None:
            if info.gated_by is None:
                return HistoryState.UNSCHEDULABLE, text
            return HistoryState.GATED, of(info.gated_by.message)
        if queue.backoff.get(key) is not None:
            return HistoryState.BACKOFF, text
        if queue.active.heap.get(key) is not None:
            return HistoryState.ACTIVE, text
        if pod.scheduler_name not in scheduler.profiles:
            message = f'waits for scheduler "{pod.scheduler_name}", which is not configured'
            return HistoryState.ACTIVE, of(message)
        return HistoryState.HELD, text

    # Observed events

    def number_of(self, uid: str) -> int:
        """The number of a pod, present or deleted; NONE when it never existed."""
        return self._numbers.get(uid, NONE)

    def waiting(self) -> list[tuple[int, Pod]]:
        """The pending pods, by number."""
        return list(self._waiting.items())

    def _pod_is(self, number: int, pod: Pod) -> None:
        if pod.node_name:
            self._waiting.pop(number, None)
            state = HistoryState.RUNNING
            if pod.is_finished:
                state = HistoryState.FINISHED
            elif pod.is_terminating:
                state = HistoryState.TERMINATING
            self._set(number, state, self._node_number(pod.node_name), 0)
        elif pod.is_finished:
            self._waiting.pop(number, None)
            self._set(number, HistoryState.FINISHED, NONE, 0)
        else:
            self._waiting[number] = pod
            state, message = _waits(pod)
            known = HistoryState(self.now.state[number])
            if known in WAITING and state is HistoryState.ACTIVE:
                state = known  # the queue's state is more precise
            self._set(number, state, NONE, self.numbering.message(message))

    def _node_is(self, node: Node) -> None:
        row = self.numbering.row(node)
        number = self._node_number(node.name)
        if self.now.row[number] != row:
            self.now.row[number] = row
            self._note(HistoryState.NODE, row, NONE)

    def _node_number(self, name: str) -> int:
        number = self.numbering.nodes.of(name)
        while len(self.now.row) <= number:
            self.now.row.append(NONE)
        return number

    def _set(self, number: int, state: HistoryState, node: int, text: int) -> None:
        now = self.now
        if (now.state[number], now.node[number], now.text[number]) == (state, node, text):
            return
        now.state[number], now.node[number], now.text[number] = state, node, text
        self._note(state, number, text if state in TEXTED else node)

    def _note(self, what: HistoryState, which: int, value: int) -> None:
        if self._has_begun:
            self.events.append((round(self.time_s, 6), what, which, value))

    def first_state(self) -> Tree:
        """The first state."""
        return {"base": msgspec.structs.asdict(self.first)}

    def told(self, known: dict[str, int]) -> Tree:
        """Entries after the given offsets."""
        first = known.get("events", 0)
        events = in_columns(self.events[first:], ("t", "what", "which", "value"))
        return {
            **self.numbering.since(known),
            "events": {"first": first, **events},
            "time": round(self.time_s, 6),
        }


def groups_tree(groups: Iterable[Any], history: History) -> list[Tree]:
    """The groups, which have the fields of a PageGroup, as the page reads them."""
    return [
        {
            "namespace": group.namespace,
            "name": group.name,
            "started": group.has_started,
            "place": group.place,
            "cause": group.cause,
            "pods": [n for uid in group.uids if (n := history.number_of(uid)) != NONE],
        }
        for group in groups
    ]


def _waits(pod: Pod) -> tuple[HistoryState, str]:
    """The state of a pending pod according to its own fields, and the reason."""
    condition = pod.status.condition(POD_SCHEDULED)
    message = condition.message if condition is not None else ""
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return HistoryState.GATED, message or f"waiting for scheduling gates: {gates}"
    return (HistoryState.UNSCHEDULABLE if message else HistoryState.ACTIVE), message
