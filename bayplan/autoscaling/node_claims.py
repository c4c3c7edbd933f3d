"""Node claims: new nodes as Karpenter plans them, each with a set of types that gets smaller with every pod.

Facts from Karpenter's documentation of scheduling and of its NodePools: pods are taken by size, the largest first.
Nodes that exist or boot come before new ones, and new ones with fewer pods before others. A pod that fits none of them
gets a new one, from the pool with the highest weight that can run it. What is launched is the cheapest type that holds
all pods of a claim. Which node can run a pod is asked from the shadow scheduler.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from operator import ge, sub

import numpy as np

from ..api.pod import Pod, PodSpec
from ..cluster.objects import ClusterObject
from ..planning.pools import NodePool
from ..planning.shadow import ShadowScheduler
from ..table import Bools, Ints
from .launch_options import (
    ChoiceKey,
    LaunchOptions,
    LaunchPlan,
    OptionChoice,
    cheapest,
    choice_key,
    largest_first,
)
from .pool_nodes import PoolUse

CLAIM = "bayplan-claim-"
TURN = 1 << 32
NO_TURN = np.iinfo(np.int64).max


@dataclass(slots=True)
class NodeClaim:
    """A new node, whose type is not chosen yet."""

    name: str
    pool: NodePool
    zone: str
    options: Ints
    """The numbers of the options that hold its pods."""
    used: Ints
    """int64 per resource: what its pods request."""
    shown: int
    """The option as which the shadow has it: the largest."""
    objects: list[ClusterObject]
    """What the shadow has for it."""
    room: list[int] = field(default_factory=list)
    """Per resource: what each of its options has left at least; empty without a pod."""
    number: int = -1
    """Of the claims of a plan, from 0; negative: it is only tried."""
    pods: list[Pod] = field(default_factory=list)


class ClaimPlanner:
    """Plans nodes for pods, on a shadow scheduler in a trial."""

    def __init__(
        self,
        options: LaunchOptions,
        shadow: ShadowScheduler,
        use: PoolUse,
        excluded: Iterable[int] = (),
        booting: Sequence[int] = (),
    ) -> None:
        self._options, self._shadow = options, shadow
        self._excluded = frozenset(excluded).union(booting)
        """Rows of nodes that get no pod."""
        self._booting = list(booting)
        self._excluded_rows: Ints = np.array(list(self._excluded), dtype=np.int64)
        self._use = use.copy()
        self._claims: dict[int, NodeClaim] = {}
        """By row of the shadow's table."""
        self._claim_rows: Ints = np.zeros(0, dtype=np.int64)
        """The same rows, in the order of the claims."""
        self._turns: Ints = np.zeros(0, dtype=np.int64)
        """int64 per claim: its row, and `TURN` for each of its pods."""
        self._full: set[ChoiceKey] = set()
        self._number = 0
        self._plan = LaunchPlan()

    def plan(self, pods: Iterable[Pod]) -> LaunchPlan:
        """Find places for `pods`, within a trial; `close` after it."""
        for pod in largest_first(pods):
            choice = self._options.choice(pod)
            if choice_key(pod) in self._full or not choice.is_possible:
                self._plan.left.append(pod)
                continue
            if self._fill(pod, choice):
                continue
            if not self._open(pod, choice):
                self._full.add(choice_key(pod))
                self._plan.left.append(pod)
        return self._launched()

    def replace(
        self, pods: Iterable[Pod], allowed: Bools, without_room: Container[PodSpec] = ()
    ) -> LaunchPlan | None:
        """Find places for all `pods`: on nodes that are there, and for the others on one new node of an allowed option.

        None: some have no place, or have one on a node that boots. New nodes are tried only if an option holds all pods
        that are left. Pods of a spec `without_room` fit on no node that is there or boots.
        """
        wanted, left = np.zeros(len(self._options.resources), dtype=np.int64), list[Pod]()
        for pod in largest_first(pods):
            choice = self._options.choice(pod)
            if pod.spec not in without_room:
                if choice_key(pod) not in self._full and self._fill(pod, choice):
                    continue
                if len(self._booting) and (self._shadow.totals(pod)[self._booting] >= 0).any():
                    return None
                self._full.add(choice_key(pod))
            left.append(pod)
            wanted += choice.requests
            allowed = allowed & choice.accepts & (self._options.free >= wanted).all(axis=1)
            if not allowed.any():
                return None
        if left and not self._open_for(left, allowed):
            return None
        return self._launched()

    def _open_for(self, pods: list[Pod], allowed: Bools) -> bool:
        """Put all `pods` on one new node of the allowed options."""
        first = self._options.choice(pods[0])
        if not self._open(pods[0], first, allowed):
            return False
        (claim,) = self._claims.values()
        row = self._shadow.table.row_of[claim.name]
        return all(
            self._shadow.totals(pod)[row] >= 0 and self._join(claim, pod, self._options.choice(pod))
            for pod in pods[1:]
        )

    def _launched(self) -> LaunchPlan:
        """The plan, with the cheapest option for each claim."""
        for claim in self._claims.values():
            option = cheapest([self._options.all[i] for i in claim.options.tolist()])
            self._plan.launches.append((option, claim.pods))
        return self._plan

    def close(self) -> None:
        """Remove the new nodes from the shadow; after the trial."""
        for claim in self._claims.values():
            self._shadow.drop(claim.objects)

    def _fill(self, pod: Pod, choice: OptionChoice) -> bool:
        """Put the pod on a node that exists or boots, else on a claim; False: it fits none."""
        decision = self._shadow.decide(pod)
        row, turns = decision.best.row, self._turns[:0]
        if row in self._claims or row in self._excluded:
            totals = decision.totals
            turns = np.where(totals[self._claim_rows] >= 0, self._turns, NO_TURN)
            row = -1
            if np.count_nonzero(turns < NO_TURN) < decision.best.feasible:
                row = self._best_other(totals)
        if row >= 0:
            name = self._shadow.table.names[row]
            self._shadow.place(pod, name)
            self._plan.existing[pod.uid] = name
            return True
        while len(turns) and (turn := int(turns.min())) < NO_TURN:
            if self._join(self._claims[turn % TURN], pod, choice):
                return True
            turns[turns == turn] = NO_TURN
        # A claim is shown as its largest type, which may not be one of those that can run the pod.
        return any(
            self._join_as_other(claim, pod, choice)
            for claim in self._claims.values()
            if not choice.accepts[claim.shown]
        )

    def _best_other(self, totals: Ints) -> int:
        """The first row with the best total that is neither excluded nor that of a claim; -1: there is none."""
        others = totals.copy()
        others[self._excluded_rows] = others[self._claim_rows] = -1
        row = int(others.argmax())
        return row if others[row] >= 0 else -1

    def _narrowed(self, claim: NodeClaim, choice: OptionChoice) -> Ints:
        """The options of a claim that hold one more pod."""
        numbers = claim.options
        if claim.room and choice.accepts_all and all(map(ge, claim.room, choice.amounts)):
            return numbers
        used = claim.used + choice.requests
        fits = (self._options.free[numbers] >= used).all(axis=1) & choice.accepts[numbers]
        return numbers if fits.all() else numbers[fits]

    def _join(self, claim: NodeClaim, pod: Pod, choice: OptionChoice) -> bool:
        left = self._narrowed(claim, choice)
        if not len(left):
            return False
        self._shadow.place(pod, claim.name)
        claim.used = claim.used + choice.requests
        claim.pods.append(pod)
        if claim.number >= 0:
            self._turns[claim.number] += TURN
        if claim.room and left is claim.options:
            claim.room = list(map(sub, claim.room, choice.amounts))
            return True
        claim.options = left
        claim.room = (self._options.free[left].min(axis=0) - claim.used).tolist()
        if claim.shown not in left:
            self._show(claim, self._largest(left.tolist()))
        return True

    def _join_as_other(self, claim: NodeClaim, pod: Pod, choice: OptionChoice) -> bool:
        """Show a claim as the largest type that can run the pod, and ask again."""
        left, before = self._narrowed(claim, choice), claim.shown
        if not len(left):
            return False
        self._show(claim, self._largest(left.tolist()))
        row = self._shadow.table.row_of[claim.name]
        if self._shadow.totals(pod)[row] >= 0 and self._join(claim, pod, choice):
            return True
        self._show(claim, before)
        return False

    def _show(self, claim: NodeClaim, number: int) -> None:
        self._shadow.drop(claim.objects[1:])
        claim.objects = self._options.all[number].make_objects(claim.name, is_shadow=True)
        self._shadow.put(claim.objects)
        claim.shown = number

    def _largest(self, numbers: list[int]) -> int:
        return max(numbers, key=lambda i: (self._options.all[i].size, -i))

    def _open(self, pod: Pod, choice: OptionChoice, allowed: Bools | None = None) -> bool:
        """Begin a claim, in the first pool that may have one; False: none may.

        With `allowed`, only these options of that pool count: no pool of a lower weight takes its place.
        """
        pools: dict[str, list[int]] = {}
        for number in np.flatnonzero(choice.accepts).tolist():
            pools.setdefault(self._options.all[number].pool.name, []).append(number)
        for numbers in pools.values():
            pool = self._options.all[numbers[0]].pool
            able = [i for i in numbers if self._use.allows(pool, self._options.all[i].type)]
            if able and allowed is not None:
                able = [i for i in able if allowed[i]]
                return bool(able) and self._open_in(pool, able, pod, choice)
            if able and self._open_in(pool, able, pod, choice):
                return True
        return False

    def _open_in(self, pool: NodePool, numbers: list[int], pod: Pod, choice: OptionChoice) -> bool:
        """Try a node in each zone, and keep the one that the scheduler prefers."""
        zones: dict[str, list[int]] = {}
        for number in numbers:
            zones.setdefault(self._options.all[number].zone, []).append(number)
        tried, nothing = list[NodeClaim](), np.zeros_like(choice.requests)
        for zone, members in zones.items():
            self._number += 1
            largest = self._largest(members)
            name = f"{CLAIM}{self._number}"
            objects = self._options.all[largest].make_objects(name, is_shadow=True)
            self._shadow.put(objects)
            options = np.array(members, dtype=np.int64)
            tried.append(NodeClaim(name, pool, zone, options, nothing, largest, objects))
        totals, rows = self._shadow.totals(pod), self._shadow.table.row_of
        ranked = sorted(
            (claim for claim in tried if totals[rows[claim.name]] >= 0),
            key=lambda claim: (
                -int(totals[rows[claim.name]]),
                self._use.zones[pool.name, claim.zone],
                claim.zone,
            ),
        )
        chosen = ranked[0] if ranked else None
        for claim in tried:
            if claim is not chosen:
                self._shadow.drop(claim.objects)
        if chosen is None or not self._join(chosen, pod, choice):
            if chosen is not None:
                self._shadow.drop(chosen.objects)
            return False
        self._keep(chosen, rows[chosen.name])
        return True

    def _keep(self, claim: NodeClaim, row: int) -> None:
        """Have a claim with its first pod among those that get more."""
        claim.number = len(self._claims)
        self._claims[row] = claim
        self._claim_rows = np.append(self._claim_rows, row)
        self._turns = np.append(self._turns, row + TURN)
        self._reserve(claim)

    def _reserve(self, claim: NodeClaim) -> None:
        """Count the claim with the largest amounts of its types, as any of them may be launched."""
        types = [self._options.all[i].type for i in claim.options.tolist()]
        most = {name: max(one.capacity.get(name, 0) for one in types) for name in claim.pool.limits}
        self._use.add(claim.pool, claim.zone, most)
