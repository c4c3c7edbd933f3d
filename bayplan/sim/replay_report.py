"""Replay report: recorded decisions compared with ours, in the states that our own decisions lead to."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from ..api.own_documents import API_VERSION
from ..api.pod import Pod
from ..api.pod_groups import GroupPreemptor
from ..choices import Follow
from ..errors import counted
from .html_summary import ShownAnswer
from .totals import TotalsChange
from .use_over_time import UseSeries


class ReplayVerdict(StrEnum):
    """Comparison of two decisions about a pod."""

    SAME = "same"
    EQUAL = "equal"
    """Another node, whose total was equal at that moment."""
    SAMPLED = "sampled"
    """A node with a lower total, in a cluster so large that kube-scheduler compares only part of the nodes."""
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


class ComparedPod:
    """A pod that needed a node: its recorded placement and ours."""

    __slots__ = ()
    pod: Pod
    created_s: float
    at_s: float
    """The time of the pod in tables."""
    recorded: PodPlacement | None
    replayed: PodPlacement | None
    verdict: ReplayVerdict

    def row(self) -> dict[str, Any]:
        """The pod as a row of a table."""
        return {
            "pod": self.pod.key,
            "time": round(self.at_s, 6),
            "node": self.recorded.node_name if self.recorded else None,
            "here": self.replayed.node_name if self.replayed else None,
            "result": str(self.verdict),
        }

    def to_dict(self) -> dict[str, Any]:
        """The pod as plain data."""
        return {
            "namespace": self.pod.namespace,
            "name": self.pod.name,
            "created": round(self.created_s, 6),
            "result": str(self.verdict),
            "recorded": _placement(self.recorded),
            "replayed": _placement(self.replayed),
        }


class ReplayedPod(ComparedPod, msgspec.Struct):
    """One pod, in the states that our own decisions leave."""

    pod: Pod
    created_s: float
    recorded: PodPlacement | None = None
    replayed: PodPlacement | None = None
    is_equal: bool = False
    """Whether the recorded node had the same total when ours was chosen."""
    is_lost: bool = False
    """Whether it was deleted with a node that it was not on in the recording."""

    @property
    def at_s(self) -> float:  # type: ignore[override]  # computed here
        return self.created_s

    @property
    def verdict(self) -> ReplayVerdict:  # type: ignore[override]  # computed here
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

    def to_dict(self) -> dict[str, Any]:
        lost = {"lostWithNode": True} if self.is_lost else {}
        return {**ComparedPod.to_dict(self), **lost}


Compared = TypeVar("Compared", bound=ComparedPod)


class ReplayAnswer(ShownAnswer, Generic[Compared]):
    """Recorded decisions compared with ours."""

    __slots__ = ()
    noun: ClassVar[str]
    follow: ClassVar[Follow]
    time_s: float

    @property
    @abstractmethod
    def compared(self) -> list[Compared]:
        """All compared pods."""

    @property
    def differing(self) -> list[Compared]:
        """The pods whose decisions differ although two schedulers with the same rules would agree."""
        return [one for one in self.compared if one.verdict not in EXPLAINED]

    def counts(self) -> dict[ReplayVerdict, int]:
        """The number of each verdict."""
        found = Counter(one.verdict for one in self.compared)
        return {verdict: found[verdict] for verdict in ReplayVerdict}

    def headline(self) -> str:
        """`81 of 82 decisions agree: 61 same node, 20 equal total; 1 to another node`."""
        counts = self.counts()
        agreeing = sum(counts[verdict] for verdict in AGREEING)
        text = f"{agreeing:,} of {counted(len(self.compared), self.noun)} agree"
        parts, others = (
            [f"{counts[one]:,} {words}" for one, words in verdicts.items() if counts[one]]
            for verdicts in (AGREEING, REMAINING)
        )
        listed = f"{text}: {', '.join(parts)}" if parts else text
        return "; ".join((listed, *others))

    def shown_rows(self) -> Iterable[Mapping[str, Any]]:
        return (one.row() for one in self.differing or self.compared)

    def frame_rows(self) -> Iterable[Mapping[str, Any]]:
        return (one.row() for one in self.compared)

    def document(self, first: Mapping[str, int], last: Mapping[str, int]) -> dict[str, Any]:
        """The content of `-o json`. Nothing in it depends on how long the replay took."""
        words = {verdict.title().replace(" ", ""): n for verdict, n in self.counts().items()}
        counts = {name[0].lower() + name[1:]: number for name, number in words.items()}
        return {
            "apiVersion": API_VERSION,
            "kind": "ReplayReport",
            "kubernetesVersion": self.release,
            "follow": self.follow.value,
            "summary": {**first, **counts, **last, "time": round(self.time_s, 6)},
            "pods": [one.to_dict() for one in self.compared],
        }


class ReplayReport(ReplayAnswer[ReplayedPod], msgspec.Struct):
    """All pods that needed a node, in order of creation."""

    noun: ClassVar[str] = "pod"
    follow: ClassVar[Follow] = Follow.OWN
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
    def compared(self) -> list[ReplayedPod]:
        return self.pods

    def headline(self) -> str:
        found = ReplayAnswer.headline(self)
        if self.preempted:
            found += f", {counted(len(self.preempted), 'pod')} preempted"
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the content of `-o json`."""
        return {
            **self.document({"pods": len(self.pods)}, {"preempted": len(self.preempted)}),
            "totals": self.totals.to_list(),
            "useOverTime": [series.to_dict() for series in self.use],
            "preempted": [
                {"pod": victim.key, "node": victim.node_name, "for": preemptor.key}
                for victim, preemptor in self.preempted
            ],
        }


def _placement(placement: PodPlacement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    return {"node": placement.node_name, "time": round(placement.time_s, 6)}
