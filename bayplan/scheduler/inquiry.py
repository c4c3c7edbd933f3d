"""Inquiry: a scheduler's answers about a pod that is not placed; every question goes through it.

Nothing is assumed, reserved or nominated, and the next attempt of the scheduler is not affected: an inquiry counts no
evaluations and leaves the start of the next search where it is. Every node is judged, also in a profile that samples
nodes. Extenders are not called, except by `decide`: they are other processes and may have state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from time import perf_counter

import numpy as np

from ..amounts.filling import fill
from ..amounts.kernel import REFUSED, Best, group_rows
from ..api.pod import Pod
from ..engine import Decision
from ..errors import ExtenderError, InputError
from ..framework import SUCCESS, CycleState, Status, failure
from ..framework.diagnosis import Diagnosis
from ..observe.times import STARTED
from ..queue.nominator import PodNominator
from ..runtime import PluginRunError, PreFiltered, ProfileRuntime
from ..table import Bools, Ints, Rows
from .all_refusals import AllRefusals
from .attempt import Attempt, Explanation, Outcome
from .attempt_account import explain_all_scores, explain_refusal
from .cycle import Scheduler
from .find_nodes import Search, judge_all
from .group_attempt import GroupAttempt
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

    They hold for one moment: make a new inquiry after a change of the cluster. Raises InputError when there is no
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

    def status_at(self, row: int) -> Status:
        """The first refusal of one node, or success; Filter judges no other node."""
        only = np.array([row])
        search = judge_all(self.profile, self.state, self.pod, self.table, self.pre_filtered, only)
        return search.diagnosis.status_of(row)

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
        """Whether the scheduler has extenders, which were not called."""
        return self._scheduler.extenders is not None

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
        return self.decision().ranked.totals()

    def decision(self) -> Decision:
        """The engine's decision; the reference's in the same form, if the engine cannot decide."""
        decision = self._scheduler.decider.decide(self.profile, CycleState(), self.pod, None)
        if decision is not None:
            return decision
        found = np.full(len(self.table), REFUSED)
        if self.feasible_nodes:
            scoring = self.profile.scoring
            scoring.run_pre_scores(self.state, self.pod, self.table, self.rows)
            found[self.rows] = scoring.run_scores(self.state, self.pod, self.table, self.rows)
        totals = group_rows(found, ())
        return Decision(Best(*totals.best()), totals)

    def copies(self) -> Ints | None:
        """int64 per row: the number of pods like this one that fit together.

        None where that depends on the order in which they are placed, or on more than amounts: spread, affinity, host
        ports, volumes, extenders.
        """
        return self._scheduler.decider.copies(self.profile, self.pod)

    @cached_property
    def scores(self) -> Explanation:
        """Results of PreFilter and Score; the statuses of filters are left out, see `refusals`."""
        return explain_all_scores(self._search, self.profile, self.state, self.pod, self.table)

    def weighted_scores(self) -> dict[str, Ints]:
        """int64 per feasible row: the points that each Score plugin adds to the total, by its name."""
        scoring = self.profile.scoring
        scoring.run_pre_scores(self.state, self.pod, self.table, self.rows)
        every = scoring.each_score(self.state, self.pod, self.table, self.rows)
        return {scored.plugin.name: scored.normalized * scored.weight for scored in every}

    def decide(self) -> Attempt:
        """The node the pod would get, or the victims of preemption, as an attempt; extenders are called, too.

        Evictions go to the scheduler's cluster: use one that ignores writes. Other pods keep their nominations.
        """
        attempt = self._judge()
        self._scheduler.faults.check()
        told = attempt.explanation
        preemption = told.post_filter[0].preemption if told and told.post_filter else None
        if preemption is not None and preemption.chosen is not None:
            for rival in preemption.cleared:
                self._scheduler.queue.nominator.add(rival, preemption.chosen.node_name)
        return attempt

    def _judge(self) -> Attempt:
        """The first half of the path of a pod, up to the choice of a node or the result of PostFilter."""
        scheduler, state = self._scheduler, CycleState()
        state.times[STARTED] = perf_counter()
        attempt = Attempt(self.pod, Outcome.BOUND)
        scheduler.cache.snapshot.update()
        try:
            scheduler.decider.find_node(self.profile, state, attempt)
        except PluginRunError as failed:
            scheduler.faults.note(failed.status.error)
            attempt.fail(failed.status)
        except ExtenderError as error:
            attempt.fail(failure(error))
        if attempt.is_failed and attempt.explanation is not None:
            explain_refusal(attempt.explanation, self.profile, attempt.unschedulable_plugins)
        return attempt


def gated_attempts(scheduler: Scheduler) -> list[Attempt]:
    """The pods that a PreEnqueue plugin holds back, and why."""
    attempts = []
    for info in scheduler.queue.gated():
        status = info.gated_by
        assert status is not None, "a gated pod has a status"
        attempt = Attempt(info.pod, Outcome.GATED, status=status, number=info.attempts)
        attempt.message = status.message
        if scheduler.decider.explains:
            attempt.explanation = Explanation(SUCCESS, None, [], {})
            profile = scheduler.profiles[info.pod.scheduler_name]
            explain_refusal(attempt.explanation, profile, {status.plugin})
        attempts.append(attempt)
    return attempts


def fill_in_order(
    scheduler: Scheduler, pods: Sequence[Pod], order: Ints, places: Sequence[Ints], ranks: Ints
) -> Bools | None:
    """bool [places, order]: whether each pod of `order`, numbers of `pods`, gets a node on the rows of a place.

    Among equal nodes a pod gets the one with the lowest rank. None if a pod's node depends on more than amounts, or if
    the kernel is not compiled.
    """
    profiles = {profile_of(scheduler, pod).name: pod for pod in pods}
    if len(profiles) != 1:
        return None
    scheduler.cache.snapshot.update()
    fillings = scheduler.decider.fillings(profile_of(scheduler, pods[0]), pods)
    if fillings is None:
        return None
    ends = np.cumsum([len(rows) for rows in places])
    rows = np.concatenate(places).astype(np.int64)
    table, kinds, classes = scheduler.cache.table, fillings.kinds, fillings.classes[order]
    found = fill(table, kinds, classes, rows, ends.astype(np.int64), ranks)
    return np.asarray(found.hosts >= 0)


class GroupInquiry:
    """Result of a group's scheduling cycle if its waiting members `pods` were tried now.

    Nothing is bound, and nominations stay as they are. Evictions go to the scheduler's cluster: use one that ignores
    writes, or leave `makes_room` false.
    """

    def __init__(self, scheduler: Scheduler, pods: Sequence[Pod]) -> None:
        self._scheduler = scheduler
        self.pods = sorted((scheduler.as_read(pod) for pod in pods), key=self._turn)
        """The members in the order in which they are tried."""

    def decide(
        self, makes_room: bool = True, tells_all: bool = False, explains: bool = False
    ) -> GroupAttempt:
        """A node for each member, or why there is none.

        If it `makes_room`, with the victims of preemption. If it `tells_all`, with the results of the members on every
        placement, however many there are. If it `explains`, with explanations, for a scheduler that records them.
        """
        scheduler = self._scheduler
        assert scheduler.groups is not None, "called with pod groups only"
        brief = nullcontext() if explains else scheduler.decider.briefly()
        with _nominations_kept(scheduler.queue.nominator), brief:
            return scheduler.groups.judge(self.pods, makes_room, tells_all)

    def _turn(self, pod: Pod) -> tuple[int, float, str]:
        queued = self._scheduler.queue.get(pod)
        return -pod.priority, math.inf if queued is None else queued.turn, pod.key


@contextmanager
def _nominations_kept(nominator: PodNominator) -> Iterator[None]:
    """Undo changes of nominations at the end of the block."""
    before = _nominations(nominator)
    try:
        yield
    finally:
        after = _nominations(nominator)
        for uid, (pod, name) in after.items():
            if before.get(uid) != (pod, name):
                nominator.delete(pod)
        for uid, (pod, name) in before.items():
            if after.get(uid) != (pod, name):
                nominator.add(pod, name)


def _nominations(nominator: PodNominator) -> dict[str, tuple[Pod, str]]:
    return {pod.uid: (pod, name) for name, pods in nominator.nominated().items() for pod in pods}
