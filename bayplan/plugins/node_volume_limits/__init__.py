"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach."""

from .plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
