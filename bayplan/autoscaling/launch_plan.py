"""Launch plan: what an autoscaler decides to launch, and for which pods."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..api.pod import Pod
from .launch_options import LaunchOption


@dataclass(slots=True)
class LaunchPlan:
    """New nodes, and the places of pods on nodes that are there."""

    launches: list[tuple[LaunchOption, list[Pod]]] = field(default_factory=list)
    """The options, each with the pods that it is for."""
    existing: dict[str, str] = field(default_factory=dict)
    """The nodes that exist or boot on which pods fit, by uid of the pod."""
    left: list[Pod] = field(default_factory=list)
    """Pods without a place: limits and maxima do not allow one, or no type holds them beside other pods."""

    @property
    def price(self) -> float:
        """Per hour, of what is to be launched."""
        return sum(option.price for option, _ in self.launches)
