"""Plans: what of a profile's work on a pod is settled by the pod's spec, worked out once per spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from ..api.pod import EMPTY_STATUS, Pod, PodSpec
from ..framework import Code, CycleState, Plugin, Status
from ..table import NodeTable
from .kept import MAX_CELLS, Kept, KeptAnswer


class Asked(Protocol):
    """A plugin that prepares Filter or Score."""

    @property
    def name(self) -> str: ...


A = TypeVar("A", bound=Asked)
T = TypeVar("T", bound=KeptAnswer)


class Plan(Generic[A, T]):
    """For pods of one spec: who is skipped, who still has to be asked, and the answers kept for it.

    `answers` has one entry per group of kept plugins; None where the answer must be looked up for each pod.
    """

    __slots__ = ("answers", "ask", "is_settled", "skip")

    def __init__(self, skip: frozenset[str], ask: tuple[A, ...], groups: int) -> None:
        self.skip = skip
        self.ask = ask
        self.answers: list[T | None] = [None] * groups
        self.is_settled = [False] * groups
        """Whether the group's answer is the same for every pod of the spec."""


class Plans(Generic[A, T]):
    """The plans of one profile for one stretch of the road."""

    def __init__(
        self,
        asked: Sequence[A],
        settle: Callable[[A, PodSpec], Status | None],
        groups: Sequence[Kept[T]],
        skipped: Callable[[CycleState], set[str]],
    ) -> None:
        self._asked = asked
        self._settle = settle
        self._groups = groups
        self._skipped = skipped
        self._plans: dict[PodSpec, Plan[A, T]] = {}  # in order of last use

    def get(self, pod: Pod, rows: int) -> Plan[A, T]:
        """The plan for `pod`; `rows` is the size of the table, which decides how many plans are kept."""
        if pod.node_name or (pod.status is not EMPTY_STATUS and pod.status.has_resources):
            # More than the spec counts: nothing is settled.
            return Plan(frozenset(), tuple(self._asked), len(self._groups))
        plan = self._plans.pop(pod.spec, None)
        if plan is None:
            plan = self._make(pod.spec)
            while self._plans and (len(self._plans) + 1) * rows > MAX_CELLS:
                del self._plans[next(iter(self._plans))]
        self._plans[pod.spec] = plan
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
        skip: set[str] = set()
        ask: list[A] = []
        for plugin in self._asked:
            status = self._settle(plugin, spec)
            if status is None:
                ask.append(plugin)
            elif status.code is Code.Skip:
                skip.add(plugin.name)
        plan: Plan[A, T] = Plan(frozenset(skip), tuple(ask), len(self._groups))
        unsettled = {plugin.name for plugin in ask}
        for position, group in enumerate(self._groups):
            plan.is_settled[position] = all(
                plugin.key_is_spec and plugin.name not in unsettled for plugin in group.plugins
            )
        return plan


def by_scope_and_key(plugins: Sequence[Plugin]) -> list[list[int]]:
    """Positions of the row-scoped plugins, grouped so that one group has one scope and one kind of pod key."""
    groups: dict[tuple[str, bool], list[int]] = {}
    for position, plugin in enumerate(plugins):
        if plugin.scope.value != "cluster":
            groups.setdefault((plugin.scope.value, plugin.key_is_spec), []).append(position)
    return list(groups.values())
