"""Autoscaler settings: which autoscaler is simulated, with its settings. Defaults are those of the autoscalers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..errors import InputError
from .cluster_autoscaler_flags import (
    DEFAULT_FLAGS,
    EXPANDERS,
    ClusterAutoscalerFlags,
    PriorityRules,
)

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
AUTOSCALERS = (KARPENTER, CLUSTER_AUTOSCALER)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerOptions:
    """The settings of an autoscaler; times in seconds."""

    autoscaler: str = KARPENTER
    expander: str | None = None
    """Expander of Cluster Autoscaler, in place of the one in `flags`; one, or several with commas."""
    batch_idle_s: float = 1.0
    """Karpenter plans when no further pod came for so long ..."""
    batch_max_s: float = 10.0
    """... and at the latest so long after the first one."""
    scan_interval_s: float | None = None
    """Interval in which Cluster Autoscaler reads the cluster, and Karpenter searches for nodes to remove; in place of
    the flag.
    """
    flags: ClusterAutoscalerFlags = DEFAULT_FLAGS
    """The flags of Cluster Autoscaler; the two above are among them afterwards."""
    priorities: PriorityRules | None = None
    """For the expander `priority`; None means the weights of pools."""
    seed: int = 0
    """Seed of the draws: groups by the expander random, and interruptions."""

    def __post_init__(self) -> None:
        _check("autoscaler", self.autoscaler, AUTOSCALERS)
        flags = self.flags
        if self.expander is not None:
            for one in self.expander.split(","):
                _check("expander", one, EXPANDERS)
            flags = replace(flags, expander=self.expander)
        for name in ("batch_idle_s", "batch_max_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name}: expected 0 or more; got {getattr(self, name)}")
        if self.scan_interval_s is not None:
            if not 0 < self.scan_interval_s < math.inf:
                raise InputError(
                    f"scan_interval_s: expected more than 0; got {self.scan_interval_s}"
                )
            flags = replace(flags, scan_interval=self.scan_interval_s)
        object.__setattr__(self, "flags", flags)

    @property
    def is_karpenter(self) -> bool:
        """Whether it is Karpenter."""
        return self.autoscaler == KARPENTER


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f'{name}: expected {" or ".join(known)}; got "{value}"')
