"""Autoscaler settings: which autoscaler is simulated, with its settings. Defaults are those of the autoscalers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..choices import (
    AUTOSCALERS,
    CLUSTER_AUTOSCALER,
    EXPANDERS,
    KARPENTER,
    LEAST_WASTE,
    expect_choice,
)
from ..errors import InputError
from .cluster_autoscaler_flags import (
    DEFAULT_FLAGS,
    ClusterAutoscalerFlags,
    PriorityRules,
    read_flags,
)

ONLY_OF = {
    KARPENTER: ("batch_idle_s", "batch_max_s"),
    CLUSTER_AUTOSCALER: ("expander", "autoscaler_config", "autoscaler_flags"),
}
"""Options that one of the autoscalers has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerOptions:
    """The settings of an autoscaler; times in seconds."""

    autoscaler: str = KARPENTER
    expander: str | None = None
    """Expander of Cluster Autoscaler, in place of the one in `flags`; one, or several with commas."""
    batch_idle_s: float = 1.0
    """Karpenter plans when no further pod came for this time ..."""
    batch_max_s: float = 10.0
    """... and at the latest this time after the first pod."""
    scan_interval_s: float | None = None
    """Interval in which Cluster Autoscaler reads the cluster, and Karpenter searches for nodes to remove; in place of
    the flag.
    """
    flags: ClusterAutoscalerFlags = DEFAULT_FLAGS
    """The flags of Cluster Autoscaler; the two above are among them afterwards."""
    priorities: PriorityRules | None = None
    """For the expander `priority`; None if the weights of pools decide."""
    seed: int = 0
    """Seed of the draws: groups by the expander random, and interruptions."""

    def __post_init__(self) -> None:
        expect_choice("autoscaler", self.autoscaler, AUTOSCALERS)
        flags = self.flags
        if self.expander is not None:
            for one in self.expander.split(","):
                expect_choice("expander", one, EXPANDERS)
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


def read_autoscaler(
    given: Mapping[str, Any], has_pools: bool, seed: int | None, spell: Callable[[str], str]
) -> tuple[AutoscalerOptions | None, Sequence[str]]:
    """The autoscaler of a command line or a call, None without pools, and notes on flags that are not modelled.

    `given` has the fields of `AutoscalerOptions` that are chosen, with `autoscaler_config`, the manifests of Cluster
    Autoscaler, and `autoscaler_flags`; None or an empty value is not given. Raises InputError for those that exclude
    each other. `spell` is how the caller writes the name of an option.
    """
    given = {name: value for name, value in given.items() if value not in (None, (), [])}
    if not has_pools:
        for name in given:
            raise InputError(f"{spell(name)}: expected {spell('pools')} with it; got none")
        return None, ()
    autoscaler = given.get("autoscaler", KARPENTER)
    expect_choice(spell("autoscaler"), autoscaler, AUTOSCALERS)
    for one in given.get("expander", LEAST_WASTE).split(","):
        expect_choice(spell("expander"), one, EXPANDERS)
    for owner, names in ONLY_OF.items():
        for name in names:
            if name in given and owner != autoscaler:
                raise InputError(f"{spell(name)}: expected {spell('autoscaler')} {owner} with it")
    reading = read_flags(given.pop("autoscaler_config", ()), given.pop("autoscaler_flags", ()))
    given.update(flags=reading.flags, priorities=reading.priorities, seed=seed or 0)
    return AutoscalerOptions(**given), reading.notes
