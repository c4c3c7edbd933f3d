"""PrioritySort: pods of higher priority first, then those that have been waiting longer.

Mirrors pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from ..framework import QueuedPod, QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    name = "PrioritySort"

    def less(self, first: QueuedPod, second: QueuedPod) -> bool:
        return self.sort_key(first) < self.sort_key(second)

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return (-queued.pod.priority, queued.timestamp)
