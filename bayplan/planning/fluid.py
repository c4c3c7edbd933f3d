"""Fluid: the planning problem with divisible pods, which is solved quickly and gives a bound.

Every node of an option holds any mix of its classes that its amounts allow; a class with a cap has no more copies than
that on a node. Patterns of whole pods (`master.py`) are a special case, so the price is a lower bound. Cuts
(`violated_cuts`), which hold for whole pods, raise it.

With a reserve, a part of a pod of usual size stays free on every node. A scheduler that places one pod after the other
leaves such remainders, which cost little on large nodes and much on small ones; the reserve makes the solution choose
accordingly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..table import Ints
from .fleet import NodeOption, all_pools
from .knapsack import most_copies
from .node_probe import NO_CAP
from .solver import SparseProgram, solve_program


@dataclass(frozen=True, slots=True)
class PoolRow:
    """`per_node @ nodes >= least`."""

    per_node: NDArray[np.float64]
    """float64 per option: the coefficient of one node."""
    least: float


def pool_rows(options: Sequence[NodeOption]) -> Iterator[PoolRow]:
    """A row for each minimum, maximum and limit."""
    for pool in all_pools(options):
        member = np.array([one.pool is pool for one in options], dtype=float)
        if pool.minimum:
            yield PoolRow(member, float(pool.minimum))
        if pool.maximum is not None:
            yield PoolRow(-member, -float(pool.maximum))
        for name, limit in pool.limits.items():
            sizes = [one.type.capacity.get(name, 0) for one in options]
            scale = max(float(limit), 1.0)
            yield PoolRow(-member * np.array(sizes, dtype=float) / scale, -limit / scale)


Floats = NDArray[np.float64]
MOST_LP_S, WHOLE_S = 20.0, 2.0
WHOLE_GAP = 0.002
SHAPES = 12
"""Classes are joined if their shares of the resources are equal in such steps."""
WELL_FILLED = 0.95
"""A class whose copies alone fill a node less than this has a row for the number that fits."""
MOST_RESERVE, RESERVE_ACCURACY = 3.0, 0.03
TILT = 3.0
"""Factor on the reserve of a resource when a variant has more of it."""
CUT_ROUNDS = 12
SMALLEST_RISE = 1e-4
"""The share of the price by which a round of cuts must raise it for another one."""


@dataclass(frozen=True, slots=True)
class PlanningProblem:
    """Demands, and the options to cover them."""

    options: Sequence[NodeOption]
    requests: NDArray[Any]
    """Per class and resource."""
    demand: Floats
    """Pods per class; more than in the workload if a fleet must survive the loss of nodes."""
    pool_rows: Sequence[PoolRow]
    kept_room: Floats | None = None
    """The rest of the nodes that stay, all together."""

    @property
    def row_count(self) -> int:
        """The rows of the dual values: classes, pools, resources of the nodes that stay."""
        kept = 0 if self.kept_room is None else len(self.kept_room)
        return len(self.demand) + len(self.pool_rows) + kept

    def least(self) -> Floats:
        """The right-hand sides of these rows, which are all `>=`; rows of nodes that stay are scaled to their free
        amounts.
        """
        room = [] if self.kept_room is None else [-1.0] * len(self.kept_room)
        return np.array([*self.demand, *(row.least for row in self.pool_rows), *room], dtype=float)

    def kept_use(self, number: int) -> Floats:
        """Share of the room on kept nodes that one pod of a class uses."""
        assert self.kept_room is not None, "only with nodes that stay"
        use: Floats = self.requests[number] / np.maximum(self.kept_room, 1e-9)
        return np.minimum(use, 1e9)

    def add_uncovered(self, program: SparseProgram, penalty: float) -> None:
        """Add variables: the pods of each class that are not covered, and then those on nodes that stay."""
        classes = range(len(self.demand))
        for number in classes:
            program.add(penalty, {number: 1.0})
        kept_from = len(self.demand) + len(self.pool_rows)
        for number in classes if self.kept_room is not None else ():
            use = self.kept_use(number)
            if (use <= 1).all():
                rows = {kept_from + i: -float(share) for i, share in enumerate(use) if share}
                program.add(0.0, {number: 1.0} | rows)


@dataclass(frozen=True, slots=True)
class FluidAnswer:
    """The price of the relaxed problem, and its dual values by row of the problem."""

    price: float
    duals: Floats


@dataclass(frozen=True, slots=True)
class FleetVariant:
    """The choice among fleets of about the same price: without some options, with more of some resources."""

    without: frozenset[int] = frozenset()
    tilts: tuple[int, ...] = ()
    """Numbers of resources; one that is named twice is tilted twice."""


PLAIN = FleetVariant()


@dataclass(slots=True)
class _FluidProgram:
    """A program, and which of its variables are pods on nodes of an option."""

    program: SparseProgram
    options: Sequence[NodeOption]
    wanted: list[Ints] = field(default_factory=list)
    """The classes that an option has variables for."""
    first: list[int] = field(default_factory=list)
    """The first of these variables."""

    def use(self, values: Floats) -> Iterator[FluidUse]:
        """The contents of the nodes of each option in a solution."""
        for number, (wanted, first) in enumerate(zip(self.wanted, self.first, strict=True)):
            if values[number] > 1e-6:
                pods = values[first : first + len(wanted)]
                yield FluidUse(number, self.options[number], values[number], wanted, pods)

    def add(self, cut: FluidCut) -> None:
        """Add a row: the weight of the pods of an option is at most the number of nodes."""
        entries = {cut.option: 1.0}
        for k in np.flatnonzero(cut.weights).tolist():
            entries[self.first[cut.option] + k] = -float(cut.weights[k])
        self.program.add_row(entries)


class FluidPlan:
    """The relaxed problem of one workload."""

    def __init__(
        self, problem: PlanningProblem, penalty: float, limit_s: float = MOST_LP_S
    ) -> None:
        """A linear program is solved within `limit_s`, or not at all."""
        self._problem, self._penalty, self._limit_s = problem, penalty, limit_s
        self._usual = [
            usual_sizes(problem.requests[one.accepts], problem.demand[one.accepts])
            for one in problem.options
        ]
        no_cap = np.full(len(problem.requests), NO_CAP)
        self._limits = [
            most_copies(one, problem.requests, no_cap).astype(float) for one in problem.options
        ]
        self._merged, self._merged_limits = self._merge()

    def relax(self) -> FluidAnswer | None:
        """Solve with parts of nodes, too, and with cuts as long as they raise the price; None if there was no time."""
        cuts: list[FluidCut] = []
        answer: FluidAnswer | None = None
        for _ in range(CUT_ROUNDS):
            made = self._program(self._problem, self._limits, 0.0, cuts)
            found = solve_program(made.program, self._limit_s)
            if found is None:
                break
            before = answer.price if answer is not None else 0.0
            duals = np.maximum(found.duals[: self._problem.row_count], 0)
            answer = FluidAnswer(max(found.objective, before), duals)
            more = list(violated_cuts(self._problem.requests, made.use(found.values)))
            if not more or found.objective < before * (1 + SMALLEST_RISE):
                break
            cuts += more
        return answer

    def whole(self, reserve: float, variant: FleetVariant = PLAIN) -> Counter[int] | None:
        """Whole nodes per option, each with room for `reserve` further pods of usual size; None if not solved, or pods
        have no node because of the options that are left out.
        """
        program = self._variant_program(reserve, variant)
        count = len(self._problem.options)
        found = solve_program(program, WHOLE_S, whole=count, relative_gap=WHOLE_GAP)
        if found is None:
            found = solve_program(program, self._limit_s)
        if found is None:
            return None
        if (
            variant.without
            and found.values[count : count + len(self._merged.demand)].max(initial=0) > 1e-6
        ):
            return None
        counts = np.ceil(found.values[:count] - 1e-6).astype(int)
        return Counter({i: int(n) for i, n in enumerate(counts) if n > 0})

    def price(self, reserve: float, variant: FleetVariant) -> float:
        """Price of parts of nodes with a reserve; infinite if there was no time."""
        found = solve_program(self._variant_program(reserve, variant), self._limit_s)
        return np.inf if found is None else found.objective

    def reserve_for(self, price: float, variant: FleetVariant) -> float | None:
        """The largest reserve for which the relaxed problem has at most this price; None if there is none."""
        low, high = -RESERVE_ACCURACY, MOST_RESERVE
        while high - low > RESERVE_ACCURACY:
            reserve = max((low + high) / 2, 0.0)
            if self.price(reserve, variant) <= price:
                low = reserve
            else:
                high = reserve
        return low if low >= 0 else None

    def _variant_program(self, reserve: float, variant: FleetVariant) -> SparseProgram:
        """The problem of joined classes, with a reserve."""
        limits = [
            np.zeros_like(row) if i in variant.without else row
            for i, row in enumerate(self._merged_limits)
        ]
        weights = np.ones(self._problem.requests.shape[1])
        for resource in variant.tilts:
            weights[resource] *= TILT
        return self._program(self._merged, limits, reserve * weights).program

    def _merge(self) -> tuple[PlanningProblem, list[Floats]]:
        """The problem with classes of about the same shape joined: whole numbers are found much faster."""
        problem = self._problem
        total = np.maximum(problem.demand @ problem.requests, 1.0)
        shapes = problem.requests / total
        shapes = np.round(shapes / shapes.sum(axis=1, keepdims=True) * SHAPES).astype(int)
        fits = np.array(self._limits).reshape(len(problem.options), len(shapes)) > 0
        groups: dict[bytes, list[int]] = {}
        for number in range(len(shapes)):
            key = shapes[number].tobytes() + fits[:, number].tobytes()
            groups.setdefault(key, []).append(number)
        demand = np.array([problem.demand[members].sum() for members in groups.values()])
        requests = np.array(
            [
                problem.demand[members] @ problem.requests[members] / problem.demand[members].sum()
                for members in groups.values()
            ]
        )
        firsts = [members[0] for members in groups.values()]
        limits = [np.where(row, float(NO_CAP), 0.0) for row in fits[:, firsts]]
        return replace(problem, requests=requests, demand=demand), limits

    def _program(
        self,
        problem: PlanningProblem,
        limits: Sequence[Floats],
        reserve: Floats | float,
        cuts: Sequence[FluidCut] = (),
    ) -> _FluidProgram:
        """Nodes per option, pods not covered per class, pods on nodes that stay, then pods per class and option."""
        options, classes = problem.options, len(problem.demand)
        program = SparseProgram(problem.least())
        for number, one in enumerate(options):
            rows = {
                classes + i: row.per_node[number]
                for i, row in enumerate(problem.pool_rows)
                if row.per_node[number]
            }
            program.add(one.price, rows)
        problem.add_uncovered(program, self._penalty)
        made = _FluidProgram(program, options)
        for number in range(len(options)):
            made.wanted.append(np.flatnonzero(limits[number] > 0))
            made.first.append(len(program.columns))
            self._add_option(program, problem, number, limits[number], reserve)
        for cut in cuts:
            made.add(cut)
        return made

    def _add_option(
        self,
        program: SparseProgram,
        problem: PlanningProblem,
        number: int,
        limits: Floats,
        reserve: Floats | float,
    ) -> None:
        """Rows: the pods' use of each resource is at most the capacity of the nodes; caps."""
        one = problem.options[number]
        scale = np.maximum(one.free, 1).astype(float)
        room = np.maximum(one.free - reserve * self._usual[number], 0) / scale
        wanted = np.flatnonzero(limits > 0)
        use = problem.requests[wanted] / scale
        rows = [
            program.add_row({number: float(room[i])}) if use[:, i].any() else -1
            for i in range(len(room))
        ]
        for k, which in enumerate(wanted.tolist()):
            entries = {which: 1.0}
            for i in np.flatnonzero(use[k]).tolist():
                entries[rows[i]] = -float(use[k, i])
            if limits[which] * use[k].max() < WELL_FILLED:
                entries[program.add_row({number: float(limits[which])})] = -1.0
            program.add(0.0, entries)


