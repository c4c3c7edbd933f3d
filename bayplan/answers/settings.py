"""Settings: the scheduler to ask: its configuration, plugins, feature gates and seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

from ..clock import Clock
from ..cluster.objects import ClusterObject
from ..config import SchedulerConfiguration, default_config
from ..scheduler import PluginSource
from ..scheduler.catalog import reads_whole_objects
from ..sim import Simulation
from ..sim.world import InputObject
from .cluster_view import ClusterView

OnProgress: TypeAlias = Callable[[int, int], None]
"""Progress callback: steps done and steps in total."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of `bayplan simulate` besides its manifests; the default scheduler without any."""

    config: SchedulerConfiguration | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    plugins: tuple[PluginSource, ...] = ()
    """Plugins, or Python files that define some."""
    seed: int | None = None

    @property
    def reads_whole_objects(self) -> bool:
        """Whether an extender or a plugin reads pods and nodes with all of their fields."""
        config = self.config or default_config(self.feature_gates)
        return reads_whole_objects(config, self.plugins)

    def with_unschedulable_limit(self, seconds: float) -> Settings:
        """The same, with pods that stay unschedulable for so long tried again without an event."""
        config = self.config or default_config(self.feature_gates)
        limited = msgspec.structs.replace(config, pod_max_in_unschedulable_pods_s=seconds)
        return replace(self, config=limited)

    def simulation(
        self,
        objects: Sequence[InputObject],
        place_of: Callable[[InputObject], str] | None = None,
        **more: Any,
    ) -> Simulation:
        """A simulation of `objects` with this scheduler; `more` are further arguments of
        `Simulation`."""
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
        """A read-only view of the cluster of `objects` for this scheduler."""
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
        """The same for the cluster at the start of a simulation of `objects`."""
        return ClusterView.from_manifests(
            objects,
            self.config,
            place_of=place_of,
            plugins=self.plugins,
            feature_gates=self.feature_gates,
        )


DEFAULT_SETTINGS = Settings()
