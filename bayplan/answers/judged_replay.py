"""Judged replay: every decision in a recording, compared with the state of the cluster in which it was made."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from ..choices import Follow
from ..clock import SystemClock
from ..scheduler import RandomTies
from ..sim.recording_file import DELETED, Recording
from ..sim.replay_report import EXPLAINED, ReplayAnswer
from ..sim.settings import OnProgress, Settings
from ..trials import TrialCluster
from .decisions import DecisionFollower
from .judged_decision import JudgedDecision


class JudgedReplay(ReplayAnswer[JudgedDecision], msgspec.Struct, kw_only=True):
    """The decisions of a recording, in the order in which they became visible."""

    noun: ClassVar[str] = "decision"
    follow: ClassVar[Follow] = Follow.RECORDED
    decisions: list[JudgedDecision]
    pods: int
    """Number of pods that needed a node."""
    time_s: float = 0.0
    """Duration of the recording."""
    seconds: float = 0.0
    """Duration of the judging on the wall clock."""
    has_extenders: bool = False
    """Whether the configuration has extenders, which are not called."""
    release: str = ""
    """The kube-scheduler whose rules judge."""

    @property
    def compared(self) -> list[JudgedDecision]:
        return self.decisions

    @property
    def shifted(self) -> list[JudgedDecision]:
        """Decisions that are explained by a state near their moment, not by that of the moment."""
        return [
            one
            for one in self.decisions
            if one.verdict in EXPLAINED and one.state is not None and not one.state.is_present
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the content of `-o json`."""
        first = {"pods": self.pods, "decisions": len(self.decisions)}
        return self.document(first, {"shifted": len(self.shifted)})


def judge_recording(
    recording: Recording, settings: Settings, on_progress: OnProgress | None = None
) -> JudgedReplay:
    """Judge every decision in a recording; raises InputError for inconsistent recordings."""
    clock = SystemClock()
    started = clock.monotonic()
    view = TrialCluster(recording.objects, settings)
    follower = DecisionFollower(view, RandomTies(settings.seed or 0))
    for event in recording.events:
        follower.take(event.at_s, event.obj, is_deleted=event.type == DELETED)
        if on_progress is not None:
            on_progress(follower.settled, follower.pods)
    pods = follower.pods
    follower.finish(recording.duration_s)
    return JudgedReplay(
        decisions=follower.decisions,
        pods=pods,
        time_s=recording.duration_s,
        seconds=clock.monotonic() - started,
        has_extenders=view.has_extenders,
        release=settings.release.patch,
    )
