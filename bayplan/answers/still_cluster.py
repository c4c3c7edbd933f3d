"""Still cluster: a fixed set of objects; a scheduler's writes are discarded."""

from __future__ import annotations

from ..cluster.objects import ObjectIndex
from ..framework.handle import NoClient


class StillCluster(ObjectIndex, NoClient):
    """A cluster for a scheduler that only answers queries: the lister has all objects, the client does
    nothing.

    What-if questions replace objects temporarily.
    """
