"""Cluster history: a cluster that is followed change by change, and its states of the last moments.

A decision becomes visible after it was made: a scheduler counts the pods that it has placed before their bindings are
written, and it receives other changes earlier or later than an observer does. So a decision is compared with the states
around its binding, nearest first; their number is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, product, takewhile, zip_longest
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from ..api.meta import KubeObject
from ..api.pod import Pod
from ..cluster.objects.object_index import ClusterObject
from ..trials import Step, TrialCluster

LAG_S = 1.0
"""A scheduler may receive a change, and write a binding, this much later or earlier than the observer receives it."""
WRITE_S = 5.0
"""Seconds by which a binding may become visible after the binding of a later decision, if an API server is slow."""
REACH_S = 10.0
"""The longest time in seconds after a decision until its binding becomes visible."""
KEPT_S = 30.0
"""Seconds for which changes are kept."""
MOST_CHANGES = 20_000
MOST_STATES = 256
"""Limit on the states that one decision is compared with."""
LIKELY = 6
"""Sets of bindings that are compared with many states of other objects."""
WIDEST = 24
"""Limit on the changes, and on the bindings, that are left out or anticipated."""

Key: TypeAlias = tuple[str, str, str]


class Change(msgspec.Struct, frozen=True, eq=False):
    """An object that was added, replaced or removed. `is_binding`: a scheduler gave a pod its node."""

    number: int
    at_s: float
    key: Key
    old: Any
    new: Any
    is_binding: bool
    matters: bool
    """Whether a scheduler may decide otherwise about another pod because of it."""
    is_first: bool = False
    """Whether it shows a decision at the first attempt, about a pod that was never held back."""
    arrival: int = -1
    """Number of the change with which the pod appeared; -1 if it was there at the start."""
    is_listed: bool = False
    """Whether the pod waited when its scheduler started, which lists pods by namespace and name."""

    @property
    def pod(self) -> Pod:
        """The pod that changed, if it is one."""
        found: Pod = self.old if self.new is None else self.new
        return found


class PastState(msgspec.Struct, frozen=True):
    """A state near the change with the number `moment`: without some changes before it, and with some from then on."""

    moment: int
    left_out: frozenset[int] = frozenset()
    anticipated: frozenset[int] = frozenset()

    @classmethod
    def of(cls, moment: int, one: Shift, other: Shift) -> PastState:
        """The state with both shifts."""
        return cls(moment, one[0] | other[0], one[1] | other[1])

    @property
    def is_present(self) -> bool:
        """Whether this is the state just before the change itself."""
        return not (self.left_out or self.anticipated)

    def has(self, number: int) -> bool:
        """Whether the change with this number is part of the state."""
        if number < self.moment:
            return number not in self.left_out
        return number in self.anticipated


class ClusterHistory:
    """Follows a cluster in `view`, which shows the latest state, or past ones within `past`."""

    def __init__(self, view: TrialCluster) -> None:
        self.view = view
        self._next = 0
        self._arrivals: dict[str, int] = {pod.uid: -1 for pod in view.pods()}
        """For each pod: the number of the change with which it appeared."""
        self._changes: deque[Change] = deque(maxlen=MOST_CHANGES)

    def get(self, obj: ClusterObject) -> Any:
        """The latest state of an object; None if there is none."""
        return self.view.cluster.get(obj.kind, obj.namespace, obj.name)

    def follow(
        self,
        at_s: float,
        old: Any,
        new: Any,
        *,
        is_binding: bool = False,
        is_first: bool = False,
        is_listed: bool = False,
    ) -> Change:
        """Apply a change; None stands for an object that does not exist."""
        obj = old if new is None else new
        key = (obj.kind, obj.namespace, obj.name)
        arrival = self._note_arrival(old, new)
        change = Change(
            self._next,
            at_s,
            key,
            old,
            new,
            is_binding,
            matters(old, new),
            is_first,
            arrival,
            is_listed,
        )
        self._next += 1
        self._changes.append(change)
        while self._changes[0].at_s < at_s - KEPT_S:
            self._changes.popleft()
        self.view.replace_object(old, new)
        return change

    def _note_arrival(self, old: Any, new: Any) -> int:
        if isinstance(new, Pod):
            return self._arrivals.setdefault(new.uid, self._next)
        return self._arrivals.pop(old.uid, -1) if isinstance(old, Pod) else -1

    def states_around(
        self, moment: Change, since_s: float, ahead_s: float = LAG_S
    ) -> Iterator[PastState]:
        """States in which the decision that became visible with `moment` may have been made, nearest first.

        `since_s` is when the pod arrived, `ahead_s` how much later bindings are anticipated. The first is the state
        just before the moment.
        """
        first_s = max(since_s, moment.at_s - REACH_S) - LAG_S
        around = [
            change
            for change in self._between(first_s, moment.at_s + ahead_s)
            if change.matters and change.key != moment.key
        ]
        others = [
            change
            for change in around
            if not change.is_binding and change.at_s <= moment.at_s + LAG_S
        ]
        bindings = [change for change in around if change.is_binding]
        shifts = _other_shifts(others, moment.number), _binding_shifts(bindings, moment)
        yield from islice(_nearest_pairs(*shifts, moment.number), MOST_STATES)
        if ahead_s > LAG_S:
            # a scheduler that writes late may receive changes late, too: likely bindings with every prefix of others
            for pair in product(shifts[0], shifts[1][:LIKELY]):
                yield PastState.of(moment.number, *pair)

    def changes_near(self, moment: Change, is_wanted: Callable[[Change], bool]) -> list[Change]:
        """The wanted changes at most `LAG_S` before or after the moment."""
        near = self._between(moment.at_s - LAG_S, moment.at_s + LAG_S)
        return [one for one in near if is_wanted(one)]

    def _between(self, first_s: float, last_s: float) -> list[Change]:
        """The changes at a time, in order; searched from the end, because decisions are judged soon."""
        late = takewhile(lambda one: one.at_s >= first_s, reversed(self._changes))
        return [one for one in late if one.at_s <= last_s][::-1]

    def numbers_since(self, changes: Sequence[Change], last: int) -> frozenset[int]:
        """Numbers of the changes of these objects, from the first of `changes` up to and without `last`."""
        keys = {change.key for change in changes}
        first = min((change.number for change in changes), default=last)
        every = (one for one in self._changes if first <= one.number < last)
        return frozenset(one.number for one in every if one.key in keys)

    @contextmanager
    def past(self) -> Iterator[Callable[[PastState], None]]:
        """Allow to show past states until the end of the block; each call of the function shows one."""
        shown: dict[Key, tuple[Any, Any]] = {}
        try:
            yield lambda state: self._show(state, shown)
        finally:
            self._replace_all((now, new) for new, now in shown.values())

    def _show(self, state: PastState, shown: dict[Key, tuple[Any, Any]]) -> None:
        """Replace the shown state, given as pairs of the latest object and the shown one, by another."""
        wanted = self._versions(state)
        steps: list[Step] = []
        for key in {*shown, *wanted}:
            latest, new = wanted.get(key) or (shown[key][0], shown[key][0])
            old = shown[key][1] if key in shown else latest
            if old is not new:
                steps.append((old, new))
        self._replace_all(steps)
        shown.clear()
        shown.update(wanted)

    def _versions(self, state: PastState) -> dict[Key, tuple[Any, Any]]:
        """The latest object and that of a past state, where they differ.

        A change that does not matter belongs to the state if the one before it does.
        """
        found: dict[Key, tuple[Any, Any]] = {}
        is_part: dict[Key, bool] = {}
        first = min((state.moment, *state.left_out)) - self._changes[0].number
        for change in islice(self._changes, max(first, 0), None):
            key, number = change.key, change.number
            is_there = is_part.get(key, True)
            if change.matters or number == state.moment:
                is_there = is_part[key] = state.has(number)
            past = found[key][1] if key in found else change.old
            found[key] = (change.new, change.new if is_there else past)
        return {key: pair for key, pair in found.items() if pair[0] is not pair[1]}

    def _replace_all(self, steps: Iterable[Step]) -> None:
        for old, new in _in_order(steps):
            self.view.replace_object(old, new)


Shift: TypeAlias = tuple[frozenset[int], frozenset[int]]
"""Changes before a moment that are left out, and changes after it that are anticipated."""
NONE: frozenset[int] = frozenset()
NO_SHIFT: Shift = (NONE, NONE)


def _shifts(numbers: Sequence[int], moment: int) -> list[Shift]:
    """Prefixes of a sequence of changes, the one that ends at the moment first, then those that end near it."""
    before = [number for number in numbers if number < moment]
    after = [number for number in numbers if number > moment]
    found = [NO_SHIFT]
    for size in range(1, WIDEST + 1):
        if size <= len(before):
            found.append((frozenset(before[-size:]), NONE))
        if size <= len(after):
            found.append((NONE, frozenset(after[:size])))
    return found


def _other_shifts(changes: Sequence[Change], moment: int) -> list[Shift]:
    """Prefixes of all changes, and of those of other kinds than pods: each kind has a watch, which may be late."""
    every = _shifts([change.number for change in changes], moment)
    apart = _shifts([change.number for change in changes if change.key[0] != "Pod"], moment)
    mixed = (shift for pair in zip_longest(every, apart) for shift in pair if shift is not None)
    return list(dict.fromkeys(mixed))


def _binding_shifts(bindings: Sequence[Change], moment: Change) -> list[Shift]:
    """Sets of bindings that may have been decided before that of the moment.

    Bindings are written concurrently, so the order in which they become visible may differ from that of the decisions.
    Where the order of the decisions is not certain: prefixes in three orders, and all but one or one more.
    """
    number = moment.number
    certain = {change.number: is_before(change, moment) for change in bindings}
    left_out = frozenset(n for n, before in certain.items() if before is False and n < number)
    anticipated = frozenset(n for n, before in certain.items() if before and n > number)
    open_ = [change for change in bindings if certain[change.number] is None]
    families = (
        _shifts([change.number for change in open_], number),
        _prefixes(open_, moment, lambda one: (-one.pod.priority, one.arrival)),  # as in the queue
        _prefixes(open_, moment, _list_key if moment.is_listed else attrgetter("arrival")),
        _exceptions(open_, moment),
    )
    mixed = (shift for group in zip_longest(*families) for shift in group if shift is not None)
    return [(left_out | shift[0], anticipated | shift[1]) for shift in dict.fromkeys(mixed)]


def is_before(one: Change, moment: Change) -> bool | None:
    """Whether a binding was decided before the moment's decision, by the same scheduler; None if that is not certain.

    Pods appear and are bound in one sequence of changes: a decision is made after its pod appeared and before its
    binding. First attempts are made in the order of the queue: of two pods, the one that came first is tried first
    unless the other one has a higher priority.
    """
    if one.number < moment.arrival:
        return True
    if one.arrival > moment.number:
        return False
    if not (one.is_first and moment.is_first):
        return None
    ahead = one.pod.priority - moment.pod.priority
    if one.arrival < moment.arrival:
        return True if ahead >= 0 else None
    return False if ahead <= 0 else None


def _list_key(change: Change) -> tuple[int, bool, str, str]:
    """Sort key of a pod in the queue of a scheduler that has just started, in which waiting pods are ordered by
    name.
    """
    return -change.pod.priority, not change.is_listed, change.pod.namespace, change.pod.name


def _prefixes(
    bindings: Sequence[Change], moment: Change, key: Callable[[Change], Any]
) -> list[Shift]:
    """The bindings before the moment in another order, then with a few less or more."""
    ordered = sorted(bindings, key=key)
    place = bisect_left(ordered, key(moment), key=key)
    steps = (step for size in range(WIDEST // 4) for step in dict.fromkeys((-size, size)))
    return [
        _as_placed(ordered[: place + step], bindings, moment.number)
        for step in steps
        if 0 <= place + step <= len(ordered)
    ]


def _exceptions(bindings: Sequence[Change], moment: Change) -> list[Shift]:
    """All bindings before the moment but one, or one more than these: first those to its node, then the nearest."""
    number, node_name = moment.number, moment.pod.node_name
    nearest = sorted(
        bindings, key=lambda one: (one.pod.node_name != node_name, abs(one.number - number))
    )
    return [
        (frozenset((one.number,)), NONE)
        if one.number < number
        else (NONE, frozenset((one.number,)))
        for one in nearest[: 2 * WIDEST]
    ]


def _as_placed(placed: Sequence[Change], bindings: Sequence[Change], moment: int) -> Shift:
    """The shift after which exactly `placed` of the bindings have been made."""
    there = {change.number for change in placed}
    left_out = (c.number for c in bindings if c.number < moment and c.number not in there)
    return frozenset(left_out), frozenset(number for number in there if number > moment)


def _nearest_pairs(others: list[Shift], bindings: list[Shift], moment: int) -> Iterator[PastState]:
    """Every combination, with small shifts first."""
    for distance in range(len(others) + len(bindings) - 1):
        for n in range(max(0, distance - len(bindings) + 1), min(distance + 1, len(others))):
            yield PastState.of(moment, others[n], bindings[distance - n])


def matters(old: Any, new: Any) -> bool:
    """Whether a change may alter a decision about another pod.

    Pods without a node take no room. A pod on a node counts by its spec, labels and phase.
    """
    if isinstance(old, Pod) or isinstance(new, Pod):
        return bool(_weight_of(old) != _weight_of(new))
    if old is None or new is None or not isinstance(new, KubeObject):
        return True
    return bool(_unversioned(old) != _unversioned(new))


def _weight_of(pod: Pod | None) -> Any:
    """The fields of a pod on a node, or nominated to one, that other pods are judged by."""
    if pod is None or pod.is_finished or not pod.is_assigned_or_nominated:
        return None
    status = pod.status
    return (
        pod.node_name or status.nominated_node_name,
        pod.spec,
        pod.labels,
        pod.deletion_timestamp,
        status.resources,
        status.container_statuses if status.has_resources else None,
    )


def _unversioned(obj: KubeObject) -> KubeObject:
    """The object without the fields that change with every write."""
    metadata = replace(obj.metadata, resource_version="", generation=0)
    return replace(obj, metadata=metadata)


def _in_order(steps: Iterable[Step]) -> list[Step]:
    """Pods are removed before other objects change, and added after."""

    def place(step: Step) -> int:
        old, new = step
        if not isinstance(old or new, Pod):
            return 1
        return 0 if new is None or not new.node_name else 2  # type: ignore[union-attr]  # pods have a node name

    return sorted(steps, key=place)
