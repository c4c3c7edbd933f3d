"""Decisions: the decisions of a scheduler, as its cluster shows them, each judged in the state it was made in.

The follower receives the changes of a cluster, recorded or live. Its own choices have no effect: pods stay where the
cluster has them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar

import msgspec

from ..api.pod import Pod
from ..api.pod_status import POD_SCHEDULED, PodCondition, PodStatus
from ..scheduler import RandomTies, TieBreak
from ..scheduler.assessment import assess
from ..trials import TrialCluster
from .cluster_history import LAG_S, WRITE_S, Change, ClusterHistory, PastState
from .decision_judge import DecisionJudge, OnDifference
from .judged_decision import JudgedDecision

AWAY_S = 3.0
"""Time without any decision, while new pods wait, after which a scheduler counts as newly started."""
UNSCHEDULABLE, GATED = "Unschedulable", "SchedulingGated"


class _PendingPod(msgspec.Struct):
    """The last version of a pod without a node."""

    pod: Pod
    created_s: float
    is_fresh: bool = False
    """Whether it is tried in the order of arrival: it was created after the start, and nothing holds it back."""
    assumed_on: str = ""
    """The node on which the scheduler counts it already, while its volumes or claims are made."""
    is_listed: bool = False
    """Whether it waited when its scheduler started; such pods are tried in the order of a list."""
    has_decision: bool = False


class _Doubt(msgspec.Struct):
    """A decision that another state has to explain."""

    decision: JudgedDecision
    moment: Change


class DecisionFollower:
    """Judges each decision about pods of the profiles in `view`, which has the cluster at the start.

    `take` gets a change after the other, in order of time; `finish` comes last. `deliver` gets each decision with its
    verdict, which may be open for as long as changes around it are awaited; without it they are in `decisions`, in the
    order in which they became visible.
    """

    make_judge: ClassVar[type[DecisionJudge]] = DecisionJudge

    def __init__(
        self,
        view: TrialCluster,
        ties: TieBreak | None = None,
        *,
        takes_all: bool = False,
        deliver: Callable[[JudgedDecision], None] | None = None,
        on_difference: OnDifference | None = None,
        shows_sampled: bool = False,
    ) -> None:
        self.pods = 0
        """The number of pods that a decision was expected for."""
        self.settled = 0
        """The number of decisions with a verdict."""
        self.skipped = 0
        """The number of decisions that were not judged."""
        self.is_hurried = False
        """Whether a node with a lower total counts as sampled without a check of other states, if the scheduler may
        sample nodes.
        """
        self._view = view
        self._history = ClusterHistory(view)
        self._judge = self.make_judge(
            self._history,
            ties or RandomTies(),
            takes_all=takes_all,
            on_difference=on_difference,
            shows_sampled=shows_sampled,
        )
        self._delivered: list[JudgedDecision] = []
        self._deliver = deliver or self._delivered.append
        self._number = 0
        self._is_judged = True
        self._doubts: deque[_Doubt] = deque()
        self._late: deque[_Doubt] = deque()
        """Doubts that await bindings which become visible late."""
        self._pending: dict[str, _PendingPod] = {}
        self._absences = SchedulerAbsences()
        for pod in view.pods():
            self._expect(pod, 0.0, is_start=True)

    @property
    def decisions(self) -> list[JudgedDecision]:
        """The decisions with a verdict so far."""
        return sorted(self._delivered, key=lambda decision: decision.number)

    @property
    def open_decisions(self) -> int:
        """The number of decisions whose verdict is open."""
        return len(self._doubts) + len(self._late)

    def waiting(self) -> Iterator[tuple[Pod, float]]:
        """The pods without a node, and when they arrived."""
        return ((one.pod, one.created_s) for one in self._pending.values() if not one.assumed_on)

    def take(
        self,
        at_s: float,
        obj: Any,
        *,
        is_deleted: bool = False,
        is_judged: bool = True,
        resolves: bool = True,
    ) -> None:
        """Follow a change: `obj` is an object's new state, or its last one.

        If not judged, a decision is counted only. If not `resolves`, open decisions stay open; see `resolve_until`.
        """
        if resolves:
            self.resolve_until(at_s)
        self._is_judged = is_judged
        stored = self._history.get(obj)
        if isinstance(obj, Pod):
            self._take_pod(at_s, obj, stored, is_deleted)
        elif not is_deleted:
            self._history.follow(at_s, stored, obj)
        elif stored is not None:
            self._history.follow(at_s, stored, None)

    def resolve_until(self, at_s: float) -> None:
        """Judge the open decisions whose surroundings are complete at this time."""
        for _ in self.resolving(at_s):
            pass

    def resolving(
        self, at_s: float, is_over: Callable[[], bool] = lambda: False
    ) -> Generator[None, None, None]:
        """Judge the open decisions, the oldest first, until `is_over`; yields between two states, while the view shows
        one of them.

        Judging them together costs less: the view moves from one past state to the next, and back once.
        """
        if not self._is_due(at_s):
            return
        resolved: list[JudgedDecision] = []
        has_begun = False
        try:
            with self._history.past() as show:
                while self._is_due(at_s) and not (has_begun and is_over()):
                    has_begun = True
                    doubts, ahead_s = self._due(at_s)
                    doubt = doubts[0]
                    yield from self._judge.resolving(doubt.decision, doubt.moment, show, ahead_s)
                    doubts.popleft()
                    if doubt.decision.agreement is None:
                        self._late.append(doubt)
                    else:
                        resolved.append(doubt.decision)
        finally:
            for decision in resolved:
                self._settle(decision)

    def _is_due(self, at_s: float) -> bool:
        return bool(self._due(at_s)[0])

    def _due(self, at_s: float) -> tuple[deque[_Doubt], float]:
        """The doubts whose first decision can be judged now, and the seconds of history after it."""
        for doubts, ahead_s in ((self._late, WRITE_S), (self._doubts, LAG_S)):
            if doubts and doubts[0].decision.at_s + ahead_s < at_s:
                return doubts, ahead_s
        return deque(), 0.0

    def has_room(self, pod: Pod) -> bool:
        """Whether a node is feasible for a waiting pod, now."""
        return self._judge.ask(pod).decision().best.feasible > 0

    def skip_open(self) -> None:
        """Leave the open decisions without a verdict."""
        self.skipped += self.open_decisions
        self._doubts.clear()
        self._late.clear()

    def finish(self, at_s: float) -> None:
        """Judge all that is open; pods about which nothing was decided are delivered as undecided."""
        self.resolve_until(math.inf)
        for one in self._pending.values():
            if not one.has_decision:
                self._settle(self._decision(one, at_s))

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
        """Handle a pod with a node, which it has just got if it was pending."""
        known = self._pending.pop(pod.uid, None)
        if known is None or known.assumed_on == pod.node_name:
            self._history.follow(at_s, stored, pod)
            return
        self._decided(at_s, known, pod.node_name, stored, pod)

    def _take_waiting(self, at_s: float, pod: Pod, stored: Pod | None) -> None:
        """Handle a pod without a node: new, refused, nominated, or waiting for its volumes."""
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
        if not was_assumed and _is_refused_again(pod, known.pod):
            self._decided(at_s, known, "", stored, pod)
        else:
            self._history.follow(at_s, stored, pod)
        known.pod = pod

    def _is_expected(self, known: _PendingPod, pod: Pod, node_name: str) -> bool:
        """Whether the nomination announces a binding, and not a node that preemption makes room on.

        Both may come with the condition of an earlier refusal. A refusal that comes with the nomination, or a pod that
        has nothing to wait for, shows a preemption, and so does a pod that does not fit yet.
        """
        if not _is_refused(pod.status):
            return True
        if _refusal(pod.status) != _refusal(known.pod.status) or not _may_wait(pod):
            return False
        return assess(self._judge.ask(known.pod), node_name, in_full=False).fits

    def _expect(self, pod: Pod, at_s: float, *, is_start: bool = False) -> None:
        """Await a decision about a pod of our profiles that has no node."""
        if self._judge.takes(pod) and not pod.node_name and not pod.is_finished:
            self.pods += 1
            is_held = _is_refused(pod.status) or pod.spec.scheduling_group is not None
            self._pending[pod.uid] = _PendingPod(pod, at_s, not (is_held or is_start))
            if not is_held:
                self._absences.expect(pod, at_s)

    def _leave(self, pod: Pod, at_s: float) -> None:
        """Handle a deleted pod, perhaps before anything was decided about it."""
        known = self._pending.pop(pod.uid, None)
        if known is not None and not known.has_decision:
            self._absences.forget(pod)
            self._settle(self._decision(known, at_s))

    # Decisions

    def _decided(
        self, at_s: float, known: _PendingPod, node_name: str, stored: Pod | None, now: Pod
    ) -> None:
        """Note a decision, apply its change, and judge it: now if the present state explains it."""
        if self._absences.end(known.pod, at_s):
            self._note_start(known)
        is_first = known.is_fresh and not known.has_decision
        known.has_decision = True
        decision = self._decision(known, at_s)
        decision.node_name = node_name
        if not node_name:
            decision.message = _refusal(now.status).message
            decision.nominated_node = now.nominated_node_name
        is_clear = self._is_judged and self._judge.judge(decision)
        moment = self._history.follow(
            at_s,
            stored,
            now,
            is_binding=bool(node_name),
            is_first=is_first,
            is_listed=known.is_listed,
        )
        if not self._is_judged:
            self.skipped += 1
        elif (is_clear and not decision.nominated_node) or (
            not is_clear and self.is_hurried and self._judge.is_sampled(decision)
        ):
            decision.settle(PastState(moment.number), moment)
            self._settle(decision)
        else:
            self._doubts.append(_Doubt(decision, moment))

    def _note_start(self, first: _PendingPod) -> None:
        """Note that a scheduler has started: it tries the waiting pods in another order than they arrived."""
        name = first.pod.scheduler_name
        for one in (first, *self._pending.values()):
            if one.pod.scheduler_name == name:
                one.is_fresh, one.is_listed = False, True

    def _decision(self, known: _PendingPod, at_s: float) -> JudgedDecision:
        self._number += 1
        return JudgedDecision(
            pod=known.pod,
            created_s=known.created_s,
            at_s=at_s,
            number=self._number,
            has_profile=self._judge.has_profile(known.pod),
        )

    def _settle(self, decision: JudgedDecision) -> None:
        self.settled += 1
        self._deliver(decision)


class SchedulerAbsences:
    """Finds schedulers that decide nothing for a while although new pods wait: they start, or another one leads."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[str]] = {}
        """By name of a scheduler: uids of the pods without any decision."""
        self._silent_since_s: dict[str, float] = {}

    def expect(self, pod: Pod, at_s: float) -> None:
        """Note a new pod."""
        waiting = self._waiting.setdefault(pod.scheduler_name, set())
        if not waiting:
            self._silent_since_s[pod.scheduler_name] = at_s
        waiting.add(pod.uid)

    def forget(self, pod: Pod) -> None:
        """Note that a pod left without a decision."""
        self._waiting.get(pod.scheduler_name, set()).discard(pod.uid)

    def end(self, pod: Pod, at_s: float) -> bool:
        """Note a decision; returns whether its scheduler was away before it."""
        name = pod.scheduler_name
        waiting = self._waiting.get(name)
        was_silent = bool(waiting) and at_s - self._silent_since_s[name] > AWAY_S
        if waiting:
            waiting.discard(pod.uid)
        self._silent_since_s[name] = at_s
        return was_silent


