"""Autoscaler settings: which autoscaler is simulated, with its settings. Defaults are those of the autoscalers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import InputError

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
AUTOSCALERS = (KARPENTER, CLUSTER_AUTOSCALER)
LEAST_WASTE, PRICE, PRIORITY, RANDOM = "least-waste", "price", "priority", "random"
EXPANDERS = (LEAST_WASTE, PRICE, PRIORITY, RANDOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerOptions:
    """The settings of an autoscaler; times in seconds."""

    autoscaler: str = KARPENTER
    expander: str = LEAST_WASTE
    """How Cluster Autoscaler chooses between groups."""
    batch_idle_s: float = 1.0
    """Karpenter plans when no further pod came for so long ..."""
    batch_max_s: float = 10.0
    """... and at the latest so long after the first one."""
    scan_interval_s: float = 10.0
    """How often Cluster Autoscaler reads the cluster, and Karpenter searches nodes to remove."""
    seed: int = 0
    """Of what is drawn: groups by the expander random, and interruptions."""

    def __post_init__(self) -> None:
        _check("autoscaler", self.autoscaler, AUTOSCALERS)
        _check("expander", self.expander, EXPANDERS)
        for name in ("batch_idle_s", "batch_max_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name}: expected 0 or more; got {getattr(self, name)}")
        if not 0 < self.scan_interval_s < math.inf:
            raise InputError(f"scan_interval_s: expected more than 0; got {self.scan_interval_s}")

    @property
    def is_karpenter(self) -> bool:
        """Whether it is Karpenter."""
        return self.autoscaler == KARPENTER


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f'{name}: expected {" or ".join(known)}; got "{value}"')
