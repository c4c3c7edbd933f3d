"""Witness: the decision of a scheduler about a pod with `explain` off, and the totals behind it.

A scheduler that explains judges every node again, and so bypasses its caches. A witness leaves the
scheduler on its fast path and computes the rest through the profile's interface.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayplan.api.pod import Pod
from bayplan.framework import Code, CycleState, PostFilterResult, Status
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.interface import Preemption
from bayplan.runtime import ProfileRuntime
from bayplan.scheduler import Scheduler
from bayplan.scheduler.find_nodes import NodeFinder
from bayplan.table import Ints, Rows

Came = tuple[PostFilterResult, Status]


@dataclass(frozen=True, slots=True)
class Totals:
    """The feasible nodes by name, with the total score of each: computed in two ways that must
    agree."""

    kept: dict[str, int]
    """The deciding totals: the masks and sums that the profile caches and updates."""
    anew: dict[str, int]
    """The totals, computed by calling each plugin again for every node."""


class Witness:
    """Observes one scheduler: `totals` computes a pod's totals, `post_filter` is the last
    PostFilter result."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.post_filter: Came | None = None
        """None when PostFilter did not run since `forget`."""
        for profile in scheduler.profiles.values():
            self._listen(profile)

    def forget(self) -> None:
        """Reset for another attempt."""
        self.post_filter = None

    @property
    def preemption(self) -> Preemption | None:
        """The account of the preemption, if there was one."""
        return None if self.post_filter is None else self.post_filter[0].preemption

    def totals(self, pod: Pod) -> Totals:
        """The totals of the feasible nodes, without a decision."""
        scheduler = self._scheduler
        scheduler.cache.snapshot.update()
        table, profile, state = scheduler.cache.table, self._profile(pod), CycleState()
        if table.node_count == 0:
            return Totals({}, {})
        # With our own finder the scheduler's next search starts where its last one stopped. A
        # feasible nominated node would be the only one found, unless all nodes are requested.
        finder = NodeFinder(table, scheduler.cache.snapshot)
        search = finder.find(profile, state, pod, everything=True)
        accepted = np.flatnonzero((search.diagnosis.codes() == Code.Success) & table.live)
        return Totals(self._kept(state, pod, search.rows), self._anew(pod, accepted))

    def _kept(self, state: CycleState, pod: Pod, rows: Rows) -> dict[str, int]:
        """The totals that a cycle computes for its feasible rows."""
        table, scoring = self._scheduler.cache.table, self._profile(pod).scoring
        if table.count(rows) == 0:
            return {}
        scoring.run_pre_scores(state, pod, table, rows)
        return self._by_name(rows, scoring.run_scores(state, pod, table, rows))

    def _anew(self, pod: Pod, rows: Ints) -> dict[str, int]:
        """The totals from the plugins, for the rows that each of them accepts."""
        table, profile, state = self._scheduler.cache.table, self._profile(pod), CycleState()
        if len(rows) == 0:
            return {}
        profile.filtering.run_pre_filters(state, pod, table)
        profile.scoring.run_pre_scores(state, pod, table, rows)
        total = np.zeros(len(rows), dtype=np.int64)
        for scored in profile.scoring.each_score(state, pod, table, rows):
            total += scored.normalized * scored.weight
        return self._by_name(rows, total if profile.scoring.scores else total + 1)

    def _profile(self, pod: Pod) -> ProfileRuntime:
        return self._scheduler.profiles[pod.scheduler_name]

    def _by_name(self, rows: Rows, totals: Ints) -> dict[str, int]:
        table = self._scheduler.cache.table
        names = [table.names[row] for row in table.numbers(rows).tolist()]
        return dict(zip(names, totals.tolist(), strict=True))

    def show_images(self) -> None:
        """Update the image counts of every node.

        kube-scheduler gives a node the counts from the time of its last change, so that a scheduler
        started later would score differently.
        """
        table = self._scheduler.cache.table
        for row in table.numbers(table.live_rows).tolist():
            table.images.touch(row)

    def _listen(self, profile: ProfileRuntime) -> None:
        run: Callable[[CycleState, Pod, Diagnosis], Came] = profile.filtering.run_post_filters

        def run_post_filters(state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Came:
            self.post_filter = run(state, pod, diagnosis)
            return self.post_filter

        filtering: Any = profile.filtering
        filtering.run_post_filters = run_post_filters
