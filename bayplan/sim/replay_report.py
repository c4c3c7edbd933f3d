"""Replay report: recorded decisions beside ours, in the states that our own decisions leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from ..api.own_documents import API_VERSION
from ..api.pod import Pod
from ..api.pod_groups import GroupPreemptor
from ..choices import Follow
from ..errors import counted
from .html_summary import ShownAnswer, make_frame
from .totals import TotalsChange
from .use_over_time import UseSeries


class ReplayVerdict(StrEnum):
    """Comparison of two decisions about a pod."""

    SAME = "same"
    EQUAL = "equal"
    """Another node, whose total was equal at that moment."""
    SAMPLED = "sampled"
    """A node with a lower total, in a cluster of which kube-scheduler compares a part of the nodes only."""
    OTHER = "other node"
    PENDING_HERE = "pending here"
    PENDING_THEN = "pending then"
    PENDING = "pending"
    OTHER_REASON = "other reason"
    """Refused both times, for other reasons."""
    OTHER_VICTIMS = "other victims"
    """Refused both times; preemption evicts other pods."""
    UNDECIDED = "undecided"
    """Nothing was decided about the pod in the recording."""


EXPLAINED = frozenset(
    {
        ReplayVerdict.SAME,
        ReplayVerdict.EQUAL,
        ReplayVerdict.SAMPLED,
        ReplayVerdict.PENDING,
        ReplayVerdict.UNDECIDED,
    }
)
"""Verdicts that are no difference between two schedulers with the same rules."""
AGREEING = {
    ReplayVerdict.SAME: "same node",
    ReplayVerdict.EQUAL: "equal total",
    ReplayVerdict.PENDING: "pending both times",
}
REMAINING = {
    ReplayVerdict.SAMPLED: "sampled",
    ReplayVerdict.OTHER: "to another node",
    ReplayVerdict.PENDING_HERE: "pending here but not then",
    ReplayVerdict.PENDING_THEN: "pending then but not here",
    ReplayVerdict.OTHER_REASON: "pending for another reason",
    ReplayVerdict.OTHER_VICTIMS: "with other victims",
    ReplayVerdict.UNDECIDED: "undecided",
}


class PodPlacement(msgspec.Struct):
    """The node of a pod, and when, in seconds after the start."""

    node_name: str
    time_s: float


class ReplayedPod(msgspec.Struct):
    """One pod that needed a node: the recorded decision and ours."""

    pod: Pod
    created_s: float
    recorded: PodPlacement | None = None
    replayed: PodPlacement | None = None
    is_equal: bool = False
    """Whether the recorded node had the same total when ours was chosen."""
    is_lost: bool = False
    """Whether it was deleted with a node that it was not on in the recording."""

    @property
    def verdict(self) -> ReplayVerdict:
        match self.recorded, self.replayed:
            case None, None:
                return ReplayVerdict.PENDING
            case None, _:
                return ReplayVerdict.PENDING_THEN
            case _, None:
                return ReplayVerdict.PENDING_HERE
        assert self.recorded is not None
        assert self.replayed is not None
        same = self.recorded.node_name == self.replayed.node_name
        if same:
            return ReplayVerdict.SAME
        return ReplayVerdict.EQUAL if self.is_equal else ReplayVerdict.OTHER


class ReplayReport(ShownAnswer, msgspec.Struct):
    """All pods that needed a node, in order of creation."""

    pods: list[ReplayedPod]
    preempted: list[tuple[Pod, Pod | GroupPreemptor]] = msgspec.field(default_factory=list)
    """The pods our scheduler preempted, with their preemptors."""
    time_s: float = 0.0
    seconds: float = 0.0
    """Duration of the replay on the wall clock."""
    use: list[UseSeries] = msgspec.field(default_factory=list)
    """Use of each resource and number of pending pods over the time of the replay."""
    totals: TotalsChange = msgspec.field(default_factory=TotalsChange)
    """The resources of all nodes, before and after."""
    release: str = ""
    """The kube-scheduler whose decisions these are."""

    @property
    def differing(self) -> list[ReplayedPod]:
        return [one for one in self.pods if one.verdict not in EXPLAINED]

    def counts(self) -> dict[ReplayVerdict, int]:
        """Number of pods per verdict."""
        return count_verdicts(one.verdict for one in self.pods)

    def headline(self) -> str:
        found = agreement(self.counts(), "pod")
        if self.preempted:
            found += f", {counted(len(self.preempted), 'pod')} preempted"
        return found

    def shown_rows(self) -> Iterable[Mapping[str, Any]]:
        return (_row(one) for one in self.differing or self.pods)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line per pod."""
        return make_frame(_row(one) for one in self.pods)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the content of `-o json`. Nothing in it depends on how long the replay took."""
        return {
            "apiVersion": API_VERSION,
            "kind": "ReplayReport",
            "kubernetesVersion": self.release,
            "follow": Follow.OWN.value,
            "summary": {
                "pods": len(self.pods),
                **counts_tree(self.counts()),
                "preempted": len(self.preempted),
                "time": round(self.time_s, 6),
            },
            "pods": [_pod_tree(one) for one in self.pods],
            "totals": self.totals.to_list(),
            "useOverTime": [series.to_dict() for series in self.use],
            "preempted": [
                {"pod": victim.key, "node": victim.node_name, "for": preemptor.key}
                for victim, preemptor in self.preempted
            ],
        }


def count_verdicts(verdicts: Iterable[ReplayVerdict]) -> dict[ReplayVerdict, int]:
    """The number of each verdict."""
    found = dict.fromkeys(ReplayVerdict, 0)
    for verdict in verdicts:
        found[verdict] += 1
    return found


def agreement(counts: Mapping[ReplayVerdict, int], noun: str) -> str:
    """`81 of 82 decisions agree: 61 same node, 20 equal total; 1 to another node`."""
    agreeing = sum(counts[verdict] for verdict in AGREEING)
    text = f"{agreeing:,} of {counted(sum(counts.values()), noun)} agree"
    parts = [
        f"{counts[verdict]:,} {words}" for verdict, words in AGREEING.items() if counts[verdict]
    ]
    others = [f"{counts[one]:,} {words}" for one, words in REMAINING.items() if counts[one]]
    listed = f"{text}: {', '.join(parts)}" if parts else text
    return "; ".join((listed, *others))


def counts_tree(counts: Mapping[ReplayVerdict, int]) -> dict[str, int]:
    """The counts under their names in a document."""
    words = {verdict: verdict.title().replace(" ", "") for verdict in ReplayVerdict}
    return {name[0].lower() + name[1:]: counts[verdict] for verdict, name in words.items()}


def placement_tree(placement: PodPlacement | None) -> dict[str, Any] | None:
    """A placement as plain data."""
    if placement is None:
        return None
    return {"node": placement.node_name, "time": round(placement.time_s, 6)}


def _pod_tree(one: ReplayedPod) -> dict[str, Any]:
    return {
        "namespace": one.pod.namespace,
        "name": one.pod.name,
        "created": round(one.created_s, 6),
        "result": str(one.verdict),
        "recorded": placement_tree(one.recorded),
        "replayed": placement_tree(one.replayed),
        **({"lostWithNode": True} if one.is_lost else {}),
    }


def _row(one: ReplayedPod) -> dict[str, Any]:
    return {
        "pod": one.pod.key,
        "time": round(one.created_s, 6),
        "node": one.recorded.node_name if one.recorded else None,
        "here": one.replayed.node_name if one.replayed else None,
        "result": str(one.verdict),
    }
