"""Kept: answers of NODE_ROW and NODE_OBJECT plugins, kept per pod key and followed up.

A plugin whose answer depends on the pod and on the node's own row is asked in full once; afterwards only the rows
that changed since are judged again. Plugins of one scope are kept together: what is kept is whether all of them
accept a row, or the weighted sum of what all of them give it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..api.pod import Pod
from ..framework import (
    NODE_OBJECT,
    Code,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    RowFilter,
    RowScore,
    Scope,
    ScorePlugin,
    Verdict,
)
from ..table import Bools, ChangeLog, Ints, NodeTable, Rows
from .failing import failed
from .seen import Seen
from .timing import timed

MAX_CELLS = 16_000_000
"""Answers kept per group of plugins at most (pod keys times rows); those unused for longest go first."""
FEW_ROWS = 8
"""Up to here asking about one node after the other is quicker than asking about all at once."""

FILTERING = "running {} filter plugin"
PRE_SCORING = "running PreScore plugin {}"
SCORING = "running Score plugins: plugin {} failed with"


class KeptAnswer(ABC):
    """An answer over all rows, as of `version` of a change log."""

    __slots__ = ("_stamp", "epoch", "one_by_one", "version")

    def __init__(self, one_by_one: bool) -> None:
        self.version = -1
        self.epoch = 0
        """How often all rows were judged, and rows that had not changed were found to be otherwise."""
        self._stamp: Hashable = None
        self.one_by_one = one_by_one

    @abstractmethod
    def judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        """Ask about `rows` and take over what is said."""

    def follow(
        self, state: CycleState, pod: Pod, table: NodeTable, log: ChangeLog, stamp: Hashable
    ) -> None:
        """Bring the answer up to date; another `stamp` than last time makes all of it stale."""
        is_stale = stamp != self._stamp
        if self.version == log.version and not is_stale:
            return
        changed = log.since(self.version) if self.version >= 0 else None
        if changed is None or is_stale or 4 * len(changed) > len(table):
            self._judge_all(state, pod, table, changed or [])
        else:
            nodes = table.nodes
            changed = [row for row in changed if nodes[row] is not None]
            if self.one_by_one and len(changed) <= FEW_ROWS:
                self.make_room(table)
                for row in changed:
                    self.judge_row(state, pod, table.node_at(row))
            else:
                self.judge(state, pod, table, np.array(changed, dtype=np.int64))
        self.version, self._stamp = log.version, stamp

    def _judge_all(self, state: CycleState, pod: Pod, table: NodeTable, changed: list[int]) -> None:
        before = self.view.copy()
        self.judge(state, pod, table, table.live_rows)
        differs = before != self.view[: len(before)]
        differs[[row for row in changed if row < len(before)]] = False
        self.epoch += self.version < 0 or bool(differs.any())

    @property
    @abstractmethod
    def view(self) -> NDArray[Any]:
        """The answer as a column: a value per row."""

    @abstractmethod
    def judge_row(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        """Ask about one node and take over what is said."""

    @abstractmethod
    def make_room(self, table: NodeTable) -> None:
        """Have an entry for every row of the table."""


class KeptFeasible(KeptAnswer):
    """`feasible`, a bool per row: every one of `plugins` accepts the row. `refused` counts those that are False."""

    __slots__ = ("_plugins", "_quick", "feasible", "refused")

    def __init__(self, plugins: Sequence[FilterPlugin]) -> None:
        super().__init__(all(has_own(plugin, FilterPlugin, "filter_node") for plugin in plugins))
        self._plugins = plugins
        self._quick: list[RowFilter | None] | None = None
        """The quick forms of the plugins, once a single row was judged."""
        self.feasible: Bools = np.zeros(0, dtype=np.bool_)
        self.refused = 0

    @property
    def view(self) -> Bools:
        return self.feasible

    def make_room(self, table: NodeTable) -> None:
        if len(self.feasible) != len(table):
            self.refused += len(table) - len(self.feasible)
            self.feasible = grown(self.feasible, len(table))

    def judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        self.make_room(table)
        accepted: Bools | None = None
        for plugin in self._plugins:
            feasible = judge_rows(plugin, state, pod, table, rows).feasible
            accepted = feasible if accepted is None else np.logical_and(accepted, feasible)
        self.feasible[rows] = True if accepted is None else accepted
        self.refused = len(table) - int(np.count_nonzero(self.feasible))

    def judge_row(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        accepted = self._accepts(state, pod, node)
        if accepted != self.feasible.item(node.row):
            self.feasible[node.row] = accepted
            self.refused += -1 if accepted else 1

    def _accepts(self, state: CycleState, pod: Pod, node: NodeInfo) -> bool:
        if self._quick is None:
            self._quick = [plugin.row_filter(pod, node.table) for plugin in self._plugins]
        for plugin, fits in zip(self._plugins, self._quick, strict=True):
            if fits is not None:
                if not fits(node.row):
                    return False
                continue
            try:
                status = plugin.filter_node(state, pod, node)
            except Exception as error:
                raise failed(FILTERING, plugin, error) from error
            if status.code is not Code.Success:
                if not status.is_rejected:
                    raise failed(FILTERING, plugin, status)
                return False
        return True


class KeptSum(KeptAnswer):
    """`total`, an int64 per row: the weighted sum of what `plugins` give the row.

    The scores are `final`, and so must be in range, unless they are still to be normalised.
    """

    __slots__ = ("_final", "_plugins", "_quick", "total")

    def __init__(self, plugins: Sequence[tuple[ScorePlugin, int]], final: bool = True) -> None:
        super().__init__(all(has_own(plugin, ScorePlugin, "score_node") for plugin, _ in plugins))
        self._plugins = plugins
        self._final = final
        self._quick: list[RowScore | None] | None = None
        self.total: Ints = np.zeros(0, dtype=np.int64)

    @property
    def view(self) -> Ints:
        return self.total

    def make_room(self, table: NodeTable) -> None:
        self.total = grown(self.total, len(table))

    def judge(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> None:
        self.make_room(table)
        total: Ints | None = None
        for plugin, weight in self._plugins:
            scores = score_rows(plugin, state, pod, table, rows)
            if self._final:
                check_range(plugin, scores)
            part = scores if weight == 1 else scores * weight
            if total is None:
                total = part if part is not scores else part.copy()
            else:
                total += part
        self.total[rows] = 0 if total is None else total

    def judge_row(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
        if self._quick is None:
            self._quick = [plugin.row_score(pod, node.table) for plugin, _ in self._plugins]
        total = 0
        for (plugin, weight), quick in zip(self._plugins, self._quick, strict=True):
            try:
                score = (
                    quick(node.row) if quick is not None else plugin.score_node(state, pod, node)
                )
            except Exception as error:
                raise failed(SCORING, plugin, error) from error
            if self._final and not 0 <= score <= 100:
                raise out_of_range(plugin, score)
            total += score * weight
        self.total[node.row] = total


T = TypeVar("T", bound=KeptAnswer)
SKIPPED = object()


class Kept(Generic[T]):
    """The answers of the plugins of one scope, by what they depend on of the pod."""

    def __init__(self, plugins: Sequence[Plugin], make: Callable[[list[int]], T]) -> None:
        self.plugins = tuple(plugins)
        self.scope: Scope = plugins[0].scope
        self._make = make
        self._answers: dict[Hashable, T] = {}  # in order of last use
        self._keys = [(plugin.name, plugin.pod_key) for plugin in plugins]
        self._seen = Seen()
        self._on_cluster = [p for p in plugins if has_own(p, Plugin, "cluster_key")]

    def get(self, state: CycleState, pod: Pod, table: NodeTable, skipped: set[str]) -> T:
        """The up-to-date answer for `pod` of the plugins that are not skipped."""
        key = tuple([SKIPPED if name in skipped else key_of(pod) for name, key_of in self._keys])
        answer = self._answers.pop(key, None)
        if answer is None:
            answer = self._make([i for i, part in enumerate(key) if part is not SKIPPED])
            if not self._seen.add(key):
                self.follow(answer, state, pod, table)
                return answer  # nobody may ever ask for it again
            self._make_room(len(table))
        self.follow(answer, state, pod, table)  # one that fails leaves no half answer behind
        self._answers[key] = answer
        return answer

    def follow(self, answer: T, state: CycleState, pod: Pod, table: NodeTable) -> None:
        """Bring an answer up to date."""
        stamp = None
        if self._on_cluster:
            stamp = tuple([plugin.cluster_key(table) for plugin in self._on_cluster])
        log = table.node_changes if self.scope is NODE_OBJECT else table.row_changes
        if stamp is not None or answer.version != log.version:
            answer.follow(state, pod, table, log, stamp)

    def _make_room(self, rows: int) -> None:
        while self._answers and (len(self._answers) + 1) * rows > MAX_CELLS:
            del self._answers[next(iter(self._answers))]


def judge_rows(
    plugin: FilterPlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> Verdict:
    """Ask one Filter plugin about `rows`; whatever goes wrong is raised with its name."""
    try:
        ask = plugin.filter_rows
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "Filter", plugin, ask)
        verdict = ask(state, pod, table, rows)
    except Exception as error:
        raise failed(FILTERING, plugin, error) from error
    if verdict.error is not None:
        raise failed(FILTERING, plugin, verdict.error)
    return verdict


def score_rows(
    plugin: ScorePlugin, state: CycleState, pod: Pod, table: NodeTable, rows: Rows
) -> Ints:
    """Ask one Score plugin about `rows`; whatever goes wrong is raised with its name."""
    try:
        ask = plugin.score_rows
        if state.sampled_by is not None:
            ask = timed(state.sampled_by, "Score", plugin, ask)
        return ask(state, pod, table, rows)
    except Exception as error:
        raise failed(SCORING, plugin, error) from error


def score_nodes(
    plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> Ints:
    """Ask one Score plugin about one node after the other; whatever goes wrong is raised with its name."""
    try:
        scores = [plugin.score_node(state, pod, node) for node in nodes]
    except Exception as error:
        raise failed(SCORING, plugin, error) from error
    return np.array(scores, dtype=np.int64)


def check_range(plugin: ScorePlugin, scores: Ints) -> None:
    """Raise when a normalised score is below 0 or above 100."""
    # Read as unsigned, a negative number is a very large one: one look finds both.
    if scores.size and scores.view(np.uint64).max() > 100:
        raise out_of_range(plugin, int(scores.min() if scores.min() < 0 else scores.max()))


def out_of_range(plugin: ScorePlugin, score: int) -> Exception:
    """The failure of a plugin whose score is `score`."""
    text = f'plugin "{plugin.name}" returns an invalid score {score}, it should in the range of'
    doing = "applying score defaultWeights on Score plugins"
    return failed(doing, plugin, f"{text} [0, 100] after normalizing")


def has_own(plugin: Plugin, base: type[Plugin], method: str) -> bool:
    """Whether the plugin brings its own version of `method`."""
    return getattr(type(plugin), method) is not getattr(base, method)


def is_normalized(plugin: ScorePlugin) -> bool:
    """Whether the raw scores are not yet the scores."""
    return has_own(plugin, ScorePlugin, "normalize") or has_own(
        plugin, ScorePlugin, "normalize_rows"
    )


A = TypeVar("A", bound=np.generic)


def grown(
    values: np.ndarray[tuple[int], np.dtype[A]], size: int
) -> np.ndarray[tuple[int], np.dtype[A]]:
    """`values` with room for `size` rows; the new ones are zero."""
    if len(values) == size:
        return values
    longer = np.zeros(size, dtype=values.dtype)
    longer[: len(values)] = values
    return longer
