"""Victims: the pods to preempt on one node."""

from __future__ import annotations

import msgspec

from ..api.pod import Pod


class Victims(msgspec.Struct):
    """The pods to preempt on one node, the most important first."""

    node_name: str
    pods: list[Pod]
    pdb_violations: int

    @property
    def evicted(self) -> list[Pod]:
        """The pods that are not terminating already."""
        return [pod for pod in self.pods if not pod.is_terminating]
