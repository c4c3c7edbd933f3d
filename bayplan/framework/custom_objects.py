"""CustomObjects: the objects of a custom resource that a plugin reads, by namespace and name."""

from __future__ import annotations

from ..api.custom import CustomObject
from .lister import Lister
from .lister_changes import Follower


class CustomObjects:
    """The objects of one custom resource, as the cluster has them now. `name` is `plural.version.group`."""

    def __init__(self, name: str, lister: Lister) -> None:
        self.name = name
        self._lister = lister
        self._follower = Follower(lister)
        self._version = 0

    def get(self, name: str, namespace: str = "") -> CustomObject | None:
        """One object, or None; a cluster-scoped one has no namespace."""
        found: CustomObject | None = self._lister.get(self.name, namespace, name)
        return found

    def list(self, namespace: str | None = None) -> list[CustomObject]:
        """All objects, in `namespace` when given."""
        return list(self._lister.list(self.name, namespace))

    @property
    def version(self) -> int:
        """Changes when an object of the resource does; a possible value of `Plugin.cluster_key`."""
        changes = self._follower.changes()
        if changes is None or any(key.kind == self.name for key in changes):
            self._version += 1
        return self._version
