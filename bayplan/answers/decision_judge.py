"""Decision judge: judges decisions of a scheduler in the states of the cluster in which they may have been made.

The one judge of recorded and of live decisions. It has no effects: trials are undone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec.structs import replace

from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..api.text.refusal_message import is_same_refusal
from ..config.types import DEFAULT_SCHEDULER_NAME
from ..scheduler import Inquiry, TieBreak
from ..scheduler.assessment import Assessment, assess, assess_preemption, choose
from ..scheduler.find_nodes import num_feasible_nodes_to_find
from ..sim.replay import was_preempted
from ..sim.replay_report import ReplayVerdict
from ..trials import TrialCluster
from .cluster_history import MOST_STATES, WRITE_S, Change, ClusterHistory, PastState
from .judged_decision import Agreement, JudgedDecision

SAMPLED_STATES = 4
"""States that a decision is compared with, at most, where a node with a lower total is explained by sampling."""
OFTEN = 3
LATEST = 20
FEW_STATES = 8
"""States that are compared for pods whose decisions have differed `OFTEN`, or while most of the `LATEST` do."""
MOST_SPECS = 10_000
MOST_NOMINATIONS = 8
MOST_CANDIDATES = 100
"""kube-scheduler tries to preempt on at least this many nodes, and on a part of more."""

Show: TypeAlias = Callable[[PastState], None]
"""Shows a past state in the view."""
OnDifference: TypeAlias = Callable[[JudgedDecision, TrialCluster], None]
"""Called with a decision that differs, while the view shows the state in which it does."""


class DecisionJudge:
    """Judges decisions about the pods of a history.

    Pods whose scheduler has no profile are judged with the default profile if `takes_all`, else not at all. With
    `shows_sampled`, `on_difference` is called with sampled decisions, too.
    """

    def __init__(
        self,
        history: ClusterHistory,
        ties: TieBreak,
        *,
        takes_all: bool = False,
        on_difference: OnDifference | None = None,
        shows_sampled: bool = False,
    ) -> None:
        shown = {Agreement.DIFFERENT, Agreement.SAMPLED} if shows_sampled else {Agreement.DIFFERENT}
        self._shown = frozenset(shown)
        self._view: TrialCluster = history.view
        self._history = history
        self._ties = ties
        self._takes_all = takes_all
        self._on_difference = on_difference
        profiles = self._view.scheduler.profiles
        self._default = (
            DEFAULT_SCHEDULER_NAME if DEFAULT_SCHEDULER_NAME in profiles else next(iter(profiles))
        )
        self._differing: Counter[tuple[PodSpec, bool]] = Counter()
        """Differences of pods with equal specs, of bindings and of refusals."""
        self._latest: deque[bool] = deque(maxlen=LATEST)
        """Whether the decisions that were compared with several states differed."""
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

    def is_sampled(self, decision: JudgedDecision) -> bool:
        """Judge a decision that disagrees with the shown state as sampled, if its scheduler may sample nodes.

        Nearby states are not compared, and points not split by plugin: if there is no time for these.
        """
        found = decision.assessment
        if found is None or not decision.node_name or not self._may_be_sampled(decision.pod, found):
            return False
        decision.verdict = ReplayVerdict.SAMPLED
        return True

    def resolving(
        self, decision: JudgedDecision, moment: Change, show: Show, ahead_s: float = WRITE_S
    ) -> Iterator[None]:
        """Judge a decision in the states around its moment; by the state of the moment if none explains it.

        Yields after each state. With less than all the time `ahead_s` in which earlier bindings may become visible, a
        decision that nothing explains stays undecided, unless others like it have differed.
        """
        states = self._history.states_around(moment, decision.created_s, ahead_s)
        most = self._most_states(decision)
        for number, state in enumerate(states if most > FEW_STATES else islice(states, most)):
            show(state)
            if self.judge(decision):
                decision.settle(state, moment)
                break
            yield
            found = decision.assessment
            if number >= SAMPLED_STATES and found and self._may_be_sampled(decision.pod, found):
                break
        if decision.state is None:
            decision.state = PastState(moment.number)
            show(decision.state)
            self._tell_difference(decision)
        elif decision.nominated_node:
            yield from self._judge_preemption(decision, moment, show)
        if decision.agreement is Agreement.DIFFERENT and ahead_s < WRITE_S and most > FEW_STATES:
            decision.reopen()
            return
        self._latest.append(decision.agreement is Agreement.DIFFERENT)
        if decision.agreement is Agreement.DIFFERENT:
            self._differing[_kind_of(decision)] += 1
        if decision.agreement in self._shown and self._on_difference is not None:
            self._on_difference(decision, self._view)

    def _most_states(self, decision: JudgedDecision) -> int:
        """The number of states to compare: few where decisions have differed again and again."""
        if len(self._differing) > MOST_SPECS:
            self._differing.clear()
        is_known = self._differing[_kind_of(decision)] >= OFTEN
        is_common = len(self._latest) == LATEST and sum(self._latest) > LATEST // 2
        return FEW_STATES if is_known or is_common else MOST_STATES

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

        Without percentageOfNodesToScore it compares all of up to 100 nodes, and a part of more. Scores are normalised
        over that part, which changes their order a little: half of the nodes with a lower total are enough.
        """
        if found.rank is None:
            return False
        config, nodes = self._view.config, self._view.table.node_count
        profile = config.profile_named(self._as_judged(pod).scheduler_name)
        percentage = config.percentage_for(profile) if profile is not None else None
        compared = num_feasible_nodes_to_find(percentage or 0, nodes)
        if compared >= found.feasible_nodes:
            return False
        return compared // 2 <= found.feasible_nodes - (found.rank - 1)

    def _judge_preemption(
        self, decision: JudgedDecision, moment: Change, show: Show
    ) -> Iterator[None]:
        """Compare the victims on the nominated node with ours, in states around that in which the pod was refused."""
        node_name = decision.nominated_node
        evictions = self._history.changes_near(moment, lambda one: _is_eviction(one, node_name))
        if not evictions:
            return  # room is made by pods that were leaving already, or the victims are not visible
        victims = [change.old for change in evictions]
        for state in self._preemption_states(decision, moment, evictions):
            show(state)
            found = assess_preemption(self.ask(decision.pod), node_name, victims)
            decision.preemption = decision.preemption or found
            if found.is_best:
                decision.preemption = found
                return
            yield
        assert decision.preemption is not None, "the first state is always compared"
        is_large = self._view.table.node_count > MOST_CANDIDATES
        is_untried = is_large and not decision.preemption.was_tried
        if is_untried or self._has_rivals(moment, node_name):
            # another part of the nodes was tried here, or it is not visible which pod was evicted for which
            decision.preemption = None
            return
        is_part = is_large and decision.preemption.has_same_victims
        decision.verdict = ReplayVerdict.SAMPLED if is_part else ReplayVerdict.OTHER_VICTIMS

    def _has_rivals(self, moment: Change, node_name: str) -> bool:
        """Whether room was made on the node for other pods, too."""
        nominations = self._history.changes_near(moment, _is_nomination)
        return any(
            change.key != moment.key and change.new.nominated_node_name == node_name
            for change in nominations
        )

    def _preemption_states(
        self, decision: JudgedDecision, moment: Change, evictions: Sequence[Change]
    ) -> Iterator[PastState]:
        """States in which the victims were still there, nearest first.

        A scheduler counts the nominations of its earlier preemptions before they become visible, and the victims of
        these until they do: with nominations just after the moment, and without other evictions just before it.
        """
        state, history = decision.state, self._history
        assert state is not None, "the refusal was judged in a state"
        undone = history.numbers_since(evictions, moment.number)
        others = history.changes_near(moment, _is_eviction)
        all_undone = history.numbers_since(others, moment.number)
        nominations = [
            change.number
            for change in history.changes_near(moment, _is_nomination)
            if change.key != moment.key and change.number > moment.number
        ][:MOST_NOMINATIONS]
        for size in range(len(nominations) + 1):
            for left_out in dict.fromkeys((undone, undone | all_undone)):
                more = state.anticipated | frozenset(nominations[:size])
                yield PastState(state.moment, state.left_out | left_out, more - left_out)

    def _as_judged(self, pod: Pod) -> Pod:
        """The pod, with the default profile if no profile has its scheduler's name."""
        if self.has_profile(pod):
            return pod
        spec = self._specs.get(pod.spec)
        if spec is None:
            if len(self._specs) >= MOST_SPECS:
                self._specs.clear()
            spec = self._specs[pod.spec] = replace(pod.spec, scheduler_name=self._default)
        return pod.replace(spec=spec)


def _kind_of(decision: JudgedDecision) -> tuple[PodSpec, bool]:
    return decision.pod.spec, bool(decision.node_name)


def _is_eviction(change: Change, node_name: str = "") -> bool:
    """Whether a scheduler evicted a pod with this change, from the node if one is given."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return False
    is_there = not node_name or old.node_name == node_name
    return is_there and was_preempted(new) and not was_preempted(old)


def _is_nomination(change: Change) -> bool:
    """Whether a scheduler nominated a pod with this change."""
    old, new = change.old, change.new
    if not isinstance(old, Pod) or not isinstance(new, Pod) or new.node_name:
        return False
    return bool(new.nominated_node_name) and new.nominated_node_name != old.nominated_node_name
