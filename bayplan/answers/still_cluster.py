"""Still cluster: a fixed set of objects; a scheduler's writes are discarded."""

from __future__ import annotations

from ..cluster.objects import ObjectIndex
from ..framework.handle import NoClient


class StillCluster(ObjectIndex, NoClient):
    """A cluster for a scheduler that only answers queries: the lister has all objects, the client does
    nothing.

    What-if questions replace objects temporarily.
    """

    @classmethod
    def of(cls, cluster: ObjectIndex) -> StillCluster:
        """A cluster with the objects of `cluster`, whose watchers learn nothing of temporary replacements."""
        still = cls()
        still._objects, still._log = cluster._objects, cluster._log
        return still
