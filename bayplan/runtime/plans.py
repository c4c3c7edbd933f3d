"""Plans: what of a profile's work on a pod is settled by the pod's spec, worked out once per spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from ..api.pod import EMPTY_STATUS, Pod, PodSpec
from ..framework import Code, CycleState, Plugin, Status
from ..table import NodeTable
from .kept import MAX_CELLS, Kept, KeptAnswer
from .seen import Seen


class Asked(Protocol):
    """A plugin that prepares Filter or Score."""

    @property
    def name(self) -> str: ...


A = TypeVar("A", bound=Asked)
T = TypeVar("T", bound=KeptAnswer)


class Shape(Generic[A]):
    """What many specs have in common: who is skipped, and who still has to be asked."""

    __slots__ = ("ask", "is_settled", "skip")

    def __init__(self, skip: frozenset[str], ask: tuple[A, ...], is_settled: list[bool]) -> None:
        self.skip = skip
        self.ask = ask
        self.is_settled = is_settled
        """For each group of kept plugins, whether its answer is the same for every pod of the spec."""


class Plan(Generic[A, T]):
    """For pods of one spec: who is skipped, who still has to be asked, and the answers kept for it.

    `answers` has one entry per group of kept plugins; None where the answer must be looked up for each pod.
    """

    __slots__ = ("answers", "ask", "is_settled", "skip")

    def __init__(self, shape: Shape[A], groups: int) -> None:
        self.skip = shape.skip
        self.ask = shape.ask
        self.is_settled = shape.is_settled
        self.answers: list[T | None] = [None] * groups


class Plans(Generic[A, T]):
    """The plans of one profile for one stretch of the road."""

    def __init__(
        self,
        asked: Sequence[A],
        settle: Sequence[Callable[[PodSpec], Status | None]],
        groups: Sequence[Kept[T]],
        skipped: Callable[[CycleState], set[str]],
    ) -> None:
        self._asked = asked
        self._settle = [(1 << bit, function) for bit, function in enumerate(settle)]
        self._groups = groups
        self._skipped = skipped
        self._shapes: dict[tuple[int, int], Shape[A]] = {}
        self._unsettled: Shape[A] = Shape(frozenset(), tuple(asked), [False] * len(groups))
        self._plans: dict[PodSpec, Plan[A, T]] = {}  # in order of last use
        self._last: tuple[PodSpec, Plan[A, T]] | None = None
        """The plan that was made last: a pod asks for its plan several times."""
        self._seen = Seen()

    def get(self, pod: Pod, rows: int) -> Plan[A, T]:
        """The plan for `pod`; `rows` is the size of the table, which decides how many plans are kept."""
        if pod.node_name or (pod.status is not EMPTY_STATUS and pod.status.has_resources):
            # More than the spec counts: nothing is settled.
            return Plan(self._unsettled, len(self._groups))
        spec = pod.spec
        if self._last is not None and self._last[0] is spec:
            return self._last[1]
        plan = self._plans.pop(spec, None)
        if plan is None:
            plan = self._make(spec)
            self._last = (spec, plan)
            if not self._seen.add(spec):
                return plan  # it may be the only pod of that spec
            while self._plans and (len(self._plans) + 1) * rows > MAX_CELLS:
                del self._plans[next(iter(self._plans))]
        self._plans[spec] = plan
        return plan

    def answer(
        self, plan: Plan[A, T], position: int, state: CycleState, pod: Pod, table: NodeTable
    ) -> T:
        """What one group of kept plugins says about `pod`, up to date; PreFilter or PreScore has run."""
        group, answer = self._groups[position], plan.answers[position]
        if answer is not None:
            group.follow(answer, state, pod, table)
            return answer
        answer = group.get(state, pod, table, self._skipped(state))
        if plan.is_settled[position]:
            plan.answers[position] = answer
        return answer

    def _make(self, spec: PodSpec) -> Plan[A, T]:
        skip = ask = 0
        for bit, settle in self._settle:
            status = settle(spec)
            if status is None:
                ask |= bit
            elif status.code is Code.Skip:
                skip |= bit
        shape = self._shapes.get((skip, ask))
        if shape is None:
            shape = self._shapes[skip, ask] = self._make_shape(skip, ask)
        return Plan(shape, len(self._groups))

    def _make_shape(self, skip: int, ask: int) -> Shape[A]:
        asked = tuple([p for bit, p in enumerate(self._asked) if ask >> bit & 1])
        unsettled = {plugin.name for plugin in asked}
        return Shape(
            frozenset(p.name for bit, p in enumerate(self._asked) if skip >> bit & 1),
            asked,
            [
                all(p.key_is_spec and p.name not in unsettled for p in group.plugins)
                for group in self._groups
            ],
        )


def by_scope_and_key(plugins: Sequence[Plugin]) -> list[list[int]]:
    """Positions of the row-scoped plugins, grouped so that one group has one scope and one kind of pod key."""
    groups: dict[tuple[str, bool], list[int]] = {}
    for position, plugin in enumerate(plugins):
        if plugin.scope.value != "cluster":
            groups.setdefault((plugin.scope.value, plugin.key_is_spec), []).append(position)
    return list(groups.values())
