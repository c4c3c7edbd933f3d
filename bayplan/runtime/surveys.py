"""Surveys: who has to be asked about which pods, and the rows that look alike to them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import TypeVar

from ..api.pod import Pod
from ..framework import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
)
from ..table import NodeTable, RowValues
from .kept import KeptSum
from .looks import Looks
from .row_judge import STATE, Weighted
from .standing import Standing
from .survey import Asked, Raw, Survey

MAX_CELLS = 8_000_000
"""Looks of rows kept at most (kinds of pods times rows)."""

MAX_SEEN = 4096

MANY = 64
"""Looks that are too many when there are fewer than four rows to each."""


V = TypeVar("V")


class Surveys:
    """The surveys of one profile."""

    def __init__(
        self,
        pre_filters: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        pre_scores: Sequence[PreScorePlugin],
        scores: Sequence[Weighted],
    ) -> None:
        self._plugins = Asked(pre_filters, filters, pre_scores, scores)
        self._raw: dict[Hashable, KeptSum] = {}
        self._looks: dict[Hashable, Looks] = {}  # in order of last use
        self._seen: set[Hashable] = set()

    def make(
        self,
        pod: Pod,
        table: NodeTable,
        base: Standing,
        beyond: Set[Plugin],
        normalized: Sequence[Weighted],
        stamp: Hashable,
    ) -> Survey | None:
        """The survey for the class of `pod`, where `beyond` look beyond the row; None when there is none yet."""
        marks: list[RowValues] = []
        for plugin in sorted(beyond, key=lambda plugin: plugin.name):
            told = plugin.row_marks(pod, table)
            if told is None:
                return None
            marks += told
        raw = [self._raw_of(entry, pod, table, stamp) for entry in normalized]
        marks += [given.answer for given in raw if not given.is_nothing]
        looks = self._looks_of(base, marks, table)
        if looks is None:
            return None
        survey = Survey(pod, self._asked(beyond), base, looks, raw)
        survey.follow(table)
        survey.is_pointless = len(looks.present) > max(MANY, len(table) // 4)
        return survey

    def forget(self) -> None:
        """Begin anew."""
        self._raw.clear()
        self._looks.clear()
        self._seen.clear()

    def _asked(self, beyond: Set[Plugin]) -> Asked:
        plugins = self._plugins
        return Asked(
            [plugin for plugin in plugins.pre_filters if plugin in beyond],
            [plugin for plugin in plugins.filters if plugin in beyond],
            [plugin for plugin in plugins.pre_scores if plugin in beyond],
            [entry for entry in plugins.scores if entry[0] in beyond],
        )

    def _raw_of(self, entry: Weighted, pod: Pod, table: NodeTable, stamp: Hashable) -> Raw:
        """What a plugin gives the nodes, up to date; kept for all pods to which it gives the same."""
        plugin, weight = entry
        key = (plugin.name, plugin.pod_key(pod))
        answer = self._raw.pop(key, None)
        if answer is None:
            answer = KeptSum([(plugin, 1)], final=False)
            _make_room(self._raw, len(table))
        self._raw[key] = answer
        answer.follow(STATE, pod, table, table.node_changes, stamp)
        return Raw(plugin, weight, answer)

    def _looks_of(
        self, base: Standing, marks: Sequence[RowValues], table: NodeTable
    ) -> Looks | None:
        """The looks by `marks`; the first to ask does without: it may be the only one."""
        distinct = tuple(dict.fromkeys(marks))
        key = (base, distinct)
        looks = self._looks.pop(key, None)
        if looks is None:
            if key not in self._seen:
                if len(self._seen) >= MAX_SEEN:
                    self._seen.clear()
                self._seen.add(key)
                return None
            looks = Looks(distinct)
            _make_room(self._looks, len(table))
        self._looks[key] = looks
        return looks


def _make_room(kept: dict[Hashable, V], rows: int) -> None:
    while kept and (len(kept) + 1) * rows > MAX_CELLS:
        del kept[next(iter(kept))]
