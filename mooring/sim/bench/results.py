"""Results: what was measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class PodRun:
    """Pods that were scheduled, how fast, and what memory they took."""

    workload: str
    nodes: int
    pods: int
    placed: int
    rounds: int
    """Attempts, those of other pods included."""
    seconds: float
    pods_per_s: float
    us_per_pod: float
    p50_us: float
    """Half of the rounds took at most so long."""
    p99_us: float
    mib_per_10k_pods: float
    """By how much the process grew, for ten thousand pods."""
    peak_mib: float

    def as_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class EventRun:
    """What one kind of event costs, on average, while pods wait."""

    workload: str
    event: str
    nodes: int
    waiting: int
    events: int
    us_per_event: float
    moved_per_event: float

    def as_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return asdict(self)


Run: TypeAlias = PodRun | EventRun
