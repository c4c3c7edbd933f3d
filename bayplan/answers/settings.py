"""Settings: the scheduler that a question is asked of: its configuration, plugins, gates and lots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..clock import Clock
from ..cluster.memory import ClusterObject
from ..config import SchedulerConfiguration
from ..scheduler import PluginSource
from ..sim import Simulation
from ..sim.world import InputObject
from .cluster_view import ClusterView

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with what is done and what there is to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What `bayplan simulate` takes beside its manifests; without any, the scheduler as it comes."""

    config: SchedulerConfiguration | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    plugins: tuple[PluginSource, ...] = ()
    """Plugins, or Python files with some."""
    seed: int | None = None

    def simulation(
        self,
        objects: Sequence[InputObject],
        place_of: Callable[[InputObject], str] | None = None,
        **more: Any,
    ) -> Simulation:
        """A simulation of `objects` with this scheduler; `more` is what else `Simulation` takes."""
        return Simulation(
            objects,
            self.config,
            seed=self.seed,
            feature_gates=self.feature_gates,
            plugins=self.plugins,
            place_of=place_of,
            **more,
        )

    def view(self, objects: Iterable[ClusterObject], clock: Clock | None = None) -> ClusterView:
        """The cluster of `objects` as this scheduler sees it, for whoever only asks."""
        return ClusterView(
            objects,
            self.config,
            plugins=self.plugins,
            feature_gates=self.feature_gates,
            clock=clock,
        )

    def view_of_manifests(
        self,
        objects: Sequence[InputObject],
        place_of: Callable[[InputObject], str] | None = None,
    ) -> ClusterView:
        """The same for the cluster that a simulation of `objects` begins with."""
        return ClusterView.from_manifests(
            objects,
            self.config,
            place_of=place_of,
            plugins=self.plugins,
            feature_gates=self.feature_gates,
        )


DEFAULT_SETTINGS = Settings()
