"""Still cluster: objects as they are at one moment; what a scheduler writes goes nowhere."""

from __future__ import annotations

from ..cluster.memory import ObjectIndex
from ..framework.handle import NoClient


class StillCluster(ObjectIndex, NoClient):
    """A cluster for a scheduler that is only asked: its lister sees everything, its client does nothing.

    Whoever asks what would be if puts other objects in, and takes them out again.
    """
