"""DefaultPreemption: push out pods of lower priority to make room for a pod that fits nowhere.

Mirrors pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go and
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ...api.pod import Pod
from ...config.plugin_args import DefaultPreemptionArgs
from ...errors import PluginError
from ...framework import (
    SUCCESS,
    Code,
    CycleState,
    Diagnosis,
    Handle,
    PostFilterPlugin,
    PostFilterResult,
    Preemption,
    PreEnqueuePlugin,
    Status,
    Victims,
    failure,
    no_node_available,
    unresolvable,
    unschedulable,
)
from ...framework.events import POD, ActionType, EventWithHint, Hint, wait_for
from ...table import Ints
from .candidates import best_candidate
from .victims import select_victims

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin):
    """Tries the nodes where removing pods may help, and nominates the one that costs least."""

    name = "DefaultPreemption"

    def __init__(self, min_percentage: int = 10, min_absolute: int = 100) -> None:
        self._min_percentage = min_percentage
        self._min_absolute = min_absolute

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> Self:
        args = args or DefaultPreemptionArgs()
        plugin = cls(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        plugin.handle = handle
        return plugin

    def pre_enqueue(self, pod: Pod) -> Status:
        """Let every pod in: when `post_filter` returns, its victims have been asked to leave."""
        return SUCCESS

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (wait_for(POD, ActionType.Delete, after_pod_deleted),)

    def post_filter(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        result, status = self._preempt(state, pod, diagnosis)
        if status.message:
            status = Status(status.code, (f"preemption: {status.message}",))
        return result, status

    def _preempt(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult, Status]:
        refusal = self._why_not_eligible(pod, diagnosis)
        if refusal:
            return PostFilterResult(), unschedulable(refusal)
        rows = np.flatnonzero((diagnosis.codes() == Code.Unschedulable) & self.handle.table.live)
        account = self._dry_run(state, pod, rows)
        errors = [status for status in account.rejected.values() if not status.is_rejected]
        if errors and not account.candidates:
            return PostFilterResult(), errors[0]
        if not account.candidates:
            return PostFilterResult("", account), unschedulable(self._no_candidate(account))
        account.chosen = best_candidate(account.candidates.values())
        self._evict(pod, account.chosen, account)
        return PostFilterResult(account.chosen.node_name, account), SUCCESS

    def _why_not_eligible(self, pod: Pod, diagnosis: Diagnosis) -> str:
        """Why the pod must not push out others; empty when it may."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        table = self.handle.table
        row = table.row_of.get(pod.nominated_node_name) if pod.nominated_node_name else None
        if row is None or not table.live[row]:
            return ""
        if diagnosis.status_of(row).code is Code.UnschedulableAndUnresolvable:
            return ""
        leaving = any(
            other.priority < pod.priority and is_preempted(other)
            for other in table.pods[row].values()
        )
        return TERMINATING if leaving else ""

    def _dry_run(self, state: CycleState, pod: Pod, rows: Ints) -> Preemption:
        """Find the victims on `rows`; stops when enough candidates break no disruption budget.

        Nodes without a pod of lower priority are refused together; only the others are tried one by one.
        """
        account = Preemption()
        table, filters = self.handle.table, self.handle.filters
        assert filters is not None, "the profile sets handle.filters before the first pod"
        has_victims = table.priorities.below(pod.priority)[rows] > 0
        for row in rows[~has_victims]:
            account.rejected[table.names[row]] = unresolvable(NO_VICTIMS)
        wanted = min(max(len(rows) * self._min_percentage // 100, self._min_absolute), len(rows))
        promising = rows[has_victims]
        offset = self.handle.random.randrange(len(promising)) if len(promising) else 0
        budgets = list(self.handle.lister.list("PodDisruptionBudget"))
        harmless = 0
        for row in (*promising[offset:], *promising[:offset]):
            try:
                found = select_victims(filters, state.clone(), pod, table, int(row), budgets)
            except PluginError as error:  # counts only when no other node is a candidate
                found = failure(error)
            if isinstance(found, Victims):
                account.candidates[found.node_name] = found
                harmless += found.pdb_violations == 0
                if harmless and len(account.candidates) >= wanted:
                    break
            else:
                account.rejected[table.names[row]] = found
        return account

    def _no_candidate(self, account: Preemption) -> str:
        count = self.handle.table.node_count
        reasons = Counter(text for status in account.rejected.values() for text in status.reasons)
        if count > len(account.rejected):
            reasons[NOT_HELPFUL] += count - len(account.rejected)
        return no_node_available(count, reasons)

    def _evict(self, pod: Pod, chosen: Victims, account: Preemption) -> None:
        """Push the victims out; lower-priority pods nominated to the node lose their nomination."""
        if not chosen.evicted:
            return
        for rival in self.handle.nominator.nominated_pods(chosen.node_name):
            if rival.priority < pod.priority:
                account.cleared.append(rival)
                self.handle.nominator.delete(rival)
                self.handle.client.clear_nomination(rival)
        for victim in chosen.evicted:
            self.handle.client.evict(victim, pod)


def is_preempted(pod: Pod) -> bool:
    """Whether the pod is being deleted because the scheduler pushed it out."""
    return pod.is_terminating and any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
        for condition in pod.status.conditions or ()
    )


def after_pod_deleted(pod: Pod, old: Any, new: Any) -> Hint:
    """Never a reason of its own: whether room was made is for the plugins to say that refused the pod."""
    return Hint.SKIP
