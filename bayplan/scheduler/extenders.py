"""Extenders: all extenders of a configuration, at each step where they take part.

Mirrors findNodesThatPassExtenders, prioritizeNodes and extendersBinding of pkg/scheduler/schedule_one.go, callExtenders
of pkg/scheduler/framework/preemption/preemption.go and buildExtenders of pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from ..api.node import Node
from ..api.pod import Pod
from ..config.expand import wrap_int64
from ..config.types import Extender as ExtenderConfig
from ..errors import ExtenderError
from ..framework import MAX_SCORE, SUCCESS, Status, failure, unresolvable, unschedulable
from ..framework.diagnosis import Diagnosis
from ..framework.victims import Victims
from ..table import Bools, Ints, NodeTable
from .extender import HTTPExtender, MakeTransport

log = logging.getLogger(__name__)

SCALE = MAX_SCORE // 10
"""An extender gives 0 to 10 where a plugin gives 0 to 100."""


class RowsLeft(msgspec.Struct, frozen=True):
    """The rows that extenders left over, in the order in which they gave them."""

    rows: Ints
    are_bare: bool
    """Whether whole nodes were returned, not names: kube-scheduler then scores these, without their pods."""


class ExtenderScores(msgspec.Struct):
    """Points of extenders for the nodes they scored, one entry per node, weighted and added up."""

    total: Ints
    is_scored: Bools
    """The nodes that some extender named, even with 0 points."""
    each: list[tuple[str, int, dict[str, int]]]
    """The address, the weight and the scores by node name of every extender that scores."""


class Extenders:
    """Calls the extenders in order: first those that are not ignorable, then the ignorable ones."""

    def __init__(
        self,
        configs: Iterable[ExtenderConfig],
        make_transport: MakeTransport,
        table: NodeTable,
        bound_by_extender: Callable[[Pod, str], None] | None = None,
    ) -> None:
        made = [HTTPExtender(config, make_transport(config)) for config in configs]
        self._all = sorted(made, key=lambda extender: extender.is_ignorable)
        self._table = table
        self._bound_by_extender = bound_by_extender
        self.can_filter = any(extender.config.filter_verb for extender in made)
        self.can_prioritize = any(extender.config.prioritize_verb for extender in made)

    def filter(self, pod: Pod, rows: Ints, diagnosis: Diagnosis) -> RowsLeft:
        """The rows of `rows` that all extenders accept.

        Notes the refusals in `diagnosis`. Raises ExtenderError if one fails that is not ignorable.
        """
        left, are_bare = rows, False
        for extender in self._interested(pod):
            if not len(left):
                break
            if not extender.config.filter_verb:
                continue
            try:
                answer = extender.filter(pod, self._nodes(left))
            except ExtenderError as error:
                if not extender.is_ignorable:
                    raise
                log.info("skipping extender %s: %s", extender.name, error)
                continue
            self._note(diagnosis, answer.failed, unschedulable)
            self._note(diagnosis, answer.unresolvable, unresolvable)
            asked = left
            left = np.array([self._table.row_of[name] for name in answer.names], dtype=np.int64)
            diagnosis.extenders |= dict.fromkeys(np.setdiff1d(asked, left).tolist(), extender.name)
            are_bare = are_bare or not answer.by_name
        dropped = np.setdiff1d(rows, left)
        for row in dropped.tolist():
            # A node left out without a reason counts as not judged, so preemption skips it.
            diagnosis.alone.setdefault(row, diagnosis.absent)
        return RowsLeft(left, are_bare)

    def score(self, pod: Pod, rows: Ints) -> ExtenderScores:
        """Points of the extenders for `rows`; an extender that fails gives none."""
        names = [self._table.names[row] for row in rows]
        position = {name: i for i, name in enumerate(names)}
        totals = [0] * len(names)
        is_scored = np.zeros(len(names), dtype=np.bool_)
        each: list[tuple[str, int, dict[str, int]]] = []
        for extender in self._interested(pod):
            weight = extender.config.weight if extender.config.prioritize_verb else 0
            try:
                given = extender.prioritize(pod, self._nodes(rows))
            except ExtenderError as error:
                log.info("extender %s gives pod %s no scores: %s", extender.name, pod.key, error)
                continue
            known = dict.fromkeys(names, 0)
            for host, score in given:
                if host in position:
                    totals[position[host]] += score * weight * SCALE
                    is_scored[position[host]] = True
                    known[host] += score
            if extender.config.prioritize_verb:
                each.append((extender.name, weight, known))
        total = np.array([wrap_int64(total) for total in totals], dtype=np.int64)
        return ExtenderScores(total, is_scored, each)

    def binds(self, pod: Pod) -> bool:
        """Whether an extender binds such pods."""
        return any(extender.config.bind_verb for extender in self._interested(pod))

    def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Result of the binding by the first extender that binds such pods; None when there is none."""
        for extender in self._interested(pod):
            if not extender.config.bind_verb:
                continue
            try:
                extender.bind(pod, node_name)
            except ExtenderError as error:
                if not extender.is_ignorable:
                    return failure(error)
                log.info("skipping extender %s in bind: %s", extender.name, error)
                continue
            if self._bound_by_extender is not None:
                self._bound_by_extender(pod, node_name)
            return SUCCESS
        return None

    def are_interested(self, pod: Pod) -> bool:
        """Whether an extender takes part in preemption for `pod`."""
        return any(extender.config.preempt_verb for extender in self._interested(pod))

    def choose_victims(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """The candidates that all extenders accept; ExtenderError if one fails that is not ignorable."""
        for extender in self._interested(pod):
            if not candidates:
                break
            if not extender.config.preempt_verb:
                continue
            try:
                chosen = extender.process_preemption(pod, candidates, self._table)
                candidates = _with_victims(chosen, extender.is_ignorable)
            except ExtenderError as error:
                if not extender.is_ignorable:
                    raise
                log.info("skipping extender %s in preemption: %s", extender.name, error)
        return candidates

    def _interested(self, pod: Pod) -> list[HTTPExtender]:
        return [extender for extender in self._all if extender.is_interested(pod)]

    def _nodes(self, rows: Ints) -> list[Node]:
        nodes = (self._table.nodes[row] for row in rows.tolist())
        return [node for node in nodes if node is not None]

    def _note(
        self, diagnosis: Diagnosis, failed: Mapping[str, str], status: Callable[[str], Status]
    ) -> None:
        """Record the reasons of an extender for nodes; names that no node has are ignored."""
        for name, reason in failed.items():
            row = self._table.row_of.get(name)
            if row is not None and self._table.live[row]:
                diagnosis.alone[row] = status(reason)


def _with_victims(chosen: dict[str, Victims], ignorable: bool) -> dict[str, Victims]:
    """The nodes with victims. One without is left out; if the extender is not ignorable, that is an ExtenderError."""
    for node_name, victims in chosen.items():
        if not victims.pods and not ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{node_name}"')
    return {name: victims for name, victims in chosen.items() if victims.pods}
