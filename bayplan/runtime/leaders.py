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
    NODE_ROW,
    Code,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from ..table import NodeTable
from .kept import KeptFeasible, KeptSum, has_own, is_normalized
from .row_judge import Weighted
from .scene import Scene
from .seen import Seen
from .standing import Bounds, Standing
from .survey import Survey
from .surveys import Surveys

log = logging.getLogger(__name__)

MAX_KINDS = 4096
MAX_CELLS = 2_000_000
"""Totals kept at most (kinds of pods times rows)."""


class Kind:
    """What is known about the pods of one class. Without a `key` they have to be judged."""

    __slots__ = (
        "active",
        "beyond",
        "doubtful",
        "is_free",
        "key",
        "nodes_seen",
        "normalized",
        "stamp",
        "standing",
        "survey",
    )

    def __init__(self) -> None:
        self.active: frozenset[str] = frozenset()
        """The Filter and Score plugins that look at rows and have something to say."""
        self.doubtful: list[Plugin] = []
        """Those that look beyond the row, and may have something to say, depending on the cluster."""
        self.key: Hashable = None
        """What the standing depends on of the pod."""
        self.normalized: list[Weighted] = []
        """The row-scoped plugins whose scores are normalised."""
        self.stamp: Hashable = None
        """While it is the same, so is what follows."""
        self.beyond: frozenset[Plugin] = frozenset()
        """The doubtful ones that are concerned: they are asked for every pod."""
        self.is_free = False
        """There are none of these, or they can be asked about few nodes that stand for many."""
        self.standing: Standing | None = None
        self.survey: Survey | None = None
        self.nodes_seen: Hashable = None
        """When the survey was made, by what changes with the nodes."""


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
        self._scene = Scene(every)
        self._by_class = all(p.key_is_spec for p in (*filters, *scorers) if p.scope is not CLUSTER)
        self._surveys = Surveys(pre_filters, filters, pre_scores, scores)
        self._kinds: dict[PodClass, Kind] = {}
        self._standings: dict[Hashable, Standing] = {}
        self._specs = Seen()

    def find(self, pod: Pod, table: NodeTable) -> Standing | Survey | None:
        """How the nodes stand for `pod` now; None when it has to be judged."""
        if pod.node_name or (pod.status is not EMPTY_STATUS and pod.status.has_resources):
            return None  # more counts than the class
        if pod.spec.pin:
            return None  # one node only: see pins.py
        kind: Kind | None = None
        try:
            kind = self._kinds.get(pod.pod_class) or self._kind_of(pod)
            if kind is None or kind.key is None:
                return None
            stamp, keys = self._scene.keys(table)
            if kind.stamp != stamp:
                self._ask_doubtful(kind, pod, table, stamp)
            if not kind.is_free:
                return None
            standing = kind.standing if self._by_class else None
            if standing is None:
                standing = self._standing_of(kind, pod, table)
            standing.follow(table, keys)
            if kind.beyond:
                return self._survey_of(kind, standing, pod, table, keys)
        except Exception:
            # Whoever raised is asked once more on the long road, where it is said what happened.
            log.debug("pod %s: no shortcut", pod.key, exc_info=True)
            if kind is None or kind.is_free:
                self._forget()  # half followed
            return None
        return standing

    def _ask_doubtful(self, kind: Kind, pod: Pod, table: NodeTable, stamp: Hashable) -> None:
        """Something changed that decides who is concerned with pods like `pod`."""
        kind.stamp, kind.is_free = stamp, False  # should one of them raise, the long road says why
        beyond = frozenset(plugin for plugin in kind.doubtful if plugin.concerns(pod, table))
        if bool(beyond) != bool(kind.beyond):
            kind.standing = None
        kind.beyond, kind.survey, kind.nodes_seen = beyond, None, None
        kind.is_free = not beyond or (self._by_class and all(map(_can_be_surveyed, beyond)))

    def _kind_of(self, pod: Pod) -> Kind | None:
        """What the class of `pod` settles; None for the first pod of a spec, which may be the only one."""
        if not self._specs.add(pod.spec):
            return None
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        kind = self._kinds[pod.pod_class] = Kind()
        filters = _active(
            [(plugin, plugin.pre_filter_spec(pod.spec)) for plugin in self._pre_filters],
            self._filters,
            kind,
        )
        scores = _active(
            [(plugin, plugin.pre_score_spec(pod.spec)) for plugin in self._pre_scores],
            [plugin for plugin, _ in self._scores],
            kind,
        )
        if filters is None or scores is None or not all(map(_can_be_followed, scores)):
            return kind
        kind.normalized = [w for w in self._scores if w[0] in scores and is_normalized(w[0])]
        kind.active = frozenset(plugin.name for plugin in (*filters, *scores))
        kind.key = self._key_of(kind, pod)
        return kind

    def _standing_of(self, kind: Kind, pod: Pod, table: NodeTable) -> Standing:
        """The standing for a kind of pods."""
        key = (bool(kind.beyond), kind.key if self._by_class else self._key_of(kind, pod))
        standing = self._standings.get(key)
        if standing is None:
            if (len(self._standings) + 1) * len(table) > MAX_CELLS:
                self._forget()
            standing = self._standings[key] = self._make(kind, pod, table)
        kind.standing = standing
        return standing

    def _key_of(self, kind: Kind, pod: Pod) -> Hashable:
        plugins: list[Plugin] = [*self._filters, *(plugin for plugin, _ in self._scores)]
        keys = [plugin.pod_key(pod) for plugin in plugins if plugin.name in kind.active]
        return kind.active, tuple(keys)

    def _survey_of(
        self, kind: Kind, base: Standing, pod: Pod, table: NodeTable, keys: Hashable
    ) -> Survey | None:
        """How the nodes stand when those are asked who look beyond the row."""
        if not base.feasible:
            return None
        nodes = (table.node_changes.version, keys)
        if kind.nodes_seen != nodes:
            kind.survey = self._surveys.make(pod, table, base, kind.beyond, kind.normalized, keys)
            kind.nodes_seen = nodes if kind.survey is not None else None
        survey = kind.survey
        if survey is None or survey.is_pointless:
            return None
        survey.take(table)
        return survey

    def _make(self, kind: Kind, pod: Pod, table: NodeTable) -> Standing:
        filters = [plugin for plugin in self._filters if plugin.name in kind.active]
        scores = [(plugin, weight) for plugin, weight in self._scores if plugin.name in kind.active]
        final = [entry for entry in scores if not is_normalized(entry[0])]
        standing = Standing(
            pod,
            table,
            [plugin for plugin in filters if plugin.scope is not NODE_OBJECT],
            [entry for entry in final if entry[0].scope is not NODE_OBJECT],
            KeptFeasible([plugin for plugin in filters if plugin.scope is NODE_OBJECT]),
            KeptSum([entry for entry in final if entry[0].scope is NODE_OBJECT]),
            [
                Bounds(plugin, weight, KeptSum([(plugin, 1)], final=False))
                for plugin, weight in scores
                if is_normalized(plugin) and not kind.beyond
            ],
        )
        looked_at = (*filters, *(plugin for plugin, _ in scores))
        standing.is_stamped = any(
            p in self._scene.clustered and p.scope is NODE_ROW for p in looked_at
        )
        return standing

    def _forget(self) -> None:
        self._kinds.clear()
        self._standings.clear()
        self._surveys.forget()


