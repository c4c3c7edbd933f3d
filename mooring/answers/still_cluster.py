"""Still cluster: objects as they are at one moment; what a scheduler writes goes nowhere."""

from __future__ import annotations

from typing import TypeVar

from ..api.meta import KubeObject
from ..api.pod import Pod, PodCondition
from ..cluster.memory import ObjectIndex
from ..framework import PodEvent

Object = TypeVar("Object", bound=KubeObject)


class StillCluster(ObjectIndex):
    """A cluster for a scheduler that is only asked: its lister sees everything, its client does nothing.

    Whoever asks what would be if puts other objects in, and takes them out again.
    """

    def bind(self, pod: Pod, node_name: str) -> None:
        """Nothing is bound."""

    def evict(self, victim: Pod, preemptor: Pod) -> None:
        """Nobody is pushed out."""

    def clear_nomination(self, pod: Pod) -> None:
        """Nominations stay."""

    def patch_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """No status is written."""

    def record_event(self, event: PodEvent) -> None:
        """Nobody is told."""

    def update(self, obj: Object) -> Object:
        """Not written."""
        return obj

    def update_status(self, obj: Object) -> Object:
        """Not written."""
        return obj

    def create(self, obj: Object) -> Object:
        """Not written."""
        return obj

    def delete(self, obj: KubeObject) -> None:
        """Everything stays."""
