"""Judged decision: one decision of a scheduler, and how it compares with ours."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from ..api.pod import Pod
from ..api.text.refusal_message import refusals_of
from ..errors import counted
from ..framework import Status
from ..scheduler.assessment import Assessment, PreemptionAssessment
from ..sim.replay_report import EXPLAINED, ComparedPod, PodPlacement, ReplayVerdict
from .cluster_history import Change, PastState

DEFAULT_PREEMPTION = "DefaultPreemption"
MOST_PLUGINS = 3
"""Plugins that a reason names."""


class Agreement(StrEnum):
    """Whether two schedulers agree about a decision."""

    SAME = "same"
    """A node with the highest total, or a refusal for the same reasons, in a state since the pod's arrival."""
    SAMPLED = "sampled"
    """A feasible node, but others have a higher total, where only a part of the nodes is compared."""
    OTHER_STATE = "other state"
    """As `same`, but in a state from before the pod's arrival, or with a change that came after the decision."""
    DIFFERENT = "different"
    """A node that is refused here or should have lost, a refusal where there is room, other reasons, other victims."""


_SAME = frozenset({ReplayVerdict.SAME, ReplayVerdict.EQUAL, ReplayVerdict.PENDING})


class JudgedDecision(ComparedPod, msgspec.Struct, kw_only=True):
    """One decision about a pod: a node, or none. Times are seconds after the start."""

    pod: Pod
    created_s: float
    at_s: float
    """Time when it became visible."""
    number: int = 0
    """Its position among the decisions, in the order in which they became visible."""
    node_name: str = ""
    """The node that the pod got, or waits for while its volumes are made; "" for a refusal."""
    message: str = ""
    """The scheduler's message about a refusal; empty if it is not known."""
    nominated_node: str = ""
    """After a refusal, the node on which the scheduler makes room by preemption."""
    verdict: ReplayVerdict = ReplayVerdict.UNDECIDED
    chosen_node: str = ""
    """The node that would be chosen in that state; "" if no node is feasible."""
    assessment: Assessment | None = None
    preemption: PreemptionAssessment | None = None
    state: PastState | None = None
    """The state in which the decision was judged."""
    is_other_state: bool = False
    """Whether that state is not one between the pod's arrival and the decision."""
    has_profile: bool = True
    """Whether a profile has the name of the pod's scheduler; else the default profile judged."""

    @property
    def agreement(self) -> Agreement | None:
        """Whether both schedulers agree; None if nothing was decided."""
        if self.verdict is ReplayVerdict.UNDECIDED:
            return None
        if self.verdict is ReplayVerdict.SAMPLED:
            return Agreement.SAMPLED
        if self.verdict not in _SAME:
            return Agreement.DIFFERENT
        return Agreement.OTHER_STATE if self.is_other_state else Agreement.SAME

    @property
    def recorded(self) -> PodPlacement | None:  # type: ignore[override]  # computed here
        """The node that the pod got."""
        return PodPlacement(self.node_name, self.at_s) if self.node_name else None

    @property
    def replayed(self) -> PodPlacement | None:  # type: ignore[override]  # computed here
        """The node that would be chosen."""
        return PodPlacement(self.chosen_node, self.at_s) if self.chosen_node else None

    def settle(self, state: PastState, moment: Change) -> None:
        """Note the state that explains the decision, which became visible with `moment`."""
        self.state = state
        self.is_other_state = any(number < moment.arrival for number in state.left_out)

    def reopen(self) -> None:
        """Drop the verdict before it is replaced by another."""
        self.verdict = ReplayVerdict.UNDECIDED
        self.state = self.preemption = None

    def row(self) -> dict[str, Any]:
        found = self.assessment
        return {
            **ComparedPod.row(self),
            "total": found.total if found else None,
            "best": found.best_total if found else None,
            "rank": found.rank if found else None,
            "feasible": found.feasible_nodes if found else None,
            "reason": reason_of(self),
        }

    def to_dict(self) -> dict[str, Any]:
        found, state, tree = self.assessment, self.state, ComparedPod.to_dict(self)
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
        if self.preemption is not None:
            victims = self.preemption
            tree["preemption"] = {
                "node": victims.node_name,
                "victims": list(victims.victims),
                "hereNode": victims.chosen_node or None,
                "hereVictims": list(victims.chosen_victims),
            }
        if state is not None:
            tree["changesLeftOut"] = len(state.left_out)
            tree["changesAnticipated"] = len(state.anticipated)
        if reason := reason_of(self):
            tree["reason"] = reason
        return tree


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
        ours, theirs = refusals_of(found.message), refusals_of(one.message)
        plugins = (
            plugin
            for plugin, reason in found.refusal_reasons
            if ours.get(reason) != theirs.get(reason)
        )
        return tuple(dict.fromkeys(plugin for plugin in plugins if plugin))
    return tuple(name for name, points in found.behind if points > 0)


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