P = TypeVar("P", bound=Plugin)


def active_plugins(
    prepared: Iterable[tuple[Plugin, Status | None]],
    plugins: Iterable[P],
    pod: Pod,
    table: NodeTable,
) -> list[P] | None:
    """Those of `plugins` that look at rows and have something to say about `pod`; None when others have, too."""
    kind = Kind()
    active = _active(prepared, plugins, kind)
    return None if any(plugin.concerns(pod, table) for plugin in kind.doubtful) else active


def _active(
    prepared: Iterable[tuple[Plugin, Status | None]], plugins: Iterable[P], kind: Kind
) -> list[P] | None:
    """Those of `plugins` that look at rows and have something to say about pods of `kind`; None: nobody can say.

    `prepared` are those that prepare, with what the spec settles of that. Those that look beyond the row are noted as
    doubtful, if they can say what their doubt depends on.
    """
    skipped: set[str] = set()
    doubtful: list[Plugin] = []
    for plugin, status in prepared:
        if status is None:
            doubtful.append(plugin)
        elif status.code is Code.Skip:
            skipped.add(plugin.name)
        elif not status.is_success:
            return None
    skipped.update(plugin.name for plugin in doubtful)
    active = [plugin for plugin in plugins if plugin.name not in skipped]
    doubtful += [plugin for plugin in active if plugin.scope is CLUSTER]
    if not all(has_own(plugin, Plugin, "concerns") for plugin in doubtful):
        return None
    kind.doubtful += [plugin for plugin in doubtful if plugin not in kind.doubtful]
    return [plugin for plugin in active if plugin.scope is not CLUSTER]


def _can_be_surveyed(plugin: Plugin) -> bool:
    """Whether the plugin may know by what it tells rows apart, and needs to know no more about them."""
    return has_own(plugin, Plugin, "row_marks") and not (
        isinstance(plugin, ScorePlugin) and has_own(plugin, ScorePlugin, "normalize_rows")
    )


def _can_be_followed(plugin: ScorePlugin) -> bool:
    """Whether what the plugin gives a row changes with the row and the bounds only."""
    if not is_normalized(plugin):
        return True
    return (
        plugin.scope is NODE_OBJECT
        and plugin.normalizes_by_bounds
        and not has_own(plugin, ScorePlugin, "normalize_rows")
    )
