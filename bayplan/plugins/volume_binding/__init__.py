"""VolumeBinding: the claims of the pod must have, or find, volumes that the node can reach."""

from .plugin import VolumeBinding

__all__ = ["VolumeBinding"]
