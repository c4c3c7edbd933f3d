"""Decision judge: judges decisions of a scheduler in the states of the cluster in which they may have been made.

The one judge of recorded and of live decisions. It has no effects: what it tries is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..api.text.refusal_message import is_same_refusal
from ..config import DEFAULT_SCHEDULER_NAME
from ..scheduler import Inquiry, TieBreak
from ..scheduler.assessment import Assessment, assess, choose
from ..scheduler.find_nodes import num_feasible_nodes_to_find
from ..scheduler.preemption_assessment import assess_preemption
from ..sim.replay import was_preempted
from ..sim.replay_report import ReplayVerdict
from .cluster_history import Change, ClusterHistory, PastState
from .cluster_view import ClusterView
from .judged_decision import Agreement, JudgedDecision

SAMPLED_STATES = 12
"""States that a decision is compared with, at most, where a node with a lower total is explained by sampling."""
MOST_SPECS = 10_000
MOST_CANDIDATES = 100
"""kube-scheduler tries to preempt on at least this many nodes, and on a part of more."""

OnDifference: TypeAlias = Callable[[JudgedDecision, ClusterView], None]
"""Called with a decision that differs, while the view shows the state in which it does."""


class DecisionJudge:
    """Judges decisions about the pods of a history.

    Pods whose scheduler has no profile are judged with the default profile if `takes_all`, else not at all.
    """

    def __init__(
        self,
        history: ClusterHistory,
        ties: TieBreak,
        *,
        takes_all: bool = False,
        on_difference: OnDifference | None = None,
    ) -> None:
        self._view: ClusterView = history.view
        self._history = history
        self._ties = ties
        self._takes_all = takes_all
        self._on_difference = on_difference
        profiles = self._view.scheduler.profiles
        self._default = (
            DEFAULT_SCHEDULER_NAME if DEFAULT_SCHEDULER_NAME in profiles else next(iter(profiles))
        )
        self._specs: dict[PodSpec, PodSpec] = {}
        """Specs of pods without a profile, and the same with the default one."""

    def has_profile(self, pod: Pod) -> bool:
        """Whether a profile has the name of the pod's scheduler."""
        return pod.scheduler_name in self._view.scheduler.profiles

    def takes(self, pod: Pod) -> bool:
        """Whether decisions about the pod are judged."""
        return self._takes_all or self.has_profile(pod)

    def ask(self, pod: Pod) -> Inquiry:
        """The answers about the pod in the state that the view shows."""
        return self._view.ask(self._as_judged(pod))

    def judge(self, decision: JudgedDecision) -> bool:
        """Judge a decision in the state that the view shows; False, without a verdict, if it disagrees."""
        pod = self._as_judged(decision.pod)
        if not decision.node_name and not self._view.gate(pod).is_success:
            decision.verdict = ReplayVerdict.PENDING
            return True
        inquiry = self._view.ask(pod)
        decision.assessment = found = assess(inquiry, decision.node_name, in_full=False)
        if not found.is_best:
            return False
        if not decision.node_name:
            decision.assessment = found = assess(inquiry, "")
            if decision.message and not is_same_refusal(decision.message, found.message):
                return False
            decision.verdict = ReplayVerdict.PENDING
            return True
        decision.chosen_node = choose(inquiry, self._ties)
        is_same = decision.chosen_node == decision.node_name
        decision.verdict = ReplayVerdict.SAME if is_same else ReplayVerdict.EQUAL
        return True

    def resolve(self, decision: JudgedDecision, moment: Change) -> None:
        """Judge a decision in the states around its moment; by the state of the moment if none explains it."""
        own = PastState(moment.number)
        with self._history.past() as show:
            states = self._history.states_around(moment, decision.created_s)
            for number, state in enumerate(states):
                show(state)
                if self.judge(decision):
                    decision.settle(state, moment)
                    break
                found = decision.assessment
                if number >= SAMPLED_STATES and found and self._may_be_sampled(decision.pod, found):
                    break
            if decision.state is None:
                decision.state = own
                show(own)
                self._tell_difference(decision)
            elif decision.nominated_node:
                self._judge_preemption(decision, moment, show)
            if self._on_difference and decision.agreement is Agreement.DIFFERENT:
                self._on_difference(decision, self._view)

    def _tell_difference(self, decision: JudgedDecision) -> None:
        """Judge by the state that the view shows, with reasons."""
        inquiry = self.ask(decision.pod)
        decision.assessment = found = assess(inquiry, decision.node_name)
        decision.chosen_node = choose(inquiry, self._ties)
        if not decision.node_name:
            has_room = found.feasible_nodes > 0
            decision.verdict = (
                ReplayVerdict.PENDING_THEN if has_room else ReplayVerdict.OTHER_REASON
            )
        elif found.fits and self._may_be_sampled(decision.pod, found):
            decision.verdict = ReplayVerdict.SAMPLED
        elif found.feasible_nodes:
            decision.verdict = ReplayVerdict.OTHER
        else:
            decision.verdict = ReplayVerdict.PENDING_HERE

    def _may_be_sampled(self, pod: Pod, found: Assessment) -> bool:
        """Whether the node can be the best of as many feasible nodes as kube-scheduler compares.

        Without percentageOfNodesToScore it compares all of up to 100 nodes, and a part of more.
        """
        if found.rank is None:
            return False
        config, nodes = self._view.config, self._view.table.node_count
        profile = config.profile_named(self._as_judged(pod).scheduler_name)
        percentage = config.percentage_for(profile) if profile is not None else None
        compared = num_feasible_nodes_to_find(percentage or 0, nodes)
        return compared <= found.feasible_nodes - (found.rank - 1)

    def _judge_preemption(
        self, decision: JudgedDecision, moment: Change, show: Callable[[PastState], None]
    ) -> None:
        """Compare the victims on the nominated node with ours, in the state in which the pod was refused."""
        node_name, state = decision.nominated_node, decision.state
        evictions = self._history.changes_near(moment, lambda one: _is_eviction(one, node_name))
        if not evictions or state is None:
            return  # room is made by pods that were leaving already, or the victims are not visible
        keys = {change.key for change in evictions}
        first = min(change.number for change in evictions)
        undone = self._history.numbers_of(keys, first, moment.number)
        show(
            PastState(state.moment, state.left_out | undone, frozenset(state.anticipated) - undone)
        )
        victims = [change.old for change in evictions]
        decision.preemption = found = assess_preemption(self.ask(decision.pod), node_name, victims)
        if found.is_best:
            return
        is_part = found.has_same_victims and self._view.table.node_count > MOST_CANDIDATES
        decision.verdict = ReplayVerdict.SAMPLED if is_part else ReplayVerdict.OTHER_VICTIMS

    def _as_judged(self, pod: Pod) -> Pod:
        """The pod, with the default profile if there is none of its scheduler's name."""
        if self.has_profile(pod):
            return pod
        spec = self._specs.get(pod.spec)
        if spec is None:
            if len(self._specs) >= MOST_SPECS:
                self._specs.clear()
            spec = self._specs[pod.spec] = replace(pod.spec, scheduler_name=self._default)
        return pod.replace(spec=spec)


def _is_eviction(change: Change, node_name: str) -> bool:
    """Whether a scheduler evicted a pod from the node with this change."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod) or old.node_name != node_name:
        return False
    return was_preempted(new) and not was_preempted(old)
