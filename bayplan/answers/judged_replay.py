"""Judged replay: every decision in a recording, compared with the state of the cluster in which it was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..api.own_documents import API_VERSION
from ..api.text.refusal_message import refusals_of
from ..choices import Follow
from ..clock import SystemClock
from ..errors import counted
from ..framework import Status
from ..scheduler import RandomTies
from ..scheduler.assessment import Assessment, PreemptionAssessment
from ..sim.html_summary import ShownAnswer, make_frame
from ..sim.recording_file import DELETED, Recording
from ..sim.replay_report import (
    EXPLAINED,
    ReplayVerdict,
    agreement,
    count_verdicts,
    counts_tree,
    placement_tree,
)
from ..sim.settings import OnProgress, Settings
from ..trials import TrialCluster
from .decisions import DecisionFollower
from .judged_decision import JudgedDecision

DEFAULT_PREEMPTION = "DefaultPreemption"
MOST_PLUGINS = 3
"""Plugins that a reason names."""


class JudgedReplay(ShownAnswer, msgspec.Struct, kw_only=True):
    """The decisions of a recording, in the order in which they became visible."""

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
    def differing(self) -> list[JudgedDecision]:
        """Decisions that no state around them explains."""
        return [one for one in self.decisions if one.verdict not in EXPLAINED]

    @property
    def shifted(self) -> list[JudgedDecision]:
        """Decisions that are explained by a state near their moment, not by that of the moment."""
        return [
            one
            for one in self.decisions
            if one.verdict in EXPLAINED and one.state is not None and not one.state.is_present
        ]

    def counts(self) -> dict[ReplayVerdict, int]:
        """Number of decisions per verdict."""
        return count_verdicts(one.verdict for one in self.decisions)

    def headline(self) -> str:
        return agreement(self.counts(), "decision")

    def shown_rows(self) -> Iterable[Mapping[str, Any]]:
        return (row(one) for one in self.differing or self.decisions)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line per decision."""
        return make_frame(row(one) for one in self.decisions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the content of `-o json`. Nothing in it depends on how long the judging took."""
        counts = self.counts()
        return {
            "apiVersion": API_VERSION,
            "kind": "ReplayReport",
            "kubernetesVersion": self.release,
            "follow": Follow.RECORDED.value,
            "summary": {
                "pods": self.pods,
                "decisions": len(self.decisions),
                **counts_tree(counts),
                "shifted": len(self.shifted),
                "time": round(self.time_s, 6),
            },
            "pods": [decision_tree(one) for one in self.decisions],
        }


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


def row(one: JudgedDecision) -> dict[str, Any]:
    """A decision as a row of a table."""
    found = one.assessment
    return {
        "pod": one.pod.key,
        "time": round(one.at_s, 6),
        "node": one.node_name or None,
        "here": one.chosen_node or None,
        "result": str(one.verdict),
        "total": found.total if found else None,
        "best": found.best_total if found else None,
        "rank": found.rank if found else None,
        "feasible": found.feasible_nodes if found else None,
        "reason": reason_of(one),
    }


def reason_of(one: JudgedDecision) -> str:
    """Reason why the decision differs, or in which state it does not; "" if there is none."""
    found = one.assessment
    if one.verdict is ReplayVerdict.UNDECIDED:
        return "no decision was recorded"
    if one.verdict in EXPLAINED and one.verdict is not ReplayVerdict.SAMPLED:
        return _state_text(one)
    if one.preemption is not None and one.verdict is ReplayVerdict.OTHER_VICTIMS:
        return _victims_text(one.preemption)
    if found is None:
        return ""
    if one.verdict is ReplayVerdict.PENDING_THEN:
        nodes = (
            "1 node has" if found.feasible_nodes == 1 else f"{found.feasible_nodes:,} nodes have"
        )
        return f"{nodes} room; the scheduler's reason: {one.message or 'not recorded'}"
    if one.verdict is ReplayVerdict.OTHER_REASON:
        first, _, _ = one.message.partition(" preemption: ")
        return f'"{found.message}" here, "{first}" there'
    if found.refusals:
        return "; ".join(status_text(status) for status in found.refusals)
    if not found.fits:
        return found.message
    plugins = ", ".join(f"{name} {-points:+,}" for name, points in found.behind[:MOST_PLUGINS])
    text = f"{found.total:,} points, best {found.best_total:,}, rank {found.rank:,} of {found.feasible_nodes:,}"
    return f"{text}: {plugins}" if plugins else text


def plugins_of(one: JudgedDecision) -> tuple[str, ...]:
    """The plugins that cause the difference of the decision, the most important first."""
    found = one.assessment
    if one.verdict is ReplayVerdict.OTHER_VICTIMS:
        return (DEFAULT_PREEMPTION,)
    if found is None:
        return ()
    if found.refusals:
        return tuple(dict.fromkeys(status.plugin for status in found.refusals if status.plugin))
    if one.verdict is ReplayVerdict.OTHER_REASON:
        return _disputed_plugins(found, one.message)
    return tuple(name for name, points in found.behind if points > 0)


def _disputed_plugins(found: Assessment, message: str) -> tuple[str, ...]:
    """The plugins that give a reason for another number of nodes than the message has."""
    ours, theirs = refusals_of(found.message), refusals_of(message)
    plugins = (
        plugin for plugin, reason in found.refusal_reasons if ours.get(reason) != theirs.get(reason)
    )
    return tuple(dict.fromkeys(plugin for plugin in plugins if plugin))


def _victims_text(found: PreemptionAssessment) -> str:
    there = f"evicted {', '.join(found.victims)} from {found.node_name}"
    if not found.chosen_node:
        return f"{there}; here preemption helps on no node"
    return f"{there}; here {', '.join(found.chosen_victims)} from {found.chosen_node}"


def status_text(status: Status) -> str:
    """`NodeResourcesFit: Insufficient cpu`."""
    text = ", ".join(status.reasons) or status.message
    return f"{status.plugin}: {text}" if status.plugin else text


def _state_text(one: JudgedDecision) -> str:
    if one.state is None or one.state.is_present:
        return ""
    parts = []
    if one.state.left_out:
        parts.append(f"without {counted(len(one.state.left_out), 'change')} just before")
    if one.state.anticipated:
        parts.append(f"with {counted(len(one.state.anticipated), 'change')} recorded just after")
    return ", ".join(parts)


def decision_tree(one: JudgedDecision) -> dict[str, Any]:
    """A decision as plain data."""
    found, state = one.assessment, one.state
    tree: dict[str, Any] = {
        "namespace": one.pod.namespace,
        "name": one.pod.name,
        "created": round(one.created_s, 6),
        "result": str(one.verdict),
        "recorded": placement_tree(one.recorded),
        "replayed": placement_tree(one.replayed),
    }
    if found is not None:
        tree |= {
            "total": found.total,
            "bestTotal": found.best_total,
            "bestNodes": found.best_nodes,
            "rank": found.rank,
            "feasibleNodes": found.feasible_nodes,
            "behind": [{"plugin": name, "points": points} for name, points in found.behind],
            "refusals": [
                {"plugin": s.plugin, "code": s.code.name, "reasons": list(s.reasons)}
                for s in found.refusals
            ],
            "message": found.message,
        }
    if one.preemption is not None:
        victims = one.preemption
        tree["preemption"] = {
            "node": victims.node_name,
            "victims": list(victims.victims),
            "hereNode": victims.chosen_node or None,
            "hereVictims": list(victims.chosen_victims),
        }
    if state is not None:
        tree["changesLeftOut"] = len(state.left_out)
        tree["changesAnticipated"] = len(state.anticipated)
    if reason := reason_of(one):
        tree["reason"] = reason
    return tree
