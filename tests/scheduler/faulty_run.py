"""A scheduler that continues after the fault of a plugin, as that of `bayplan run` does."""

from collections.abc import Iterable

from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.objects.object_index import ClusterObject
from bayplan.config.types import SchedulerConfiguration
from bayplan.scheduler import Attempt, FirstByName, Scheduler, build_scheduler
from tests.rig.scenarios import attempts_of


def run_on(
    config: SchedulerConfiguration, plugin_file: str, objects: Iterable[ClusterObject]
) -> tuple[list[Attempt], Scheduler, MemoryCluster]:
    """A minute of attempts with the plugin, its scheduler and its cluster."""
    cluster, clock = MemoryCluster(), ManualClock()
    scheduler = build_scheduler(
        config, cluster, clock=clock, ties=FirstByName(), plugins=[plugin_file]
    )
    cluster.watch(scheduler)
    for obj in objects:
        cluster.add(obj)
    attempts: list[Attempt] = []
    for _ in range(12):
        attempts += attempts_of(scheduler)
        clock.advance(5)
        scheduler.run_timers()
    return attempts, scheduler, cluster
