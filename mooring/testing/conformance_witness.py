"""Witness: what a scheduler decides about a pod with `explain` off, and the totals it decides by.

A scheduler that explains judges every node anew, and so never shows what it would have done from the answers it keeps.
A witness leaves the scheduler on its usual way and asks for the rest through what a profile offers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..api.pod import Pod
from ..framework import CycleState, Diagnosis, PostFilterResult, Preemption, Status
from ..runtime import ProfileRuntime
from ..scheduler import Scheduler
from ..scheduler.find_nodes import NodeFinder

Came = tuple[PostFilterResult, Status]


@dataclass(frozen=True, slots=True)
class Totals:
    """The total score of every feasible node by name, in two ways that must come to the same."""

    kept: dict[str, int]
    """What decides: the sums that the profile keeps and follows up."""
    anew: dict[str, int]
    """The sum of what each plugin says when it is asked again."""


class Witness:
    """Beside one scheduler: `totals` asks it about a pod, `post_filter` is what PostFilter came to last."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.post_filter: Came | None = None
        """None when PostFilter did not run since `forget`."""
        for profile in scheduler.profiles.values():
            self._listen(profile)

    def forget(self) -> None:
        """Another attempt begins."""
        self.post_filter = None

    @property
    def preemption(self) -> Preemption | None:
        """The account of the preemption, if there was one."""
        return None if self.post_filter is None else self.post_filter[0].preemption

    def totals(self, pod: Pod) -> Totals:
        """The totals of the feasible nodes, from the answers that the scheduler keeps. Nothing is decided."""
        scheduler = self._scheduler
        scheduler.cache.snapshot.update()
        table, profile = scheduler.cache.table, scheduler.profiles[pod.scheduler_name]
        if table.node_count == 0:
            return Totals({}, {})
        state = CycleState()
        # With a finder of our own the scheduler's next search begins where its last one stopped. A nominated node that
        # fits would be the only one found, unless everything is asked for.
        finder = NodeFinder(table, scheduler.cache.snapshot)
        rows = finder.find(profile, state, pod, everything=bool(pod.nominated_node_name)).rows
        if table.count(rows) == 0:
            return Totals({}, {})
        profile.scoring.run_pre_scores(state, pod, table, rows)
        kept = profile.scoring.run_scores(state, pod, table, rows)
        anew = np.zeros(len(kept), dtype=np.int64)
        for scored in profile.scoring.each_score(state, pod, table, rows):
            anew += scored.normalized * scored.weight
        if not profile.scoring.scores:
            anew += 1
        names = [table.names[row] for row in table.numbers(rows).tolist()]
        return Totals(
            dict(zip(names, kept.tolist(), strict=True)),
            dict(zip(names, anew.tolist(), strict=True)),
        )

    def show_images(self) -> None:
        """Let every node see on how many nodes its images are now.

        kube-scheduler shows a node the counts of the time when that node changed last, so that no scheduler started
        later would score like one that has been there.
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
