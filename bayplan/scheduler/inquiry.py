"""Inquiry: the one way to ask a scheduler about a pod without placing it.

Nothing is assumed, reserved or nominated, and the next attempt of the scheduler is not affected: an inquiry counts no
evaluations and leaves the start of the next search where it is. Every node is judged, also in a profile that samples
nodes. Extenders are not asked, except by `decide`: they are other processes and may have state.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..amounts.kernel import REFUSED, summarize
from ..api.pod import Pod
from ..engine import Decision
from ..errors import InputError
from ..framework import CycleState, Diagnosis, Status
from ..runtime import PreFiltered, ProfileRuntime
from ..table import Ints, Rows
from .all_refusals import AllRefusals
from .attempt import Attempt, Explanation
from .attempt_account import explain_all_scores
from .cycle import Scheduler
from .find_nodes import Search, judge_all
from .select_host import best_positions


def profile_of(scheduler: Scheduler, pod: Pod) -> ProfileRuntime:
    """The profile of `pod`; raises InputError when the configuration has none of that name."""
    profile = scheduler.profiles.get(pod.scheduler_name)
    if profile is None:
        known = ", ".join(scheduler.profiles)
        raise InputError(
            f"pod {pod.key}: spec.schedulerName: expected a profile of the configuration ({known}); "
            f'got "{pod.scheduler_name}"'
        )
    return profile


class Inquiry:
    """The answers of a scheduler's plugins about one pod as if it arrived now, each computed on first use.

    They are those of one moment: make a new inquiry after a change of the cluster. Raises InputError when there is no
    profile for the pod, and PluginRunError when a plugin fails.
    """

    def __init__(self, scheduler: Scheduler, pod: Pod) -> None:
        self._scheduler = scheduler
        pod = scheduler.as_read(pod)
        self.pod = pod
        self.profile = profile_of(scheduler, pod)
        self.table = scheduler.cache.table
        self.state = CycleState()
        scheduler.cache.snapshot.update()

    @cached_property
    def pre_filtered(self) -> PreFiltered:
        """The result of PreFilter."""
        return self.profile.filtering.run_pre_filters(self.state, self.pod, self.table)

    @cached_property
    def _search(self) -> Search:
        """PreFilter and Filter on every node."""
        return judge_all(self.profile, self.state, self.pod, self.table, self.pre_filtered)

    @property
    def rows(self) -> Rows:
        """The feasible rows."""
        return self._search.rows

    @property
    def diagnosis(self) -> Diagnosis:
        """The first refusal of each node that is not feasible."""
        return self._search.diagnosis

    @property
    def evaluated_nodes(self) -> int:
        """The number of nodes."""
        return self.table.node_count

    @property
    def feasible_nodes(self) -> int:
        """The number of feasible nodes."""
        return self.table.count(self.rows)

    @property
    def has_extenders(self) -> bool:
        """Whether the scheduler has extenders, which were not asked."""
        return self._scheduler.has_extenders

    def refusals(self) -> list[tuple[Status, list[str]]]:
        """Each distinct status among the first refusals, with the names of its nodes."""
        names = self.table.names
        return [
            (status, [names[row] for row in rows.tolist()])
            for status, rows in self.diagnosis.by_status()
        ]

    def all_refusals(self) -> AllRefusals:
        """The result of every filter for every node, not only the first refusal."""
        nominator = self._scheduler.queue.nominator
        return AllRefusals(self.profile, self.pod, self.table, nominator)

    def best_rows(self) -> set[int]:
        """The rows from which the scheduler would choose: feasible, with the highest score."""
        rows = self.table.numbers(self.rows)
        if len(rows) < 2:
            return set(rows.tolist())
        scoring = self.profile.scoring
        scoring.run_pre_scores(self.state, self.pod, self.table, self.rows)
        totals = scoring.run_scores(self.state, self.pod, self.table, self.rows)
        return set(rows[best_positions(totals)].tolist())

    def totals(self) -> Ints:
        """int64 per row: the total by which a node is chosen; negative where the pod does not fit."""
        return self.decision().totals

    def decision(self) -> Decision:
        """The same as a decision, which says the best row without the totals of the others."""
        decision = self._scheduler.decision_on(self.profile, self.pod)
        if decision is not None:
            return decision
        found = np.full(len(self.table), REFUSED)
        if self.feasible_nodes:
            scoring = self.profile.scoring
            scoring.run_pre_scores(self.state, self.pod, self.table, self.rows)
            found[self.rows] = scoring.run_scores(self.state, self.pod, self.table, self.rows)
        return Decision(found, summarize(found))

    def copies(self) -> Ints | None:
        """int64 per row: how many pods like this one fit beside each other.

        None where that depends on the order in which they are placed, or on more than amounts: spread, affinity, host
        ports, volumes, extenders.
        """
        return self._scheduler.copies_of(self.profile, self.pod)

    @cached_property
    def scores(self) -> Explanation:
        """What PreFilter and Score say; the statuses of filters are left out, see `refusals`."""
        return explain_all_scores(self._search, self.profile, self.state, self.pod, self.table)

    def decide(self) -> Attempt:
        """The node the pod would get, or the victims of preemption, as an attempt; extenders are asked, too.

        Evictions go to the scheduler's cluster: ask a scheduler whose cluster ignores writes. Other pods keep their
        nominations.
        """
        attempt = self._scheduler.judge(self.pod)
        self._scheduler.faults.check()
        told = attempt.explanation
        preemption = told.post_filter[0].preemption if told and told.post_filter else None
        if preemption is not None and preemption.chosen is not None:
            for rival in preemption.cleared:
                self._scheduler.queue.nominator.add(rival, preemption.chosen.node_name)
        return attempt
