"""Search state: the progress of a search for the cheapest nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .exchanges import CLOSE
from .fleet_check import FleetVerdict
from .time_budget import TimeBudget


@dataclass(slots=True)
class SearchState:
    """Progress of a search."""

    budget: TimeBudget
    best: FleetVerdict | None = None
    price: float = np.inf
    bound: float = 0.0
    first_fit_price: float | None = None
    first_plan_s: float | None = None
    failed: FleetVerdict | None = None
    """The fleet of a search that found no plan."""
    is_interrupted: bool = False
    is_out_of_time: bool = False

    @property
    def is_optimal(self) -> bool:
        """Whether no plan can be cheaper."""
        return self.price <= self.bound * (1 + CLOSE)

    @property
    def elapsed_s(self) -> float:
        """Processor time so far."""
        return self.budget.spent_s()


OnSearch = Callable[[SearchState], None]
