"""Simulation: a whole run of the scheduler on a cluster in memory, with a manual clock.

Contents: reading manifests and timelines, the run itself (`simulation.py`, read it first), the cluster around it
(`world.py`), the trace and the report of the results. Imports: scheduler, config, cluster, api. Never: a decision
about placement, or printing. Callers: cli, web, and users' scripts.
"""

from ..manifests.loader import Manifests, read_manifests
from ..manifests.overlay import lay_over, manifests_of
from ..manifests.timeline import Timeline, TimelineEvent
from .group_outcomes import GroupOutcome
from .outcomes import NodeUse, PodResult
from .report import SimulationReport
from .simulation import Simulation
from .trace import TraceEntry

__all__ = [
    "GroupOutcome",
    "Manifests",
    "NodeUse",
    "PodResult",
    "Simulation",
    "SimulationReport",
    "Timeline",
    "TimelineEvent",
    "TraceEntry",
    "lay_over",
    "manifests_of",
    "read_manifests",
]
