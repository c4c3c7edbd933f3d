"""Settlement: the result for the waiting pods of a cluster before a question.

Every question is about one moment, `now`: the cluster after the scheduler has tried all pods that
wait, as `bayplan simulate` does. `Stage.begin` is where that happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from ..api.pod import Pod
from ..api.pod_groups import GroupPreemptor
from ..cluster.memory.refusals import AdmissionRefusal
from ..releases.release import DEFAULT_RELEASE
from ..sim import PodResult
from ..sim.html_summary import ShownAnswer, as_release


class Settlement(Struct, frozen=True, kw_only=True, rename="camel"):
    """The pods that waited when the cluster was read, and those that were placed before the question."""

    waiting: int = 0
    placed: int = 0
    preempted: int = 0
    as_is: bool = False
    """Whether the question is about the cluster as read, without placing pods."""
    refused: list[AdmissionRefusal] = []
    """Pods and claims that a LimitRange or a ResourceQuota keeps out of the cluster."""
    remarks: list[str] = []
    """Notes on objects of the input that are not simulated as they are."""
    kubernetes_version: str = DEFAULT_RELEASE.patch
    """The kube-scheduler whose decisions these are, and those of the answer."""

    @property
    def notices(self) -> list[str]:
        """Remarks to print with the answer."""
        return [*(f"refused: {refusal}" for refusal in self.refused), *self.remarks]

    @property
    def text(self) -> str:
        """`after placing 21 of 25 waiting pods`, with the release unless it is the default one; empty without both."""
        return ", ".join(filter(None, (self._placed_text, as_release(self.kubernetes_version))))

    @property
    def _placed_text(self) -> str:
        if not self.waiting:
            return ""
        if self.as_is:
            return f"about the cluster as it was read, in which {_pods(self.waiting)} wait"
        if not self.placed:
            text = f"after trying {_pods(self.waiting, 'waiting')}: none fits"
        elif self.placed == self.waiting:
            text = f"after placing {_pods(self.placed, 'waiting')}"
        else:
            text = f"after placing {self.placed:,} of {_pods(self.waiting, 'waiting')}"
        return f"{text}, preempting {self.preempted:,}" if self.preempted else text


class SettledAnswer(ShownAnswer):
    """An answer to a question before which the waiting pods were placed."""

    __slots__ = ()

    settled: Settlement

    @property
    def release(self) -> str:
        """The kube-scheduler whose decisions the answer is made of."""
        return self.settled.kubernetes_version


NONE_WAITED = Settlement()
AS_READ = Settlement(as_is=True)


def _pods(number: int, which: str = "") -> str:
    return f"{number:,} {which} pod{'' if number == 1 else 's'}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class SettledPods:
    """The pods that waited when the cluster was read, by uid."""

    placed: Mapping[str, list[Pod]] = field(default_factory=dict)
    """The pods that got a node, each with those that were preempted for it."""
    pending: Mapping[str, str] = field(default_factory=dict)
    """The pods that did not, each with the reason."""

    @classmethod
    def of(
        cls, results: Iterable[PodResult], evictions: Iterable[tuple[Pod, Pod | GroupPreemptor]]
    ) -> SettledPods:
        """From the results of placing them, and the pods that were preempted with their preemptors."""
        placed: dict[str, list[Pod]] = {}
        pending: dict[str, str] = {}
        for result in results:
            if result.is_placed:
                placed[result.pod.uid] = []
            else:
                pending[result.pod.uid] = result.attempt.message
        for victim, preemptor in evictions:
            if preemptor.uid in placed:
                placed[preemptor.uid].append(victim)
        return cls(placed, pending)
