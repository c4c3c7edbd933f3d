"""Queue: when a pod is tried, and when it is retried.

Lives here: the scheduling queue with its four parts (active, backoff, unschedulable, in flight) and
the nominator. May enter: `api`, `framework`. Must not happen: judging whether a pod fits, waiting,
reading the machine's clock. Called by: `scheduler`.
"""

from .backoff import QueueSettings
from .group_queue import GroupQueue, QueuedGroupInfo
from .nominator import PodNominator
from .queued_pod import QueuedPodInfo
from .queueing_hints import Registration
from .scheduling_queue import SchedulingQueue

__all__ = [
    "GroupQueue",
    "PodNominator",
    "QueueSettings",
    "QueuedGroupInfo",
    "QueuedPodInfo",
    "Registration",
    "SchedulingQueue",
]
