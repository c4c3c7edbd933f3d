"""When a pod is tried, and when again.

Lives here: the scheduling queue and the nominator. May enter: `api`, `framework`.
Must not happen: judging whether a pod fits. Called by: `scheduler`.
"""

from .nominator import PodNominator
from .scheduling_queue import QueuedPodInfo, SchedulingQueue

__all__ = ["PodNominator", "QueuedPodInfo", "SchedulingQueue"]
