"""Deciding: the first half of a pod's path: the node it gets, or why it gets none.

Mirrors schedulingAlgorithm and schedulePod of pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from ..amounts.filling import Fillings
from ..api.pod import Pod
from ..engine import Decision, Engine, Reason
from ..errors import EngineDisagreementError
from ..framework import Code, CycleState, PostFilterResult, Status, unresolvable
from ..framework.diagnosis import Diagnosis
from ..framework.interface import Preemption
from ..framework.victims import Victims
from ..observe.times import FILTERED, PRE_FILTERED, PRE_SCORED, PRE_SCORING, SCORED
from ..runtime import PluginRunError, ProfileRuntime
from ..table import Bools, Ints, NodeTable
from . import steps
from .attempt import Attempt, AttemptNotes
from .attempt_account import explain_extenders, explain_scores, explain_search
from .find_nodes import NodeFinder, Search
from .parts import Parts
from .select_host import select_host

NO_NODES = "no nodes available to schedule pods"
FAILED = Status(Code.Error)


class Decider:
    """Decides by the engine, and where the engine cannot, by calling all plugins (the reference)."""

    def __init__(self, parts: Parts, explain: bool) -> None:
        self._table = parts.cache.table
        self.explains = explain
        """Whether attempts have an explanation."""
        self._extenders = parts.extenders
        self._may_use_engine = parts.extenders is None
        self._engines = {
            name: Engine(profile, parts.cache.table) for name, profile in parts.profiles.items()
        }
        self._finder = NodeFinder(parts.cache.table, parts.cache.snapshot, parts.extenders)
        self._metrics = parts.metrics
        self._faults = parts.faults
        self._ties = parts.ties
        self._observer = parts.settings.observer
        self._is_observed = parts.is_observed
        self._is_noted = parts.settings.notes_decisions

    def find_node(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        attempt: Attempt,
        within: Ints | None = None,
        makes_room: bool = True,
    ) -> None:
        """Find the nodes that fit, and choose one; or, if it `makes_room`, run PostFilter.

        `within` are the rows of a placement of a pod group; None means all.
        """
        table, pod = self._table, attempt.pod
        if table.node_count == 0:
            attempt.fail(unresolvable(NO_NODES), nominated_node_name="")
            return
        attempt.evaluated_nodes = table.node_count if within is None else len(within)
        if self._is_noted:
            attempt.notes = AttemptNotes(table.row_changes.version)
        if (
            pod.nominated_node_name
            and within is None
            and self._take_nominated(profile, state, attempt)
        ):
            return
        decision = self.decide(profile, state, pod, within)
        if decision is not None and not self.explains:
            self._apply(profile, state, attempt, decision, makes_room)
            return
        search = self._search(profile, state, attempt, within, decision)
        if attempt.feasible_nodes:
            row = self._choose(profile, state, attempt, search, decision)
            attempt.node_name = table.names[row]
        else:
            self._refuse(profile, state, attempt, search.diagnosis, makes_room)

    def _take_nominated(self, profile: ProfileRuntime, state: CycleState, attempt: Attempt) -> bool:
        """Take the nominated node, without scoring, if the pod fits there by the engine; returns whether it does."""
        if self.explains or not self._may_use_engine:
            return False
        try:
            row = self._engines[profile.name].nominated_row(state, attempt.pod)
        except PluginRunError as failed:
            self._note_engine_failure(failed)
            state.clear()
            return False
        if row is None:
            state.clear()  # PreFilter runs again
            return False
        state.times[PRE_FILTERED] = state.times[FILTERED] = perf_counter()
        attempt.feasible_nodes, attempt.from_nomination = 1, True
        attempt.node_name = self._table.names[row]
        return True

    def decide(
        self, profile: ProfileRuntime, state: CycleState, pod: Pod, within: Ints | None
    ) -> Decision | None:
        """The engine's decision; None if the reference has to decide. The reason for that is counted in a metric."""
        found: Decision | Reason
        if not self._may_use_engine:
            found = Reason.EXTENDERS
        else:
            try:
                found = self._engines[profile.name].decide(state, pod, within)
            except PluginRunError as failed:
                # Plugins with cached answers are called for all nodes, also those that another one refuses. The
                # reference calls them in kube-scheduler's order, and reports the error if it occurs there, too.
                self._note_engine_failure(failed)
                found = Reason.FAILED
        if isinstance(found, Decision):
            return found
        self._metrics.reference_decisions.labels(profile.name, found.label).count += 1
        state.clear()  # the reference starts with PreFilter
        return None

    def _note_engine_failure(self, failed: PluginRunError) -> None:
        self._metrics.engine_failures.count += 1
        if failed.is_declaration:  # the reference may not call it, so it would go unnoticed
            self._faults.note(failed.status.error)

    def _apply(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        attempt: Attempt,
        decision: Decision,
        makes_room: bool,
    ) -> None:
        """Apply a decision of the engine to the attempt."""
        table, best = self._table, decision.best
        attempt.feasible_nodes = best.feasible
        if not best.feasible:
            now = perf_counter()
            state.times[PRE_FILTERED] = state.times[FILTERED] = now
            profile.filter_evaluations.count(state.skip_filter)
            diagnosis = Diagnosis.of_rows(table, decision.refusals)
            self._refuse(profile, state, attempt, diagnosis, makes_room)
            return
        if attempt.pod.spec.pin:
            self._finder.pass_one()
        row = self._ties.choose_best(decision, table, self._finder)
        attempt.node_name = table.names[row]
        if best.feasible > 1:
            attempt.score = best.total
            if attempt.notes is not None:
                note_runner_up(attempt.notes, table, row, decision)

    def _search(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        attempt: Attempt,
        within: Ints | None,
        decision: Decision | None,
    ) -> Search:
        """Find the nodes that fit by calling all plugins; if there is a `decision` of the engine, it must agree."""
        table, pod = self._table, attempt.pod
        if decision is not None:
            state.clear()  # PreFilter runs again
        if self._metrics.is_sampled():
            state.sampled_by = self._metrics
        search = self._finder.find(profile, state, pod, everything=self.explains, within=within)
        if self.explains:
            attempt.explanation = explain_search(search, state, table)
        attempt.feasible_nodes = table.count(search.rows)
        if decision is not None:
            check_feasible(decision, table.numbers(search.rows), pod, table)
            if not attempt.feasible_nodes:
                check_refusals(decision, search.diagnosis, pod, table)
        return search

    def _choose(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        attempt: Attempt,
        search: Search,
        decision: Decision | None,
    ) -> int:
        """The row of the best feasible node. A single one, or the nominated one, is taken unscored."""
        table, pod, rows, times = self._table, attempt.pod, search.rows, state.times
        if attempt.explanation is not None:
            profile.scoring.run_pre_scores(state, pod, table, rows)
            explain_scores(attempt.explanation, search, profile, state, pod, table)
        if search.nominated_row is not None:
            attempt.from_nomination = True
            return search.nominated_row
        if attempt.feasible_nodes == 1:
            return int(table.numbers(rows)[0])
        if attempt.explanation is None:
            times[PRE_SCORING] = perf_counter()
            profile.scoring.run_pre_scores(state, pod, table, rows)
        times[PRE_SCORED] = perf_counter()
        is_scored = None
        totals = profile.scoring.run_scores(state, pod, table, rows, search.bare_nodes(table))
        times[SCORED] = perf_counter()
        profile.score_evaluations.count(state.skip_score)
        if decision is not None:
            check_totals(decision, table.numbers(rows), totals, pod, table)
        if self._extenders is not None:
            totals, is_scored = self._add_extender_scores(profile, attempt, search, totals)
        winner = select_host(totals, table.numbers(rows), table, search, self._ties, is_scored)
        attempt.score = int(totals[winner])
        if attempt.notes is not None:
            note_second(attempt.notes, totals, winner, table.numbers(rows), table)
        return winner if isinstance(rows, slice) else int(rows[winner])

    def _add_extender_scores(
        self, profile: ProfileRuntime, attempt: Attempt, search: Search, totals: Ints
    ) -> tuple[Ints, Bools]:
        """Add the scores of the extenders to `totals`; also returns which nodes got one."""
        assert self._extenders is not None, "called with extenders only"
        table, found = self._table, search.found(self._table)
        given = self._extenders.score(attempt.pod, found)
        positions = np.searchsorted(table.numbers(search.rows), found)
        # Without Score plugins every node has 1, but only as long as there are no extenders.
        totals = totals.copy() if profile.scoring.scores else np.zeros_like(totals)
        totals[positions] += given.total
        is_scored = np.zeros(len(totals), dtype=np.bool_)
        is_scored[positions] = given.is_scored
        if attempt.explanation is not None:
            explain_extenders(attempt.explanation, given, search, totals, table)
        return totals, is_scored

    def _refuse(
        self,
        profile: ProfileRuntime,
        state: CycleState,
        attempt: Attempt,
        diagnosis: Diagnosis,
        makes_room: bool,
    ) -> None:
        """End the attempt of a pod that fits nowhere: note the reasons, and run PostFilter."""
        diagnosis.note_rejectors()
        is_logged = steps.is_logged()
        if is_logged:
            steps.log_refusals(attempt.pod, diagnosis)
        result = PostFilterResult("")  # without PostFilter plugins, a nomination ends
        keeps = profile.handle.release.keeps_nomination_without_post_filter
        if not makes_room or (keeps and not profile.filtering.post_filters):
            result = PostFilterResult()
        elif profile.filtering.post_filters:
            result, status = self._post_filter(profile, state, attempt.pod, diagnosis)
            diagnosis.post_filter_message = status.message
            if is_logged:
                steps.log_post_filter(attempt.pod, status)
            if attempt.explanation is not None:
                attempt.explanation.post_filter = (result, status)
        attempt.unschedulable_plugins = frozenset(diagnosis.unschedulable_plugins)
        attempt.pending_plugins = frozenset(diagnosis.pending_plugins)
        attempt.fit_error = diagnosis.fit_error()
        if state.group is not None:
            attempt.refusals = dict(diagnosis.histogram())
        message = diagnosis.with_post_filter(attempt.fit_error)
        refused = Status(Code.Unschedulable, (message,))
        attempt.fail(refused, nominated_node_name=result.nominated_node_name)
        preemption = result.preemption
        if attempt.notes is not None:
            note_refusal(attempt.notes, diagnosis, preemption)
        if preemption is not None and preemption.chosen is not None and not preemption.is_held:
            self.note_victims(attempt.pod, preemption.chosen)

    def _post_filter(
        self, profile: ProfileRuntime, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        """Run PostFilter, and record how long it took."""
        status, started = FAILED, perf_counter()
        try:
            result, status = profile.filtering.run_post_filters(state, pod, diagnosis)
        finally:
            profile.note_point("PostFilter", status, perf_counter() - started)
        return result, status

    def note_victims(self, pod: Pod, victims: Victims) -> None:
        """Log the pods that are evicted for `pod`, and report them to the observer."""
        if not self._is_observed and not steps.is_logged():
            return
        for victim in victims.evicted:
            steps.log_victim(pod, victim)
            self._observer("preempted", victim, f"for {pod.key} on {victim.node_name}")

    def fillings(self, profile: ProfileRuntime, pods: Sequence[Pod]) -> Fillings | None:
        """Rows that the kernel gives `pods` one after another; None if the members must be tried in full."""
        if not self._may_use_engine or self.explains:
            return None
        try:
            engine = self._engines[profile.name]
            return Fillings.of(engine.filling(pod) for pod in pods)
        except PluginRunError as failed:
            self._note_engine_failure(failed)
            return None

    def copies(self, profile: ProfileRuntime, pod: Pod) -> Ints | None:
        """int64 per row: the number of pods like `pod` that fit together; None if they have to be placed one by one.

        Third-party plugins are excluded: they may depend on every attempt.
        """
        if not self._may_use_engine or not profile.is_in_tree:
            return None
        if not profile.run_pre_enqueue(pod).is_success:
            return None
        if not profile.committing.plan(pod.spec).is_idle:
            return None
        try:
            filling = self._engines[profile.name].filling(pod)
        except PluginRunError as failed:
            self._note_engine_failure(failed)
            return None
        return None if filling is None else filling.copies(self._table)

    def set_score_weights(self, weights: Mapping[str, int], profile: ProfileRuntime) -> None:
        """Give Score plugins of a profile other weights; the plugins that are not named keep theirs."""
        profile.scoring = profile.scoring.with_weights(weights)
        self.forget(profile)

    def forget(self, profile: ProfileRuntime) -> None:
        """Drop the cached answers of a profile's plugins, because a weight or a parameter of one of them has
        changed.
        """
        self._engines[profile.name] = Engine(profile, self._table)

    @contextmanager
    def briefly(self) -> Iterator[None]:
        """Record no explanations until the end of the block."""
        was, self.explains = self.explains, False
        try:
            yield
        finally:
            self.explains = was


def check_feasible(decision: Decision, rows: Ints, pod: Pod, table: NodeTable) -> None:
    """Raise EngineDisagreementError unless the engine finds the pod feasible on just these rows."""
    if pod.spec.pin:
        found = np.array([decision.best.row], dtype=np.int64)
    else:
        found = np.flatnonzero(decision.ranked.totals() >= 0)
    if not np.array_equal(found, rows):
        differing = np.setxor1d(found, rows)
        raise _disagreement(pod, differing, table, "whether the pod fits")


def check_totals(decision: Decision, rows: Ints, totals: Ints, pod: Pod, table: NodeTable) -> None:
    """Raise EngineDisagreementError unless the engine gives `rows` these totals."""
    if pod.spec.pin or not len(rows):
        return
    ours = decision.ranked.totals()[rows]
    if not np.array_equal(ours, totals):
        raise _disagreement(pod, rows[ours != totals], table, "the total score")


def check_refusals(decision: Decision, diagnosis: Diagnosis, pod: Pod, table: NodeTable) -> None:
    """Raise EngineDisagreementError unless the engine has the same status for every node."""
    refusals = decision.refusals
    if refusals is None:
        return
    rows = np.flatnonzero(table.live).tolist()
    differing = [row for row in rows if refusals.at(row) != diagnosis.status_of(row)]
    if differing:
        raise _disagreement(pod, np.array(differing), table, "why the pod is refused")


def _disagreement(pod: Pod, rows: Ints, table: NodeTable, what: str) -> EngineDisagreementError:
    names = [table.names[row] for row in rows[:3].tolist()]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return EngineDisagreementError(
        f"pod {pod.key}: the engine and the reference disagree on {what}, on {', '.join(names)}{more};"
        " this is a bug, please report it with the input"
    )


def note_runner_up(notes: AttemptNotes, table: NodeTable, row: int, decision: Decision) -> None:
    """Note the best node other than `row`, which was chosen; two nodes or more are feasible."""
    best = decision.best
    if best.ties > 1:
        other = decision.ranked.nth_best(0)
        if other == row:
            other = decision.ranked.nth_best(1)
        notes.runner_up, notes.runner_up_total = table.names[other], best.total
        return
    note_second(notes, decision.ranked.totals(), row, None, table)


def note_second(
    notes: AttemptNotes, totals: Ints, winner: int, rows: Ints | None, table: NodeTable
) -> None:
    """Note the highest of `totals` apart from the winner's; the totals are those of `rows`, or of all rows if None."""
    others = totals.copy()
    others[winner] = -1
    place = int(np.argmax(others))
    if others[place] >= 0:
        notes.runner_up_total = int(others[place])
        notes.runner_up = table.names[place if rows is None else int(rows[place])]


def note_refusal(notes: AttemptNotes, diagnosis: Diagnosis, preemption: Preemption | None) -> None:
    """Note why no node fits."""
    counts: Counter[str] = Counter()
    for status, rows in diagnosis.by_status():
        counts[status.plugin or "extender"] += len(rows)
    notes.refusals = dict(counts.most_common())
    if preemption is not None and preemption.chosen is not None:
        notes.victims = tuple(victim.key for victim in preemption.chosen.evicted)
