"""Judging: what the filters of a scheduler say about a pod, without placing it."""

from __future__ import annotations

from ..api.pod import Pod
from ..framework import CycleState
from ..scheduler import Scheduler
from ..scheduler.find_nodes import NodeFinder, Search


def judge(scheduler: Scheduler, pod: Pod) -> Search:
    """PreFilter and Filter on every node: `rows` has those that take the pod, `diagnosis` why the others do not."""
    scheduler.cache.snapshot.update()
    finder = NodeFinder(scheduler.cache.table, scheduler.cache.snapshot)
    profile = scheduler.profiles[pod.scheduler_name]
    return finder.find(profile, CycleState(), pod, everything=True)
