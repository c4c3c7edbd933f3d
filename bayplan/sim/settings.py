"""Settings: a scheduler's configuration, plugins, feature gates and seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec

from ..api.custom import reading_custom
from ..api.pod_groups import PodGroup
from ..api.wire.sourced import keeping_sources
from ..config.defaults import default_config
from ..config.types import SchedulerConfiguration
from ..manifests.timeline import InputObject
from ..releases.feature_gates import FeatureGates
from ..releases.release import Release
from ..scheduler import PluginSource
from ..scheduler.catalog import InputNeeds, input_needs
from .simulation import Simulation

GANG_SCHEDULING = "GangScheduling"

OnProgress: TypeAlias = Callable[[int, int], None]
"""Progress callback: steps done and steps in total."""


class Settings(msgspec.Struct, frozen=True):
    """The options of `bayplan simulate` besides its manifests; the default scheduler without any."""

    config: SchedulerConfiguration | None = None
    feature_gates: Mapping[str, bool] = msgspec.field(default_factory=dict)
    plugins: tuple[PluginSource, ...] = ()
    """Plugins, or Python files that define some."""
    seed: int | None = None

    @property
    def effective_config(self) -> SchedulerConfiguration:
        """The configuration, or the default one with these feature gates."""
        return self.config or default_config(self.feature_gates)

    @property
    def release(self) -> Release:
        """The facts of the release that is reproduced."""
        return FeatureGates.of(self.feature_gates).release

    @property
    def needs(self) -> InputNeeds:
        """Fields and kinds that extenders and plugins read beyond those of placement rules."""
        return input_needs(self.effective_config, self.plugins)

    def with_unschedulable_limit(self, seconds: float) -> Settings:
        """The same settings, with a time after which unschedulable pods are tried again without an event."""
        limited = msgspec.structs.replace(
            self.effective_config, pod_max_in_unschedulable_pods_s=seconds
        )
        return msgspec.structs.replace(self, config=limited)

    def scheduler(self) -> dict[str, Any]:
        """These settings as arguments of `Simulation`."""
        return {
            "config": self.config,
            "seed": self.seed,
            "feature_gates": self.feature_gates,
            "plugins": self.plugins,
        }

    def simulation(
        self,
        objects: Sequence[InputObject],
        place_of: Callable[[InputObject], str] | None = None,
        **more: Any,
    ) -> Simulation:
        """A simulation of `objects` with this scheduler; `more` are further arguments of
        `Simulation`."""
        return Simulation(objects, place_of=place_of, **self.scheduler(), **more)


@contextmanager
def reading_for(*settings: Settings) -> Iterator[None]:
    """Decode objects with all the fields that these schedulers read, within the block."""
    needs = [one.needs for one in settings]
    custom = {resource.name: resource for one in needs for resource in one.custom_resources}
    with (
        keeping_sources(any(one.whole_objects for one in needs)),
        reading_custom(custom.values()),
    ):
        yield


DEFAULT_SETTINGS = Settings()


def ignored_groups(objects: Iterable[InputObject], settings: Settings) -> str:
    """The parts of PodGroups among `objects` that have no effect with these settings, in words; empty if there are
    none.
    """
    groups = [obj for obj in objects if isinstance(obj, PodGroup)]
    if not groups:
        return ""
    gates = FeatureGates.of(settings.feature_gates)
    profiles = settings.effective_config.profiles
    has_plugin = any(GANG_SCHEDULING in p.plugins.names() for p in profiles)
    needed = ["GenericWorkload"]
    if any(group.min_count for group in groups):
        needed.append(GANG_SCHEDULING)
    if any(group.topology_keys for group in groups):
        needed.append("TopologyAwareWorkloadScheduling")
    missing = [gate for gate in needed if not gates.enabled(gate)]
    if not missing or (has_plugin and "TopologyAwareWorkloadScheduling" not in missing):
        return ""
    what = {
        "GenericWorkload": "PodGroup objects are",
        GANG_SCHEDULING: "gang policies of PodGroup objects are",
        "TopologyAwareWorkloadScheduling": "scheduling constraints of PodGroup objects are",
    }[missing[0]]
    return f"{what} ignored {gates.lack(*missing)}"