def least_price(problem: PlanningProblem) -> float:
    """A lower bound on the price of all plans, computed at once: the cheapest nodes for one resource alone."""
    needed = problem.demand @ problem.requests
    if problem.kept_room is not None:
        needed = needed - problem.kept_room
    prices = np.array([one.price for one in problem.options])
    free = np.array([one.free for one in problem.options]).T
    least = [
        amount / (room / prices).max()
        for amount, room in zip(needed, free, strict=True)
        if amount > 0 and room.any()
    ]
    return max(least, default=0.0)


def usual_sizes(requests: NDArray[Any], demand: Floats) -> Floats:
    """Per resource the size of pods such that pods of at most this size have half of the requests."""
    found = np.zeros(requests.shape[1])
    for i, sizes in enumerate(requests.T):
        order = np.argsort(sizes, kind="stable")
        together = np.cumsum(sizes[order] * demand[order])
        if len(together) and together[-1] > 0:
            found[i] = sizes[order][np.searchsorted(together, together[-1] / 2)]
    return found


ROUNDINGS = range(1, 25)
MOST_THRESHOLDS = 40
SMALLEST_VIOLATION = 1e-3
"""The share of the nodes by which a solution must exceed a cut."""


@dataclass(frozen=True, slots=True)
class FluidUse:
    """The nodes of one option in a solution: their number, and their pods of each class of `wanted`."""

    number: int
    option: NodeOption
    nodes: float
    wanted: Ints
    pods: Floats


