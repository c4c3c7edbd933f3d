"""Decisions: the decisions of a scheduler, as its cluster shows them, each judged in the state it was made in.

The follower receives the changes of a cluster, recorded or live. Its own choices have no effect: every pod is where it
was.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from ..api.pod import Pod
from ..api.pod_status import PodStatus
from ..scheduler import RandomTies, TieBreak
from ..scheduler.assessment import Assessment, assess, choose
from ..scheduler.find_nodes import num_feasible_nodes_to_find
from ..sim.replay_report import PodPlacement, ReplayVerdict
from .cluster_history import LAG_S, Change, ClusterHistory, PastState
from .cluster_view import ClusterView

POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE, GATED = "Unschedulable", "SchedulingGated"


class JudgedDecision(msgspec.Struct, kw_only=True):
    """One decision about a pod: a node, or none. Times are seconds after the start."""

    pod: Pod
    created_s: float
    at_s: float
    """When it became visible."""
    node_name: str = ""
    """The node that the pod got, or waits for while its volumes are made; "" for a refusal."""
    verdict: ReplayVerdict = ReplayVerdict.UNDECIDED
    chosen_node: str = ""
    """The node that would be chosen in that state; "" if no node is feasible."""
    assessment: Assessment | None = None
    state: PastState | None = None
    """The state in which the decision was judged."""

    @property
    def recorded(self) -> PodPlacement | None:
        """The node that the pod got."""
        return PodPlacement(self.node_name, self.at_s) if self.node_name else None

    @property
    def replayed(self) -> PodPlacement | None:
        """The node that would be chosen."""
        return PodPlacement(self.chosen_node, self.at_s) if self.chosen_node else None


class _PendingPod(msgspec.Struct):
    """A pod without a node, as it was last seen."""

    pod: Pod
    created_s: float
    is_fresh: bool = False
    """Whether it is tried in the order of arrival: it came after the start, and nothing holds it back."""
    assumed_on: str = ""
    """The node on which the scheduler counts it already, while its volumes or claims are made."""
    has_decision: bool = False


class _Doubt(msgspec.Struct):
    """A decision that another state has to explain."""

    decision: JudgedDecision
    moment: Change


class DecisionFollower:
    """Judges each decision about pods of the profiles in `view`, which has the cluster at the start.

    `taken` gets a change after the other, in order of time; `finish` comes last. `decisions` are in the order in which
    they became visible; the verdict of one may be open for as long as changes around it are awaited.
    """

    def __init__(self, view: ClusterView, ties: TieBreak | None = None) -> None:
        self.decisions: list[JudgedDecision] = []
        self._view = view
        self._history = ClusterHistory(view)
        self._ties = ties or RandomTies()
        self._doubts: deque[_Doubt] = deque()
        self._pending: dict[str, _PendingPod] = {}
        for pod in view.pods():
            self._expect(pod, 0.0, is_start=True)

    @property
    def pods(self) -> int:
        """The number of pods that a decision was expected for."""
        waiting = {uid for uid, one in self._pending.items() if not one.has_decision}
        return len(waiting | {decision.pod.uid for decision in self.decisions})

    def take(self, at_s: float, obj: Any, *, is_deleted: bool = False) -> None:
        """Follow a change: `obj` is an object's new state, or its last one."""
        while self._doubts and self._doubts[0].decision.at_s + LAG_S < at_s:
            self._resolve(self._doubts.popleft())
        stored = self._history.get(obj)
        if isinstance(obj, Pod):
            self._take_pod(at_s, obj, stored, is_deleted)
        elif not is_deleted:
            self._history.follow(at_s, stored, obj)
        elif stored is not None:
            self._history.follow(at_s, stored, None)

    def finish(self, at_s: float) -> None:
        """Judge all that is open; pods about which nothing was decided are added as undecided."""
        while self._doubts:
            self._resolve(self._doubts.popleft())
        for one in self._pending.values():
            if not one.has_decision:
                self.decisions.append(
                    JudgedDecision(pod=one.pod, created_s=one.created_s, at_s=at_s)
                )

    # Pods

    def _take_pod(self, at_s: float, pod: Pod, stored: Pod | None, is_deleted: bool) -> None:
        if stored is not None and stored.uid != pod.uid and not is_deleted:
            # a new pod of the same name; the deletion was not seen
            self._history.follow(at_s, stored, None)
            self._pending.pop(stored.uid, None)
            stored = None
        if is_deleted:
            if stored is not None and stored.uid == pod.uid:
                self._history.follow(at_s, stored, None)
            self._leave(pod, at_s)
        elif pod.node_name:
            self._take_placed(at_s, pod, stored)
        else:
            self._take_waiting(at_s, pod, stored)

    def _take_placed(self, at_s: float, pod: Pod, stored: Pod | None) -> None:
        """A pod with a node: it has just got it if it was pending."""
        known = self._pending.pop(pod.uid, None)
        if known is None or known.assumed_on == pod.node_name:
            self._history.follow(at_s, stored, pod)
            return
        self._decided(at_s, known, pod.node_name, stored, pod)

    def _take_waiting(self, at_s: float, pod: Pod, stored: Pod | None) -> None:
        """A pod without a node: new, refused, nominated, or waiting for its volumes."""
        known = self._pending.get(pod.uid)
        if known is None:
            self._history.follow(at_s, stored, pod)
            self._expect(pod, at_s)
            return
        nominated, before = pod.nominated_node_name, known.pod.nominated_node_name
        if nominated and nominated == known.assumed_on:
            known.pod = pod
            return  # counted on that node already
        if nominated and nominated != before and self._is_expected(known, pod, nominated):
            self._decided(at_s, known, nominated, stored, pod.replace(node_name=nominated))
            known.pod, known.assumed_on = pod, nominated
            return
        was_assumed, known.assumed_on = known.assumed_on, ""
        if not was_assumed and _is_refused(pod.status):
            self._decided(at_s, known, "", stored, pod)
        else:
            self._history.follow(at_s, stored, pod)
        known.pod = pod

    def _is_expected(self, known: _PendingPod, pod: Pod, node_name: str) -> bool:
        """Whether the nomination announces a binding, and not a node that preemption makes room on.

        Both may come with the condition of an earlier refusal: after a preemption the pod does not fit yet.
        """
        if not _is_refused(pod.status):
            return True
        return assess(self._view.ask(known.pod), node_name, in_full=False).fits

    def _expect(self, pod: Pod, at_s: float, *, is_start: bool = False) -> None:
        """Await a decision about a pod of our profiles that has no node."""
        ours = pod.scheduler_name in self._view.scheduler.profiles
        if ours and not pod.node_name and not pod.is_finished:
            is_held = _is_refused(pod.status) or pod.spec.scheduling_group is not None
            self._pending[pod.uid] = _PendingPod(pod, at_s, not (is_held or is_start))

    def _leave(self, pod: Pod, at_s: float) -> None:
        """A pod was deleted, perhaps before anything was decided about it."""
        known = self._pending.pop(pod.uid, None)
        if known is not None and not known.has_decision:
            undecided = JudgedDecision(pod=known.pod, created_s=known.created_s, at_s=at_s)
            self.decisions.append(undecided)

    # Decisions

    def _decided(
        self, at_s: float, known: _PendingPod, node_name: str, stored: Pod | None, now: Pod
    ) -> None:
        """Note a decision, apply its change, and judge it: now if the present state explains it."""
        is_first = known.is_fresh and not known.has_decision
        known.has_decision = True
        decision = JudgedDecision(
            pod=known.pod, created_s=known.created_s, at_s=at_s, node_name=node_name
        )
        self.decisions.append(decision)
        is_clear = self._judge(decision)
        moment = self._history.follow(
            at_s, stored, now, is_binding=bool(node_name), is_first=is_first
        )
        if is_clear:
            decision.state = PastState(moment.number)
        else:
            self._doubts.append(_Doubt(decision, moment))

    def _judge(self, decision: JudgedDecision) -> bool:
        """Judge a decision in the state that the view shows; False, without a verdict, if it disagrees."""
        if not decision.node_name and not self._view.gate(decision.pod).is_success:
            decision.verdict = ReplayVerdict.PENDING
            return True
        inquiry = self._view.ask(decision.pod)
        found = assess(inquiry, decision.node_name, in_full=False)
        if not found.is_best:
            return False
        if not decision.node_name:
            decision.assessment = assess(inquiry, "")
            decision.verdict = ReplayVerdict.PENDING
            return True
        decision.assessment = found
        decision.chosen_node = choose(inquiry, self._ties)
        is_same = decision.chosen_node == decision.node_name
        decision.verdict = ReplayVerdict.SAME if is_same else ReplayVerdict.EQUAL
        return True

    def _resolve(self, doubt: _Doubt) -> None:
        """Judge a decision in the states around it; by the state of its own moment if none explains it."""
        decision, moment = doubt.decision, doubt.moment
        with self._history.past() as show:
            for state in self._history.states_around(moment, decision.created_s):
                show(state)
                if self._judge(decision):
                    decision.state = state
                    return
            decision.state = PastState(moment.number)
            show(decision.state)
            inquiry = self._view.ask(decision.pod)
            decision.assessment = found = assess(inquiry, decision.node_name)
            decision.chosen_node = choose(inquiry, self._ties)
        if not decision.node_name:
            decision.verdict = ReplayVerdict.PENDING_THEN
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
        config, nodes = self._view.config, self._view.table.node_count
        profile = config.profile_named(pod.scheduler_name)
        percentage = config.percentage_for(profile) if profile is not None else None
        compared = num_feasible_nodes_to_find(percentage or 0, nodes)
        return found.rank is not None and compared <= found.feasible_nodes - (found.rank - 1)


def _is_refused(status: PodStatus) -> bool:
    """Whether the last attempt of a scheduler found no node, or the pod is held back."""
    condition = status.condition(POD_SCHEDULED)
    if condition is None or condition.status != "False":
        return False
    return condition.reason in (UNSCHEDULABLE, GATED)
