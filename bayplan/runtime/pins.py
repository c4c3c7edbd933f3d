"""Pins: pods that name their node, as those of a DaemonSet do, judged on that node alone.

Such pods are alike but for the name. Where every filter that is concerned with them looks at rows only, all there is to
do for one of them is to look at one row; with a single feasible node nobody is asked for scores.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence

from ..api.pod import EMPTY_STATUS, Pod, PodClass, PodSpec
from ..framework import (
    NODE_OBJECT,
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    RowFilter,
)
from ..table import NodeTable
from .kept import KeptFeasible
from .leaders import active_plugins
from .row_judge import STATE, row_filter
from .scene import Scene

log = logging.getLogger(__name__)

MAX_KINDS = 4096
MAX_CELLS = 2_000_000
"""Answers kept at most (kinds of pods times rows)."""


class PinnedKind:
    """How to judge a row for the pods of one class, while `stamp` is the same; not at all without `accepted`."""

    __slots__ = ("accepted", "fits", "pod", "stamp")

    def __init__(self, pod: Pod, stamp: Hashable) -> None:
        self.pod = pod
        self.stamp = stamp
        self.accepted: KeptFeasible | None = None
        """What the filters say that look at node objects only."""
        self.fits: list[RowFilter] = []


class Pins:
    """The pinned pods of one profile."""

    def __init__(
        self, pre_filters: Sequence[PreFilterPlugin], filters: Sequence[FilterPlugin]
    ) -> None:
        self._pre_filters = tuple(pre_filters)
        self._filters = tuple(filters)
        every: set[Plugin] = {*pre_filters, *filters}
        self._may_judge = not any(plugin.reads_pin for plugin in every)
        self._scene = Scene(every)
        self._kinds: dict[PodClass, PinnedKind] = {}

    def find(self, pod: Pod, table: NodeTable) -> int | None:
        """The row of the node that `pod` names, if it fits there; None: it does not, or has to be judged."""
        row = table.row_of.get(pod.spec.pin)
        if row is None or table.nodes[row] is None or not self._may_judge:
            return None
        if pod.node_name or (pod.status is not EMPTY_STATUS and pod.status.has_resources):
            return None  # more counts than the class
        try:
            return row if self._accepts(pod, row, table) else None
        except Exception:
            # Whoever raised is asked once more on the long road, where it is said what happened.
            log.debug("pod %s: no shortcut", pod.key, exc_info=True)
            self._kinds.clear()
            return None

    def _accepts(self, pod: Pod, row: int, table: NodeTable) -> bool:
        stamp, keys = self._scene.keys(table)
        kind = self._kinds.get(pod.pod_class)
        if kind is None or kind.stamp != stamp:
            kind = self._judge_kind(pod, table, stamp)
        accepted = kind.accepted
        if accepted is None:
            return False
        if keys or accepted.version != table.node_changes.version:
            accepted.follow(STATE, kind.pod, table, table.node_changes, keys)
        if accepted.refused and not accepted.feasible.item(row):
            return False
        for fits in kind.fits:  # noqa: SIM110  # a generator takes longer than this
            if not fits(row):
                return False
        return True

    def _judge_kind(self, pod: Pod, table: NodeTable, stamp: Hashable) -> PinnedKind:
        """Find out who is concerned with pods like `pod`."""
        if len(self._kinds) >= MAX_KINDS or (len(self._kinds) + 1) * len(table) > MAX_CELLS:
            self._kinds.clear()
        named, pod = pod, pod.replace(spec=pod.pod_class.spec)
        kind = self._kinds[pod.pod_class] = PinnedKind(pod, stamp)
        if not self._is_narrowed(named, pod.spec, table):
            return kind
        filters = active_plugins(
            [(plugin, plugin.pre_filter_spec(pod.spec)) for plugin in self._pre_filters],
            self._filters,
            pod,
            table,
        )
        if filters is not None:
            kind.accepted = KeptFeasible([p for p in filters if p.scope is NODE_OBJECT])
            kind.fits = [row_filter(p, pod, table) for p in filters if p.scope is not NODE_OBJECT]
        return kind

    def _is_narrowed(self, pod: Pod, unpinned: PodSpec, table: NodeTable) -> bool:
        """Whether PreFilter leaves only the node that the pod names; a profile may be without NodeAffinity."""
        answers = [
            plugin.pre_filter(CycleState(), pod, table)
            for plugin in self._pre_filters
            if plugin.pre_filter_spec(pod.spec) is None
            and plugin.pre_filter_spec(unpinned) is not None
        ]
        return bool(answers) and all(
            isinstance(answer, PreFilterResult) and answer.node_names == {pod.spec.pin}
            for answer in answers
        )
