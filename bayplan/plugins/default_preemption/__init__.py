"""DefaultPreemption: preempt pods of lower priority to make room for a pod that fits nowhere."""

from .plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
