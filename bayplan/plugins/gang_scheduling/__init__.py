"""GangScheduling: the pods of a PodGroup with a gang policy are bound when enough of them have a node."""

from .plugin import GangScheduling

__all__ = ["GangScheduling"]
