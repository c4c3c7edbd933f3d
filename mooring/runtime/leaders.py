"""Leaders: the best nodes for a pod when nobody has to be asked.

Most pods are like others before them, and most plugins have nothing to say about most pods. Where every plugin that is
concerned with a pod looks at rows only, how the nodes stand for its kind is kept (`standing.py`) and followed.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from ..api.pod import EMPTY_STATUS, Pod, PodClass
from ..framework import (
    CLUSTER,
    NODE_OBJECT,
    Code,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from ..table import NodeTable
from .kept import KeptFeasible, KeptSum, has_own
from .seen import Seen
from .standing import Bounds, Standing, Weighted

log = logging.getLogger(__name__)

MAX_KINDS = 4096
MAX_SEEN = 65_536
MAX_CELLS = 2_000_000
"""Totals kept at most (kinds of pods times rows)."""


class Kind:
    """What is known about the pods of one class, while `stamp` is the same. Without a `key` they have to be judged."""

    __slots__ = ("active", "key", "stamp", "standing")

    def __init__(self, stamp: Hashable) -> None:
        self.stamp = stamp
        self.active: frozenset[str] = frozenset()
        """The Filter and Score plugins that have something to say."""
        self.key: Hashable = None
        """What the standing depends on of the pod."""
        self.standing: Standing | None = None


class Leaders:
    """The standings of one profile."""

    def __init__(
        self,
        pre_filters: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        pre_scores: Sequence[PreScorePlugin],
        scores: Sequence[Weighted],
    ) -> None:
        self._pre_filters = tuple(pre_filters)
        self._filters = tuple(filters)
        self._pre_scores = tuple(pre_scores)
        self._scores = tuple(scores)
        scorers = [plugin for plugin, _ in scores]
        every: set[Plugin] = {*pre_filters, *filters, *pre_scores, *scorers}
        self._changing = [plugin for plugin in every if has_own(plugin, Plugin, "concern_key")]
        self._stamped = [plugin for plugin in every if has_own(plugin, Plugin, "cluster_key")]
        self._by_class = all(p.key_is_spec for p in (*filters, *scorers) if p.scope is not CLUSTER)
        self._kinds: dict[PodClass, Kind] = {}
        self._standings: dict[Hashable, Standing] = {}
        self._seen: dict[Hashable, None] = {}
        self._specs = Seen()

    def find(self, pod: Pod, table: NodeTable) -> Standing | None:
        """How the nodes stand for `pod` now; None when it has to be judged."""
        if pod.node_name or (pod.status is not EMPTY_STATUS and pod.status.has_resources):
            return None  # more counts than the class
        if pod.spec.pin:
            return None  # one node only: see pins.py
        kind = self._kinds.get(pod.pod_class)
        if kind is None and not self._specs.add(pod.spec):
            return None  # it may be the only pod of its spec
        stamp = tuple([plugin.concern_key(table) for plugin in self._changing])
        try:
            if kind is None or kind.stamp != stamp:
                kind = self._judge_kind(pod, table, stamp)
            standing = kind.standing if self._by_class else None
            if standing is None:
                standing = self._standing_of(kind, pod, table)
                if standing is None:
                    return None
            standing.follow(table, tuple([p.cluster_key(table) for p in self._stamped]))
        except Exception:
            # Whoever raised is asked once more on the long road, where it is said what happened.
            log.debug("pod %s: no shortcut", pod.key, exc_info=True)
            self._forget()
            return None
        return standing

    def _judge_kind(self, pod: Pod, table: NodeTable, stamp: Hashable) -> Kind:
        """Find out who is concerned with pods like `pod`."""
        kind = Kind(stamp)
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        self._kinds[pod.pod_class] = kind
        filters = active_plugins(
            [(plugin, plugin.pre_filter_spec(pod.spec)) for plugin in self._pre_filters],
            self._filters,
            pod,
            table,
        )
        scores = active_plugins(
            [(plugin, plugin.pre_score_spec(pod.spec)) for plugin in self._pre_scores],
            [plugin for plugin, _ in self._scores],
            pod,
            table,
        )
        if filters is None or scores is None or not all(map(_can_be_followed, scores)):
            return kind
        kind.active = frozenset(p.name for p in (*filters, *scores))
        kind.key = self._key_of(kind, pod)
        return kind

    def _standing_of(self, kind: Kind, pod: Pod, table: NodeTable) -> Standing | None:
        """The standing for a kind of pods; the first of a kind does without one: it may be the only one."""
        if kind.key is None:
            return None
        key = kind.key if self._by_class else self._key_of(kind, pod)
        standing = self._standings.get(key)
        if standing is None:
            if key not in self._seen:
                if len(self._seen) >= MAX_SEEN:
                    self._seen.clear()
                self._seen[key] = None
                return None
            if (len(self._standings) + 1) * len(table) > MAX_CELLS:
                self._forget()
            standing = self._standings[key] = self._make(kind, pod, table)
        kind.standing = standing
        return standing

    def _key_of(self, kind: Kind, pod: Pod) -> Hashable:
        plugins: list[Plugin] = [*self._filters, *(plugin for plugin, _ in self._scores)]
        keys = [plugin.pod_key(pod) for plugin in plugins if plugin.name in kind.active]
        return kind.active, tuple(keys)

    def _make(self, kind: Kind, pod: Pod, table: NodeTable) -> Standing:
        filters = [plugin for plugin in self._filters if plugin.name in kind.active]
        scores = [(plugin, weight) for plugin, weight in self._scores if plugin.name in kind.active]
        final = [entry for entry in scores if not _is_normalized(entry[0])]
        return Standing(
            pod,
            table,
            [plugin for plugin in filters if plugin.scope is not NODE_OBJECT],
            [entry for entry in final if entry[0].scope is not NODE_OBJECT],
            KeptFeasible([plugin for plugin in filters if plugin.scope is NODE_OBJECT]),
            KeptSum([entry for entry in final if entry[0].scope is NODE_OBJECT]),
            [
                Bounds(plugin, weight, KeptSum([(plugin, 1)], final=False))
                for plugin, weight in scores
                if _is_normalized(plugin)
            ],
        )

    def _forget(self) -> None:
        self._kinds.clear()
        self._standings.clear()


P = TypeVar("P", bound=Plugin)


def active_plugins(
    prepared: Iterable[tuple[Plugin, Status | None]],
    plugins: Iterable[P],
    pod: Pod,
    table: NodeTable,
) -> list[P] | None:
    """Those of `plugins` that have something to say about `pod`; None when one of them looks beyond the row.

    `prepared` are those that prepare, with what the spec settles of that.
    """
    skipped = set()
    for plugin, status in prepared:
        if status is None:
            if plugin.concerns(pod, table):
                return None
            skipped.add(plugin.name)
        elif status.code is Code.Skip:
            skipped.add(plugin.name)
        elif not status.is_success:
            return None
    active = [plugin for plugin in plugins if plugin.name not in skipped]
    if any(plugin.scope is CLUSTER and plugin.concerns(pod, table) for plugin in active):
        return None
    return [plugin for plugin in active if plugin.scope is not CLUSTER]


def _is_normalized(plugin: ScorePlugin) -> bool:
    """Whether the raw scores are not yet the scores."""
    return has_own(plugin, ScorePlugin, "normalize") or has_own(
        plugin, ScorePlugin, "normalize_rows"
    )


def _can_be_followed(plugin: ScorePlugin) -> bool:
    """Whether what the plugin gives a row changes with the row and the bounds only."""
    if not _is_normalized(plugin):
        return True
    return (
        plugin.scope is NODE_OBJECT
        and plugin.normalizes_by_bounds
        and not has_own(plugin, ScorePlugin, "normalize_rows")
    )
