"""Relocation: whether the pods of nodes would have a place if the nodes were gone, as the scheduler judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

import numpy as np

from ...api.pod import EMPTY_STATUS, Pod, PodSpec
from ...api.resources import CPU, MEMORY
from ...table import Bools, Ints
from .claims import ClaimPlanner
from .launch_options import LaunchOptions
from .launch_plan import LaunchPlan
from .pool_nodes import PoolNode, PoolNodes
from .shadow import ShadowScheduler


class Relocation:
    """Asks the shadow about nodes that could be taken away."""

    def __init__(self, options: LaunchOptions, shadow: ShadowScheduler, nodes: PoolNodes) -> None:
        self._options, self._shadow, self._nodes = options, shadow, nodes
        self._copies: dict[PodSpec, Ints | None] = {}
        """How many pods of a spec each row has room for at most."""
        self._moment: tuple[int, int] = (-1, -1)
        """What the copies depend on."""
        self._closed: frozenset[str] = frozenset()
        self._closed_rows: list[int] = []
        self._booting_rows: list[int] = []
        self._rooms: dict[PodSpec, int] = {}
        """How many pods of a spec the other rows have room for together."""

    @contextmanager
    def beside(self, waiting: list[Pod]) -> Iterator[set[str] | None]:
        """Ask with the `waiting` pods where they fit; gives the nodes that they take, None: they need new ones."""
        if not waiting:
            yield set()
            return
        planner = ClaimPlanner(self._options, self._shadow, self._nodes.use)
        with self._shadow.trial():
            plan = planner.plan(waiting)
            yield None if plan.launches else set(plan.existing.values())
        planner.close()

    def find(
        self, leaving: Sequence[PoolNode], closed: AbstractSet[str], *, may_replace: bool
    ) -> LaunchPlan | None:
        """What is launched so that all pods of `leaving` have a place; None: some would have none.

        With `may_replace`, one new node may be launched that is cheaper than all that leave. Nodes that are `closed`,
        and those that boot, get no pod. Where amounts tell that there is room, the plan does not say where pods go.
        """
        pods = self._pods_of(leaving)
        self._look(closed)
        rows = [self._shadow.table.row_of[node.name] for node in leaving]
        allowed = self._cheaper(leaving, may_replace)
        fits = self._fit(pods, rows, allowed)
        if fits is not None:
            return LaunchPlan() if fits else None
        self._options.learn(pods)
        use = self._nodes.use.copy()
        for node in leaving:
            use.add(node.pool, node.record.zone, node.type.capacity, -1)
        planner = ClaimPlanner(
            self._options, self._shadow, use, [*self._closed_rows, *rows], self._booting_rows
        )
        with self._shadow.trial():
            plan = planner.replace([self._shadow.lift(pod) for pod in pods], allowed)
        planner.close()
        self._moment = self._now()  # all is as before
        return plan if plan is not None and self._may_launch(plan) else None

    def _look(self, closed: AbstractSet[str]) -> None:
        """Forget what is not so any more, since the last question."""
        if self._moment == self._now() and self._closed == closed:
            return
        if self._moment != self._now():
            self._copies.clear()
        self._rooms.clear()
        self._moment, self._closed = self._now(), frozenset(closed)
        rows = self._shadow.table.row_of
        self._closed_rows = [rows[name] for name in self._closed if name in rows]
        self._booting_rows = [rows[name] for name in self._nodes.booting if name in rows]

    def _now(self) -> tuple[int, int]:
        return self._shadow.table.row_changes.version, self._shadow.version

    def _fit(self, pods: list[Pod], without: list[int], allowed: Bools) -> bool | None:
        """Whether all pods have a place on other rows, as far as amounts can tell; None: they have to be tried.

        False: of each spec as many pods are left over as other rows have no room for, even without the pods of other
        specs; one of the allowed options has to hold them all. The largest are asked about first: where room is
        missing, it is mostly missing for them. True: there is room wherever the others go.
        """
        wanted = np.zeros(len(self._options.resources), dtype=np.int64)
        groups: list[tuple[Pod, int, int]] = []
        is_clear = not self._shadow.table.carried  # else rows may refuse pods by their labels
        for pod, count in _by_spec(pods):
            copies = self._copies_of(pod)
            if copies is None:
                is_clear = False
                continue
            room = self._room_of(pod.spec, copies) - sum([int(copies[row]) for row in without])
            groups.append((pod, count, room))
            if count > room:
                is_clear = False
                self._options.learn([pod])
                wanted += (count - room) * self._options.choice(pod).requests
                if not (allowed & (self._options.free >= wanted).all(axis=1)).any():
                    return False
        return True if is_clear and _is_room_for_all(groups) else None

    def _copies_of(self, pod: Pod) -> Ints | None:
        """int64 per row: how many pods of the spec fit beside each other; other labels may only mean fewer.

        None: not known.
        """
        if pod.spec not in self._copies:
            waiting = pod.replace(node_name="", status=EMPTY_STATUS)
            self._copies[pod.spec] = self._shadow.copies(waiting)
        return self._copies[pod.spec]

    def _room_of(self, spec: PodSpec, copies: Ints) -> int:
        if spec not in self._rooms:
            others = self._closed_rows + self._booting_rows
            self._rooms[spec] = int(copies.sum()) - int(copies[others].sum())
        return self._rooms[spec]

    def _may_launch(self, plan: LaunchPlan) -> bool:
        """Whether limits allow what is launched beside the nodes that leave later."""
        return all(self._nodes.use.allows(one.pool, one.type) for one, _ in plan.launches)

    def _cheaper(self, leaving: Sequence[PoolNode], may_replace: bool) -> Bools:
        """bool per option: whether it may replace the nodes; a spot node is not replaced by a spot node."""
        if not may_replace:
            return np.zeros(len(self._options.all), dtype=np.bool_)
        price = sum(node.record.price or 0.0 for node in leaving)
        found: Bools = self._options.prices < price
        if all(node.record.is_spot for node in leaving):
            found &= ~self._options.is_spot
        return found

    def _pods_of(self, nodes: Sequence[PoolNode]) -> list[Pod]:
        """The pods of the nodes that would need another node."""
        return [
            pod
            for node in nodes
            for pod in self._shadow.pods_on(node.name)
            if pod.uid in node.pods and not pod.is_terminating
        ]


def _is_room_for_all(groups: Sequence[tuple[Pod, int, int]]) -> bool:
    """Whether each spec has room for its pods wherever those go that are placed before them.

    `groups` have a pod of each spec, the number of pods, and how many rows have room for without the others.
    """
    for pod, count, room in groups:
        for other, number, _ in groups:
            if other is not pod and _size(other) >= _size(pod):
                room -= number * _displaced(other, pod)
        if room < count:
            return False
    return True


def _size(pod: Pod) -> tuple[int, int]:
    """By which pods are placed, the largest first."""
    return pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)


def _displaced(other: Pod, pod: Pod) -> int:
    """How many pods like `pod` a node has no room for at most once `other` is there."""
    shares = (-(-other.requests.get(name, 0) // wanted) for name, wanted in pod.requests.items())
    return max(shares, default=1) or 1


def _by_spec(pods: Sequence[Pod]) -> list[tuple[Pod, int]]:
    """A pod of each spec, the largest first, and how many there are."""
    counts = Counter([pod.spec for pod in pods])
    samples = {pod.spec: pod for pod in pods}
    largest_first = sorted(samples.values(), key=_size, reverse=True)
    return [(pod, counts[pod.spec]) for pod in largest_first]
