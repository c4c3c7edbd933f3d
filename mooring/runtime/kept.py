"""Kept: verdicts and raw scores of NODE_ROW and NODE_OBJECT plugins, kept per pod key and followed up.

A plugin whose answer depends on the pod and on the node's own row is asked in full once; afterwards only the rows
that changed since are judged again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from ..api.pod import Pod
from ..framework import NODE_OBJECT, CycleState, FilterPlugin, Plugin, ScorePlugin, Verdict
from ..table import Bools, ChangeLog, Ints, NodeTable, Rows
from .failing import failed, guard

MAX_CELLS = 16_000_000
"""Answers kept per plugin at most (pod keys times rows); those unused for longest go first."""

T = TypeVar("T", bound="KeptAnswer")


class KeptAnswer(ABC):
    """One plugin's answer for one pod key, over all rows, as of `version` of a change log."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = -1

    @abstractmethod
    def judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        """Ask the plugin about `rows` and take over what it says."""

    def follow(self, state: CycleState, pod: Pod, table: NodeTable, log: ChangeLog) -> None:
        """Bring the answer up to date."""
        if self.version == log.version:
            return
        changed = log.since(self.version) if self.version >= 0 else None
        if changed is None or 4 * len(changed) > len(table):
            self.judge(state, pod, table, table.live_rows)
        else:
            self.judge(state, pod, table, changed[table.live[changed]])
        self.version = log.version


class KeptVerdict(KeptAnswer):
    """`feasible` is a bool per row; `refuses` says whether any row is False."""

    __slots__ = ("_plugin", "feasible", "refuses", "verdict")

    def __init__(self, plugin: FilterPlugin) -> None:
        super().__init__()
        self._plugin = plugin
        self.verdict = Verdict(0)
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.refuses = False

    def judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        with guard("running {} filter plugin", self._plugin):
            judged = self._plugin.filter_rows(state, pod, table, rows)
        check_verdict(judged, self._plugin)
        if isinstance(rows, slice):
            self.verdict = judged
            self.feasible = judged.feasible
        else:
            self.verdict.replace(rows, judged, len(table))
            if len(self.feasible) == len(table):
                self.feasible[rows] = judged.feasible
            else:
                self.feasible = self.verdict.feasible
        self.refuses = not self.feasible.all()


class KeptScores(KeptAnswer):
    """`raw` is an int64 per row."""

    __slots__ = ("_plugin", "raw")

    def __init__(self, plugin: ScorePlugin) -> None:
        super().__init__()
        self._plugin = plugin
        self.raw: Ints = np.zeros(0, dtype=np.int64)

    def judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        with guard("running Score plugins: plugin {} failed with", self._plugin):
            scores = self._plugin.score_rows(state, pod, table, rows)
        if len(self.raw) != len(table):
            grown = np.zeros(len(table), dtype=np.int64)
            grown[: len(self.raw)] = self.raw
            self.raw = grown
        self.raw[rows] = scores


class Kept(Generic[T]):
    """The answers of one plugin, by pod key."""

    def __init__(self, plugin: Plugin, answer: type[T]) -> None:
        self._plugin = plugin
        self._answer = answer
        self._answers: dict[Hashable, T] = {}  # in order of last use

    def get(self, state: CycleState, pod: Pod, table: NodeTable) -> T:
        """The plugin's up-to-date answer for `pod`."""
        key = self._plugin.pod_key(pod)
        answer = self._answers.pop(key, None)
        if answer is None:
            answer = self._answer(self._plugin)  # type: ignore[call-arg]  # each takes its own plugin type
            self._make_room(len(table))
        log = table.node_changes if self._plugin.scope is NODE_OBJECT else table.row_changes
        answer.follow(state, pod, table, log)  # a plugin that fails leaves no half answer behind
        self._answers[key] = answer
        return answer

    def _make_room(self, rows: int) -> None:
        while self._answers and (len(self._answers) + 1) * rows > MAX_CELLS:
            del self._answers[next(iter(self._answers))]


def check_verdict(verdict: Verdict, plugin: Plugin) -> None:
    """Raise when the plugin failed on some row."""
    if verdict.error is not None:
        raise failed("running {} filter plugin", plugin, verdict.error)
