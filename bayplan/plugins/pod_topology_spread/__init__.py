"""PodTopologySpread: lay the pods that belong together evenly over zones, nodes or other domains."""

from .plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
