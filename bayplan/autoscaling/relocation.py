"""Relocation: whether the scheduler has a place for the pods of some nodes without these nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add, gt

import numpy as np

from ..api.pod import EMPTY_STATUS, Pod, PodSpec
from ..table import Bools, Ints
from ..trials import TrialCluster
from .launch_options import LaunchOptions, LaunchPlan
from .node_claims import ClaimPacker
from .pool_nodes import PodNeeds, PoolNode, PoolNodes, all_needs, size_of


class Offers:
    """The options that may replace some nodes."""

    def __init__(self, allowed: Bools, free: Ints) -> None:
        self.allowed = allowed
        """bool per option."""
        self._free = free[allowed]
        self._most: list[int] = self._free.max(axis=0, initial=-1).tolist()

    def hold(self, wanted: list[int]) -> bool:
        """Whether an option has the wanted amount of each resource."""
        if any(map(gt, wanted, self._most)):
            return False  # so it is in most cases
        return bool((self._free >= wanted).all(axis=1).any())


@dataclass(slots=True)
class SpecRoom:
    """The room that rows have for pods of a spec."""

    copies: Ints | None
    """int64 per row: the number that fit together, an upper bound if labels differ. None if unknown."""
    requests: list[int]
    total: int
    """The copies on all rows that are not closed and do not boot."""


class Relocation:
    """Tries on the shadow which nodes could be removed."""

    def __init__(self, options: LaunchOptions, shadow: TrialCluster, nodes: PoolNodes) -> None:
        self._options, self._shadow, self._nodes = options, shadow, nodes
        self._rooms: dict[PodSpec, SpecRoom] = {}
        self._moment: tuple[int, int] = (-1, -1)
        """Key on which the rooms depend."""
        self._answers: dict[tuple[bool, tuple[str, ...]], LaunchPlan | None] = {}
        """Cached plans for some nodes, by their names: with more removable nodes the others are tried again."""
        self._closed: frozenset[str] = frozenset()
        self._closed_rows: list[int] = []
        self._booting_rows: list[int] = []
        self._no_offers = Offers(np.zeros(len(options.all), dtype=np.bool_), options.free)
        self._offers: dict[tuple[float, bool], Offers] = {}
        """By the price of the replaced nodes, and whether all of them are spot."""

    @contextmanager
    def beside(self, waiting: list[Pod]) -> Iterator[set[str] | None]:
        """Try the `waiting` pods with the others; returns the nodes that they take, None if they need new ones."""
        if not waiting:
            yield set()
            return
        booting = self._nodes.booting_rows(self._shadow.table)
        packer = ClaimPacker(self._options, self._shadow, self._nodes.use, booting=booting)
        with self._shadow.trial():
            plan = packer.plan(waiting)
            yield None if plan.launches else set(plan.existing.values())
        packer.close()

    def find(
        self, leaving: Sequence[PoolNode], closed: AbstractSet[str], *, may_replace: bool
    ) -> LaunchPlan | None:
        """The launches after which all pods of `leaving` have a place; None if some would have none.

        With `may_replace`, one new node may be launched that is cheaper than all that leave. Nodes that are `closed`,
        and those that boot, get no pod. Where amounts show that there is room, the plan has no places for pods.
        """
        self._look(closed)
        key = may_replace, tuple([node.name for node in leaving])
        if key not in self._answers:
            self._answers[key] = self._find(leaving, may_replace=may_replace)
        return self._answers[key]

    def _find(self, leaving: Sequence[PoolNode], *, may_replace: bool) -> LaunchPlan | None:
        rows = [self._shadow.table.row_of[node.name] for node in leaving]
        offers = self._cheaper(leaving) if may_replace else self._no_offers
        needs = all_needs(leaving)
        fits = self._fit(needs, rows, offers)
        if fits is not None:
            return LaunchPlan() if fits else None
        pods = self._pods_of(leaving)
        self._options.learn(pods)
        use = self._nodes.use.copy()
        for node in leaving:
            use.add(node.pool, node.record.zone, node.type.capacity, -1)
        without_room = {pod.spec for pod, _ in needs if not self._has_room(pod.spec, rows)}
        packer = ClaimPacker(
            self._options, self._shadow, use, [*self._closed_rows, *rows], self._booting_rows
        )
        with self._shadow.trial():
            lifted = [self._shadow.lift(pod) for pod in pods]
            plan = packer.replace(lifted, offers.allowed, without_room)
        packer.close()
        self._moment = self._now()  # all is as before
        if plan is None:
            return None
        is_allowed = all(self._nodes.use.allows(one.pool, one.type) for one, _ in plan.launches)
        return plan if is_allowed else None

    def _look(self, closed: AbstractSet[str]) -> None:
        """Drop the cached answers that changes since the last question made stale."""
        now = self._now()
        if self._moment == now and self._closed == closed:
            return
        self._answers.clear()
        if self._moment != now:
            self._rooms.clear()
        self._moment, self._closed = now, frozenset(closed)
        rows = self._shadow.table.row_of
        self._closed_rows = [rows[name] for name in self._closed if name in rows]
        self._booting_rows = self._nodes.booting_rows(self._shadow.table)
        for known in self._rooms.values():
            known.total = self._total(known.copies)

    def _now(self) -> tuple[int, int]:
        return self._shadow.table.row_changes.version, self._shadow.version

    def _fit(self, needs: PodNeeds, without: list[int], offers: Offers) -> bool | None:
        """Whether all pods have a place on other rows by their amounts; None if they have to be tried.

        False if the pods of each spec that other rows have no room for, even without the pods of other specs, do not
        fit together on any allowed option. The largest are tried first, because they fit least often. True if there is
        room wherever the others go.
        """
        wanted: list[int] = []
        groups: list[tuple[Pod, int, int]] = []
        is_clear = not self._shadow.table.carried  # else rows may refuse pods by their labels
        for pod, count in needs:
            known = self._rooms.get(pod.spec) or self._room_of(pod)
            if known.copies is None:
                is_clear = False
                continue
            is_clear &= (
                len(self._options.forms(pod)) == 1
            )  # else a new node may be preferred to relaxing a preference
            room = known.total - sum(map(known.copies.item, without))
            groups.append((pod, count, room))
            if count > room:
                is_clear = False
                more = [(count - room) * amount for amount in known.requests]
                wanted = list(map(add, wanted, more)) if wanted else more
                if not offers.hold(wanted):
                    return False
        return True if is_clear and _is_room_for_all(groups) else None

    def _has_room(self, spec: PodSpec, without: list[int]) -> bool:
        """Whether pods of a spec may fit on other rows, or on those of nodes that boot, by their amounts."""
        known = self._rooms.get(spec)
        if known is None or known.copies is None:
            return True
        left = known.total - sum(map(known.copies.item, without))
        return left > 0 or bool(known.copies[self._booting_rows].any())

    def _room_of(self, pod: Pod) -> SpecRoom:
        self._options.learn([pod])
        requests = self._options.choice(pod).amounts
        copies = self._shadow.copies(pod.replace(node_name="", status=EMPTY_STATUS))
        known = self._rooms[pod.spec] = SpecRoom(copies, requests, self._total(copies))
        return known

    def _total(self, copies: Ints | None) -> int:
        if copies is None:
            return 0
        others = self._closed_rows + self._booting_rows
        return int(copies.sum()) - int(copies[others].sum())

    def _cheaper(self, leaving: Sequence[PoolNode]) -> Offers:
        """The options that may replace the nodes; a spot node is not replaced by a spot node."""
        price = sum([node.record.price or 0.0 for node in leaving])
        is_spot = all(node.record.is_spot for node in leaving)
        known = self._offers.get((price, is_spot))
        if known is None:
            allowed: Bools = self._options.prices < price
            if is_spot:
                allowed &= ~self._options.is_spot
            known = self._offers[price, is_spot] = Offers(allowed, self._options.free)
        return known

    def _pods_of(self, nodes: Sequence[PoolNode]) -> list[Pod]:
        """The pods of the nodes that would need another node."""
        return [
            pod
            for node in nodes
            for uid, pod in self._shadow.pods_on(node.name).items()
            if uid in node.pods and not pod.is_terminating
        ]


def _is_room_for_all(groups: Sequence[tuple[Pod, int, int]]) -> bool:
    """Whether each spec has room for its pods, on whichever rows larger pods are placed first.

    `groups` have a pod of each spec, the number of pods, and how many rows have room for without the others.
    """
    for pod, count, room in groups:
        for other, number, _ in groups:
            if other is not pod and size_of(other) >= size_of(pod):
                room -= number * _displaced(other, pod)
        if room < count:
            return False
    return True


def _displaced(other: Pod, pod: Pod) -> int:
    """Upper bound on the copies of `pod` that `other` displaces from a node."""
    shares = (-(-other.requests.get(name, 0) // wanted) for name, wanted in pod.requests.items())
    return max(shares, default=1) or 1
