"""Node claims: new nodes as Karpenter plans them, each with a set of types that gets smaller with every pod.

Facts from Karpenter v1.14 (pkg/controllers/provisioning/scheduling): pods are taken by size, the largest first. Nodes
that exist come before those that boot, these before new ones, and new ones with fewer pods before others. A pod that
fits none of them gets a new one, from the pool with the highest weight that can run it; only then its preferences are
relaxed, one after the other. Remaining pods are tried again as long as others are placed. The cheapest type that
holds all pods of a claim is launched. A trial cluster decides which node can run a pod.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import ge, sub

import numpy as np

from ..api.pod import Pod, PodSpec
from ..cluster.objects.object_index import ClusterObject
from ..planning.pools import NodePool
from ..table import Bools, Ints
from ..trials import TrialCluster
from .launch_options import (
    ChoiceKey,
    LaunchOptions,
    LaunchPlan,
    OptionChoice,
    choice_key,
    largest_first,
)
from .pool_nodes import PoolUse
from .preferences import compares_pods, is_bound_to_domains

CLAIM = "bayplan-claim-"
TURN = 1 << 32


@dataclass(slots=True)
class NodeClaim:
    """A new node, whose type is not chosen yet, nor its zone unless a pod depends on it."""

    name: str
    pool: NodePool
    options: Ints
    """The numbers of the options that hold its pods."""
    used: Ints
    """int64 per resource: requests of its pods."""
    shown: int
    """The option as which the shadow has it: the largest of a zone."""
    objects: list[ClusterObject]
    """Its objects in the shadow."""
    room: list[int] = field(default_factory=list)
    """Per resource: the least room of its options; empty without a pod."""
    number: int = -1
    """Position among the claims of a plan, from 0; negative for a claim that is only tried."""
    pods: list[Pod] = field(default_factory=list)


@dataclass(slots=True)
class PodPlace:
    """A place for a pod: a row of the shadow's table, or a claim with the options that also hold the pod."""

    form: Pod
    """The form of the pod that was evaluated."""
    row: int = -1
    claim: NodeClaim | None = None
    options: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class ClaimPacker:
    """Packs pods on existing nodes and on new ones, on a trial cluster."""

    def __init__(
        self,
        options: LaunchOptions,
        shadow: TrialCluster,
        use: PoolUse,
        closed: Iterable[int] = (),
        booting: Iterable[int] = (),
    ) -> None:
        """`closed` are rows that get no pod; those that boot get one if no other node can."""
        self._options, self._shadow = options, shadow
        self._closed: Ints = np.array(list(closed), dtype=np.int64)
        self._booting: Ints = np.array(list(booting), dtype=np.int64)
        self._use = use.copy()
        self._claims: dict[int, NodeClaim] = {}
        """By row of the shadow's table."""
        self._claim_rows: Ints = np.zeros(0, dtype=np.int64)
        """The same rows, in the order of the claims."""
        self._turns: Ints = np.zeros(0, dtype=np.int64)
        """int64 per claim: `TURN` for each of its pods. Claims with equal numbers of pods are ordered by their latest
        pod, the latest first; with one pod each, the oldest claim is first.
        """
        self._most: Ints = np.zeros((0, len(options.resources)), dtype=np.int64)
        """int64 per claim and resource: the most room of its options."""
        self._placed = 0
        """Number of pods that were put on claims."""
        self._number = 0
        self._plan = LaunchPlan()

    # The packer

    def plan(self, pods: Iterable[Pod]) -> LaunchPlan:
        """Find places for `pods`, within a trial; `close` after it."""
        waiting = largest_first(pods)
        while waiting:
            left, full = list[Pod](), set[ChoiceKey]()
            for pod in waiting:
                key = choice_key(pod)
                if key in full or not self.put(pod):
                    full.add(key)
                    left.append(pod)
            is_stuck = len(left) == len(waiting)
            waiting = left
            if is_stuck or not any(compares_pods(pod.spec) for pod in left):
                break
        self._plan.left = waiting
        return self._launched()

    def replace(
        self, pods: Iterable[Pod], allowed: Bools, without_room: Container[PodSpec] = ()
    ) -> LaunchPlan | None:
        """Find places for all `pods`: on existing nodes, and for the others on one new node of an allowed option.

        None if some have no place, or have one on a node that boots. Pods of a spec `without_room` fit on no node that
        is there or boots.
        """
        wanted = np.zeros(len(self._options.resources), dtype=np.int64)
        for pod in largest_first(pods):
            place = self._ask_replaced(pod, allowed, wanted, has_room=pod.spec not in without_room)
            if place is None or place.row in self._booting:
                return None
            if place.claim is not None:
                wanted += self._options.choice(place.form).requests
                allowed = allowed & (self._options.free >= wanted).all(axis=1)
            self.commit(pod, place)
        return self._launched()

    def _ask_replaced(
        self, pod: Pod, allowed: Bools, wanted: Ints, *, has_room: bool
    ) -> PodPlace | None:
        """The place of a pod if one new node of an allowed option may be launched, on which `wanted` is in use
        already.
        """
        *others, last = self._options.forms(pod)
        for form in (*others, last):
            choice, feasible = self._options.choice(form), self._feasible(form)
            place = self._ask_rows(form, feasible) if has_room else None
            place = place or self._ask_claims(form, choice, feasible)
            if place is None and not self._claims:
                able = (self._options.free >= wanted + choice.requests).all(axis=1)
                able &= allowed & choice.accepts
                place = self._ask_new(form, choice, able) if able.any() else None
            if place is not None:
                return place
            if form is not last and self._can_open(form, choice):
                return (
                    None  # a further or a more expensive node is preferred to relaxing a preference
                )
        return None

    def _can_open(self, form: Pod, choice: OptionChoice) -> bool:
        """Whether a new node could be had for the pod, of any option."""
        place = self._ask_new(form, choice)
        if place is not None and place.claim is not None:
            self._shadow.drop(place.claim.objects)
        return place is not None

    def put(self, pod: Pod) -> bool:
        """Commit the pod to its first possible place, relaxed as little as possible; False if it has none."""
        if not self._options.is_possible(pod):
            return False
        for form in self._options.forms(pod):
            place = self.ask(form)
            if place is not None:
                self.commit(pod, place)
                return True
        return False

    def ask(self, form: Pod) -> PodPlace | None:
        """The place of a pod: an existing node, a claim, or a new claim; None if there is none."""
        choice, feasible = self._options.choice(form), self._feasible(form)
        return (
            self._ask_rows(form, feasible)
            or self._ask_claims(form, choice, feasible)
            or self._ask_new(form, choice)
        )

    def commit(self, pod: Pod, place: PodPlace) -> None:
        """Put the pod where it was found to fit."""
        claim = place.claim
        if claim is None:
            name = self._shadow.table.names[place.row]
            self._shadow.place(pod, name)
            self._plan.existing[pod.uid] = name
            return
        if claim.number < 0:
            self._keep(claim)
        choice = self._options.choice(place.form)
        self._shadow.place(pod, claim.name)
        claim.used = claim.used + choice.requests
        claim.pods.append(pod)
        self._take_turn(claim)
        if claim.room and place.options is claim.options:
            claim.room = list(map(sub, claim.room, choice.amounts))
            self._most[claim.number] -= choice.requests
            return
        claim.options = place.options
        free = self._options.free[place.options]
        claim.room = (free.min(axis=0) - claim.used).tolist()
        self._most[claim.number] = free.max(axis=0) - claim.used
        if claim.shown not in place.options:
            self._show(claim, self._largest(place.options.tolist()))
        if len(claim.pods) == 1:
            self._reserve(claim)

    def close(self) -> None:
        """Remove the new nodes from the shadow; after the trial."""
        for claim in self._claims.values():
            self._shadow.drop(claim.objects)

    def _launched(self) -> LaunchPlan:
        """The plan, with the cheapest option for each claim."""
        for claim in self._claims.values():
            option = self._options.cheapest(claim.options, self._options.all[claim.shown].zone)
            self._plan.launches.append((option, claim.pods))
        return self._plan

    # Places

    def _feasible(self, form: Pod) -> Bools:
        """bool per row: whether the pod fits."""
        found: Bools = self._shadow.totals(form) >= 0
        refused = self._options.softly_tainted(form)
        if refused is not None:
            found &= ~refused
        return found

    def _ask_rows(self, form: Pod, feasible: Bools) -> PodPlace | None:
        """The first node that exists, else the first that boots."""
        rows = feasible.copy()
        rows[self._closed] = rows[self._claim_rows] = rows[self._booting] = False
        row = int(rows.argmax())
        if rows[row]:
            return PodPlace(form, row)
        late = self._booting[feasible[self._booting]]
        return PodPlace(form, int(late.min())) if len(late) else None

    def _ask_claims(self, form: Pod, choice: OptionChoice, feasible: Bools) -> PodPlace | None:
        """The claim with the fewest pods that can run the pod, with the shown option or with another one."""
        fits: Bools = feasible[self._claim_rows]
        able = np.flatnonzero(fits | (self._most >= choice.requests).all(axis=1))
        for number in able[self._turns[able].argsort()].tolist():
            claim = self._claims[int(self._claim_rows[number])]
            if fits[number]:
                left = self._narrowed(claim, form, choice)
                if len(left):
                    return PodPlace(form, claim=claim, options=left)
            place = self._ask_as_others(claim, form, choice)
            if place is not None:
                return place
        return None

    def _narrowed(self, claim: NodeClaim, form: Pod, choice: OptionChoice) -> Ints:
        """The options of a claim that hold one more pod, in the claim's shown zone if the pod depends on zones."""
        numbers = claim.options
        if is_bound_to_domains(form.spec):
            numbers = self._in_zone(numbers, self._options.all[claim.shown].zone)
        if claim.room and choice.accepts_all and all(map(ge, claim.room, choice.amounts)):
            return numbers
        used = claim.used + choice.requests
        fits = (self._options.free[numbers] >= used).all(axis=1) & choice.accepts[numbers]
        return numbers if fits.all() else numbers[fits]

    def _in_zone(self, numbers: Ints, zone: str) -> Ints:
        is_there: Bools = self._options.zones[numbers] == self._options.zone_numbers[zone]
        return numbers if is_there.all() else numbers[is_there]

    def _ask_as_others(self, claim: NodeClaim, form: Pod, choice: OptionChoice) -> PodPlace | None:
        """Show a claim as the largest type of each zone that may run the pod, and run the filters again."""
        before, used = claim.shown, claim.used + choice.requests
        is_able = choice.accepts[before] and bool((self._options.free[before] >= used).all())
        if is_able and not self._has_other_zones(claim):
            return None
        numbers = claim.options
        fits = (self._options.free[numbers] >= used).all(axis=1) & choice.accepts[numbers]
        for members in self._by_zone(numbers[fits].tolist()).values():
            largest = self._largest(members)
            if largest == before:
                continue
            self._show(claim, largest)
            left = self._narrowed(claim, form, choice)
            if len(left) and self._feasible(form)[self._shadow.table.row_of[claim.name]]:
                return PodPlace(form, claim=claim, options=left)
        if claim.shown != before:
            self._show(claim, before)
        return None

    def _has_other_zones(self, claim: NodeClaim) -> bool:
        zones = self._options.zones[claim.options]
        return bool((zones != zones[0]).any())

    def _by_zone(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        zones: dict[str, list[int]] = {}
        for number in numbers:
            zones.setdefault(self._options.all[number].zone, []).append(number)
        return zones

    def _show(self, claim: NodeClaim, number: int) -> None:
        self._shadow.drop(claim.objects[1:])
        claim.objects = self._options.all[number].make_objects(claim.name, is_shadow=True)
        self._shadow.put(claim.objects)
        self._shadow.place_again(claim.pods, claim.name)
        claim.shown = number

    def _largest(self, numbers: Sequence[int]) -> int:
        return max(numbers, key=lambda i: (self._options.all[i].size, -i))

    # New claims

    def _ask_new(
        self, form: Pod, choice: OptionChoice, allowed: Bools | None = None
    ) -> PodPlace | None:
        """A claim in the first pool that may have one; None if none may.

        With `allowed`, only these options of that pool count: no pool of a lower weight takes its place.
        """
        for pool, numbers in self._able_pools(choice):
            able = [i for i in numbers if allowed is None or allowed[i]]
            place = self._ask_pool(pool, able, form) if able else None
            if place is not None or allowed is not None:
                return place
        return None

    def _able_pools(self, choice: OptionChoice) -> Iterator[tuple[NodePool, list[int]]]:
        """The pools in order of their weight, with the options that their limits allow."""
        pools: dict[str, list[int]] = {}
        for number in np.flatnonzero(choice.accepts).tolist():
            pools.setdefault(self._options.all[number].pool.name, []).append(number)
        for numbers in pools.values():
            pool = self._options.all[numbers[0]].pool
            able = [i for i in numbers if self._use.allows(pool, self._options.all[i].type)]
            if able:
                yield pool, able

    def _ask_pool(self, pool: NodePool, numbers: list[int], form: Pod) -> PodPlace | None:
        """Try a node in each zone, and keep the node that the scheduler prefers."""
        tried, nothing = list[NodeClaim](), np.zeros(len(self._options.resources), dtype=np.int64)
        for members in self._by_zone(numbers).values():
            self._number += 1
            largest, name = self._largest(members), f"{CLAIM}{self._number}"
            objects = self._options.all[largest].make_objects(name, is_shadow=True)
            self._shadow.put(objects)
            every = np.array(numbers, dtype=np.int64)
            tried.append(NodeClaim(name, pool, every, nothing, largest, objects))
        totals, rows = self._shadow.totals(form), self._shadow.table.row_of

        def order(claim: NodeClaim) -> tuple[int, int, str]:
            zone = self._options.all[claim.shown].zone
            return -int(totals[rows[claim.name]]), self._use.zones[pool.name, zone], zone

        able = [claim for claim in tried if totals[rows[claim.name]] >= 0]
        chosen = min(able, key=order, default=None)
        for claim in tried:
            if claim is not chosen:
                self._shadow.drop(claim.objects)
        if chosen is None:
            return None
        zones = {self._options.all[claim.shown].zone for claim in able}
        choice = self._options.choice(form)
        left = self._narrowed(chosen, form, choice)
        left = left[[self._options.all[i].zone in zones for i in left.tolist()]]
        return PodPlace(form, claim=chosen, options=left)

    def _keep(self, claim: NodeClaim) -> None:
        """Have a claim among those that get more pods."""
        row = self._shadow.table.row_of[claim.name]
        claim.number = len(self._claims)
        self._claims[row] = claim
        self._claim_rows = np.append(self._claim_rows, row)
        self._turns = np.append(self._turns, 0)
        self._most = np.vstack((self._most, claim.used))

    def _take_turn(self, claim: NodeClaim) -> None:
        """Order the claim among those with equally many pods: Karpenter's sort is stable up to 12 claims."""
        self._placed += 1
        count = len(claim.pods)
        self._turns[claim.number] = count * TURN + (self._placed if count == 1 else -self._placed)

    def _reserve(self, claim: NodeClaim) -> None:
        """Count the claim with the largest amounts of its types, as any of them may be launched."""
        types = [self._options.all[i].type for i in claim.options.tolist()]
        most = {name: max(one.capacity.get(name, 0) for one in types) for name in claim.pool.limits}
        self._use.add(claim.pool, self._options.all[claim.shown].zone, most)