NO_CONDITION = PodCondition()


def _refusal(status: PodStatus) -> PodCondition:
    """The condition of the last attempt that found no node, or of a pod that is held back."""
    condition = status.condition(POD_SCHEDULED)
    if condition is None or condition.status != "False":
        return NO_CONDITION
    return condition if condition.reason in (UNSCHEDULABLE, GATED) else NO_CONDITION


def _is_refused(status: PodStatus) -> bool:
    """Whether the last attempt of a scheduler found no node, or the pod is held back."""
    return _refusal(status) is not NO_CONDITION


def _may_wait(pod: Pod) -> bool:
    """Whether a pod may have to wait between its decision and its binding: for volumes, claims or its group."""
    spec = pod.spec
    volumes = spec.volumes or ()
    return bool(spec.resource_claims or spec.scheduling_group is not None) or any(
        one.persistent_volume_claim is not None or one.ephemeral is not None for one in volumes
    )


def _is_refused_again(pod: Pod, before: Pod) -> bool:
    """Whether the change of the pod shows an attempt that found no node. Recordings have no messages: if nothing else
    changed, the message did.
    """
    condition = _refusal(pod.status)
    if condition is NO_CONDITION:
        return False
    if (
        condition != _refusal(before.status)
        or pod.nominated_node_name != before.nominated_node_name
    ):
        return True
    return not condition.message and (pod.spec, pod.labels) == (before.spec, before.labels)
