"""Shadow run: the changes of a cluster, recorded or live, with every decision judged and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..answers.decisions import DecisionFollower
from ..answers.judged_decision import Agreement, JudgedDecision
from ..api.pod import Pod
from ..cluster.objects import ClusterObject
from ..scheduler import RandomTies
from ..sim.recording_file import DELETED, Recording
from ..sim.settings import OnProgress, Settings
from ..trials import TrialCluster
from .avoided_nodes import avoided_labels
from .decision_account import DecisionAccount
from .evidence import EvidenceFolder
from .wait_probe import WaitProbe

OnDecision = Callable[[JudgedDecision, Agreement], None]


class ShadowRun:
    """Judges the decisions about the pods of all schedulers, beginning with `objects`.

    `time_text` gives the time of a decision as text, from seconds after the start. `on_decision` gets each decision
    after it was counted.
    """

    def __init__(
        self,
        objects: Iterable[ClusterObject],
        settings: Settings,
        *,
        account: DecisionAccount | None = None,
        evidence: EvidenceFolder | None = None,
        time_text: Callable[[float], str] = "{:.1f}s".format,
        on_decision: OnDecision | None = None,
    ) -> None:
        self.account = account or DecisionAccount()
        self.settings = settings
        self.view = TrialCluster(objects, settings)
        self.follower = DecisionFollower(
            self.view,
            RandomTies(settings.seed or 0),
            takes_all=True,
            deliver=self._take_decision,
            on_difference=self._keep_evidence if evidence is not None else None,
            shows_sampled=evidence is not None and evidence.takes_sampled,
        )
        self._evidence = evidence
        self._files: dict[int, str] = {}
        """By number of the decision: the evidence that was written for it."""
        self._time_text = time_text
        self._on_decision = on_decision
        self.holds: Callable[[JudgedDecision], bool] = lambda decision: False
        """Whether a decision is not counted yet: it is given to `count` or `drop` later."""
        self._waits = WaitProbe(self.account.waits, self._has_room)
        self._resumed_s = self.account.watched_s

    def take(
        self,
        at_s: float,
        obj: Any,
        *,
        is_deleted: bool = False,
        is_judged: bool = True,
        resolves: bool = True,
    ) -> None:
        """Follow a change. If not `resolves`, the decisions that are open stay open."""
        self.follower.take(at_s, obj, is_deleted=is_deleted, is_judged=is_judged, resolves=resolves)
        self.account.watched_s = self._resumed_s + at_s

    def look_at_waits(self, at_s: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Probe the waiting pods, if it is time, until it `is_over`."""
        self._waits.look(at_s, self._waiting, is_over)

    def finish(self, at_s: float) -> None:
        """Judge all that is open."""
        self.follower.finish(at_s)
        self._waits.finish()
        self.account.watched_s = self._resumed_s + at_s
        self.account.avoided = avoided_labels(self.account.differences, self._labels_of)

    def _labels_of(self, node_name: str) -> Mapping[str, str]:
        node = self.view.cluster.get("Node", "", node_name)
        return node.labels if node is not None else {}

    def _waiting(self) -> Iterator[Pod]:
        return (pod for pod, _ in self.follower.waiting() if not pod.spec.scheduling_gates)

    def _has_room(self, pod: Pod) -> bool:
        return self.follower.has_room(pod)

    def _take_decision(self, decision: JudgedDecision) -> None:
        if not self.holds(decision):
            self.count(decision)

    def count(self, decision: JudgedDecision) -> None:
        """Add a decision to the account."""
        file = self._files.pop(decision.number, "")
        agreement = self.account.add(decision, self._time_text(decision.at_s), file)
        if agreement is not None and self._on_decision is not None:
            self._on_decision(decision, agreement)

    def drop(self, decision: JudgedDecision) -> None:
        """Leave a decision out of the account; its evidence is removed."""
        file = self._files.pop(decision.number, "")
        if file and self._evidence is not None:
            self._evidence.remove(file)

    def _keep_evidence(self, decision: JudgedDecision, view: TrialCluster) -> None:
        assert self._evidence is not None
        file = self._evidence.keep(decision, view, self._time_text(decision.at_s))
        if file:
            self._files[decision.number] = file


def shadow_recording(
    recording: Recording, run: ShadowRun, on_progress: OnProgress | None = None
) -> None:
    """Judge every decision in a recording."""
    for event in recording.events:
        run.take(event.at_s, event.obj, is_deleted=event.type == DELETED)
        run.look_at_waits(event.at_s)
        if on_progress is not None:
            on_progress(run.follower.settled, run.follower.pods)
    run.finish(recording.duration_s)
