"""Debugger: the contents of cache and queue, and where they differ from the cluster; `bayplan run` logs it on SIGUSR2.

Mirrors pkg/scheduler/backend/cache/debugger. On the scheduler's thread only.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..api.pod import FINISHED_PHASES, Pod
from .cycle import Scheduler


def dump(scheduler: Scheduler) -> Iterator[str]:
    """A line for each node with its pods, and one for each pod that waits."""
    table = scheduler.cache.table
    for name, row in sorted(table.row_of.items()):
        state = "" if table.nodes[row] is not None else ", deleted"
        pods = sorted(pod.key for pod in table.pods[row].values())
        requested, allocatable = table.requested.at(row), table.allocatable.at(row)
        yield (
            f"node {name}{state}: requested {requested} of {allocatable}, "
            f"{len(pods)} pods: {', '.join(pods) or 'none'}"
        )
    for pod in _pending(scheduler):
        info = scheduler.queue.get(pod)
        nominated = scheduler.queue.nominator.node_of(pod)
        where = "" if not nominated else f", nominated to {nominated}"
        if info is None:
            yield f"pod {pod.key}: in flight or assumed{where}"
            continue
        plugins = ", ".join(sorted(info.unschedulable_plugins)) or "no plugin"
        yield f"pod {pod.key}: {info.attempts} attempts, refused by {plugins}{where}"


def differences(scheduler: Scheduler) -> Iterator[str]:
    """Differences between cluster and cache, in both directions; nothing if all is well."""
    cluster, table = scheduler.cluster, scheduler.cache.table
    nodes = {node.name for node in cluster.list("Node")}
    known = {name for name, row in table.row_of.items() if table.nodes[row] is not None}
    for name in sorted(nodes - known):
        yield f"node {name} is missing in the cache"
    for name in sorted(known - nodes):
        yield f"node {name} is in the cache and not in the cluster"
    placed = {
        pod.uid: pod
        for pod in cluster.list("Pod")
        if pod.node_name and pod.status.phase not in FINISHED_PHASES
    }
    held = {pod.uid: pod for pods in table.pods for pod in (pods or {}).values()}
    for uid in sorted(placed.keys() - held.keys()):
        yield f"pod {placed[uid].key} is missing in the cache"
    for uid in sorted(held.keys() - placed.keys()):
        if not scheduler.cache.is_assumed(held[uid]):
            yield f"pod {held[uid].key} is in the cache and not in the cluster"
    for pod in _pending(scheduler):
        is_known = scheduler.queue.get(pod) is not None or scheduler.cache.is_assumed(pod)
        if not is_known and pod.uid not in scheduler.queue.in_flight:
            yield f"pod {pod.key} is missing in the queue"


def _pending(scheduler: Scheduler) -> list[Pod]:
    """The pods of our profiles without a node."""
    return [
        pod
        for pod in scheduler.cluster.list("Pod")
        if not pod.node_name
        and pod.status.phase not in FINISHED_PHASES
        and pod.scheduler_name in scheduler.profiles
    ]
