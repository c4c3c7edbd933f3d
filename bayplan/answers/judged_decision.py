"""Judged decision: one decision of a scheduler, and how it compares with ours."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..api.pod import Pod
from ..scheduler.assessment import Assessment, PreemptionAssessment
from ..sim.replay_report import PodPlacement, ReplayVerdict
from .cluster_history import Change, PastState


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


class JudgedDecision(msgspec.Struct, kw_only=True):
    """One decision about a pod: a node, or none. Times are seconds after the start."""

    pod: Pod
    created_s: float
    at_s: float
    """Time when it became visible."""
    number: int = 0
    """Its place among the decisions, in the order in which they became visible."""
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
    def recorded(self) -> PodPlacement | None:
        """The node that the pod got."""
        return PodPlacement(self.node_name, self.at_s) if self.node_name else None

    @property
    def replayed(self) -> PodPlacement | None:
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
