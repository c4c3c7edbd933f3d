"""PrioritySort: pods of higher priority first, then those that have been waiting longer.

Mirrors pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from ..framework import QueueSortPlugin
from ..framework.interface import QueuedPod


class PrioritySort(QueueSortPlugin):
    name = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return (-queued.pod.priority, queued.timestamp)
