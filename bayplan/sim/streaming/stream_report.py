"""Report of a stream: sums, quantiles and use over time; the pods are in the rows that were passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...api.own_documents import API_VERSION
from ...cluster.memory import AdmissionRefusal
from ..pending_pods import PendingGroup
from ..report_data import time_entry
from ..totals import TotalsChange
from .running_use import SampledSeries
from .sketch import QuantileSketch


@dataclass(slots=True)
class StreamReport:
    """The result of a simulation whose pods were streamed."""

    counts: Mapping[str, int]
    """Pods that ended or are there at the end, and of these: placed, finished; and preempted ones, which are not among
    them."""
    running: int
    """Number of pods on a node at the start."""
    nodes: int
    """Number of nodes, those that were removed included."""
    pending_groups: list[PendingGroup]
    totals: TotalsChange
    use: list[SampledSeries]
    waits: QuantileSketch
    """Seconds from creation until a pod had a node."""
    slowdowns: QuantileSketch
    """Time from creation to end divided by the time on the node."""
    time_s: float
    seconds: float
    """Duration of the run on the wall clock."""
    refused: list[AdmissionRefusal] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int:
        return self.counts.get("pods", 0)

    @property
    def placed(self) -> int:
        return self.counts.get("placed", 0)

    @property
    def is_complete(self) -> bool:
        """Whether every pod was placed, and none refused."""
        return not self.refused and self.placed == self.pods

    @property
    def notices(self) -> list[str]:
        """What is to be said beside the result."""
        return [*(f"refused: {refusal}" for refusal in self.refused), *self.remarks]

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain data, as `bayplan trace simulate -o json` prints it."""
        return {
            "apiVersion": API_VERSION,
            "kind": "StreamReport",
            "summary": {
                "pods": self.pods,
                "placed": self.placed,
                "pending": self.pods - self.placed,
                "preempted": self.counts.get("preempted", 0),
                "refused": sum(refusal.count for refusal in self.refused),
                "running": self.running,
                "nodes": self.nodes,
                "finished": self.counts.get("finished", 0),
                "time": time_entry(self.time_s),
            },
            "pendingGroups": [group.to_dict() for group in self.pending_groups],
            "totals": self.totals.to_list(),
            "useOverTime": [series.to_dict() for series in self.use],
            "waits": self.waits.to_dict(),
            "slowdowns": self.slowdowns.to_dict(),
            "refused": [refusal.to_dict() for refusal in self.refused],
            **({"remarks": self.remarks} if self.remarks else {}),
        }

    def headline(self) -> str:
        """`12 of 14 pods placed, 2 pending, on 7 nodes`."""
        waiting = self.pods - self.placed
        pending = f", {waiting:,} pending" if waiting else ""
        return f"{self.placed:,} of {self.pods:,} pods placed{pending}, on {self.nodes:,} nodes"