@dataclass(frozen=True, slots=True)
class FluidCut:
    """`weights @ pods <= nodes` of an option; a weight per class of its variables."""

    option: int
    weights: Floats


def violated_cuts(requests: Ints, use: Iterable[FluidUse]) -> Iterator[FluidCut]:
    """For each option and resource the cut that a solution exceeds most, if any."""
    for one in use:
        for i, room in enumerate(one.option.free.tolist()):
            sizes = requests[one.wanted, i]
            if not room or not sizes.any():
                continue
            weights = max(
                _functions(sizes, room), key=lambda found: float(found @ one.pods), default=None
            )
            if weights is not None and weights @ one.pods > one.nodes * (1 + SMALLEST_VIOLATION):
                yield FluidCut(one.number, weights)


def _functions(sizes: Ints, room: int) -> Iterator[Floats]:
    """The weights of pods of some sizes on a node with this room, by each function."""
    for k in ROUNDINGS:
        yield rounded(sizes, room, k)
    thresholds = np.unique(sizes[(sizes > 0) & (2 * sizes <= room)])
    step = max(len(thresholds) // MOST_THRESHOLDS, 1)
    for least in thresholds[::step].tolist():
        yield above_threshold(sizes, room, least)


def rounded(sizes: Ints, room: int, k: int) -> Floats:
    """Shares rounded down to k-ths of which k + 1 would not fit; exact multiples of 1 / (k + 1) stay."""
    parts, rest = np.divmod(sizes * (k + 1), room)
    weights: Floats = np.where(rest == 0, sizes / room, parts / k)
    return weights


def above_threshold(sizes: Ints, room: int, least: int) -> Floats:
    """0 for pods below a size, 1 for those that leave less than it, the share for the others."""
    weights: Floats = np.where(
        sizes < least, 0.0, np.where(sizes > room - least, 1.0, sizes / room)
    )
    return weights
