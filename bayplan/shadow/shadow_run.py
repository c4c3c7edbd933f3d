"""Shadow run: the changes of a cluster, recorded or live, with every decision judged and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..answers.decisions import DecisionFollower
from ..answers.judged_decision import Agreement, JudgedDecision
from ..api.pod import Pod
from ..cluster.objects.object_index import ClusterObject
from ..scheduler import RandomTies
from ..sim.recording_file import DELETED, Recording
from ..sim.replay_report import ReplayVerdict
from ..sim.settings import OnProgress, Settings
from ..trials import TrialCluster
from .decision_account import DecisionAccount, DecisionDifference, WaitAccount, is_refused_here
from .evidence import EvidenceFolder

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
            deliver=lambda one: None if self.holds(one) else self.count(one),
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
        self._waits = WaitProbe(self.account.waits, self.follower.has_room)
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
        waiting = (pod for pod, _ in self.follower.waiting() if not pod.spec.scheduling_gates)
        self._waits.look(at_s, lambda: waiting, is_over)

    def finish(self, at_s: float) -> None:
        """Judge all that is open."""
        self.follower.finish(at_s)
        self._waits.finish()
        self.account.watched_s = self._resumed_s + at_s
        self.account.avoided = avoided_labels(self.account.differences, self._labels_of)

    def _labels_of(self, node_name: str) -> Mapping[str, str]:
        node = self.view.cluster.get("Node", "", node_name)
        return node.labels if node is not None else {}

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


FEWEST = 5
"""Least number of decisions to choose a label from."""
FEWEST_NODES = 2
Labels = Callable[[str], Mapping[str, str]]
"""Returns the labels of a node by its name; empty if there is no such node."""


def avoided_labels(differences: Iterable[DecisionDifference], labels: Labels) -> dict[str, str]:
    """By scheduler: a label of all nodes that are best here but were never chosen, and of no chosen node."""
    rows: dict[str, list[DecisionDifference]] = {}
    for one in differences:
        if one.result == ReplayVerdict.OTHER and one.here and not is_refused_here(one):
            rows.setdefault(one.scheduler, []).append(one)
    found = {name: _label_of(each, labels) for name, each in rows.items() if len(each) >= FEWEST}
    return {name: label for name, label in found.items() if label}


def _label_of(rows: list[DecisionDifference], labels: Labels) -> str:
    """The label as `key=value`, "" if there is none."""
    chosen = {one.node for one in rows}
    avoided = {one.here for one in rows} - chosen
    if len(avoided) < FEWEST_NODES:
        return ""
    first, *others = (set(labels(name).items()) for name in avoided)
    common = first.intersection(*others)
    for name in chosen:
        common -= set(labels(name).items())
    return min((f"{key}={value}" for key, value in common), default="")


EVERY_S = 5.0
MOST_SPECS = 200
"""Limit on the distinct pods that are probed at a time."""


class WaitProbe:
    """Notes since when each waiting pod has had a feasible node; `has_room` is true if one has, now."""

    def __init__(self, account: WaitAccount, has_room: Callable[[Pod], bool]) -> None:
        self._account = account
        self._account.every_s = EVERY_S
        self._has_room = has_room
        self._since: dict[str, tuple[str, float]] = {}
        """By uid: the pod's key, and when a node had room for it first."""
        self._next_s = EVERY_S
        self._last_s = 0.0
        self._round: Iterator[None] | None = None
        """The probes of one time that are under way."""

    def look(
        self,
        at_s: float,
        waiting: Callable[[], Iterable[Pod]],
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Probe again if it is due, until it `is_over`; the next call continues."""
        if self._round is None:
            if at_s < self._next_s:
                return
            self._next_s = at_s + EVERY_S
            self._round = self._probes(at_s, list(waiting()))
        for _ in self._round:
            if is_over():
                return
        self._round = None

    def _probes(self, at_s: float, waiting: Sequence[Pod]) -> Iterator[None]:
        """Probe all that wait, with a pause after each."""
        rooms: dict[int, bool] = {}
        found: dict[str, tuple[str, float]] = {}
        for pod in waiting:
            key = id(pod.spec)  # equal specs are one object
            if key not in rooms and len(rooms) < MOST_SPECS:
                rooms[key] = self._has_room(pod)
                yield
            if rooms.get(key):
                found[pod.uid] = self._since.get(pod.uid) or (pod.key, at_s)
        self._count(self._since.keys() - found.keys())
        self._since, self._last_s = found, at_s

    def finish(self) -> None:
        """Count the pods that still wait."""
        self._round = None
        self._count(self._since.keys())
        self._since = {}

    def _count(self, gone: Iterable[str]) -> None:
        """Count pods that had room at two questions or more: from the first to the last of them."""
        for uid in gone:
            key, since_s = self._since[uid]
            if self._last_s > since_s:
                self._account.add(key, self._last_s - since_s)
