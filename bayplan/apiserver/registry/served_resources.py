"""Served resources: the resources that are served: built-in ones, and those of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .resource_table import RESOURCES, ApiResource, version_rank


class ResourceCatalog:
    """All served resources. Definitions add and remove some; `revision` changes with each."""

    def __init__(self, serves: Callable[[ApiResource], bool] = lambda resource: True) -> None:
        self._built_in = tuple(resource for resource in RESOURCES if serves(resource))
        self._custom: dict[str, Sequence[ApiResource]] = {}
        self.revision = 0
        self._index()

    def set_custom(self, storage: str, resources: Sequence[ApiResource]) -> None:
        """Serve these versions of a custom resource; none: it is gone."""
        if resources:
            self._custom[storage] = resources
        elif self._custom.pop(storage, None) is None:
            return
        self.revision += 1
        self._index()

    def _index(self) -> None:
        custom = [resource for versions in self._custom.values() for resource in versions]
        custom.sort(key=lambda resource: version_rank(resource.version))
        self.resources: tuple[ApiResource, ...] = (*self._built_in, *custom)
        """All of them, the preferred version of a group first."""
        self._by_path = {(r.group, r.version, r.plural): r for r in self.resources}
        self._by_head = {(r.api_version, r.kind): r for r in self.resources}
        self._by_storage = {r.name: r for r in reversed(self.resources) if not r.stored_as}
        self._kinds = {(r.group, r.kind) for r in self.resources}

    def find(self, group: str, version: str, plural: str) -> ApiResource | None:
        """The resource at a path."""
        return self._by_path.get((group, version, plural))

    def of_head(self, api_version: str, kind: str) -> ApiResource | None:
        """The resource of a manifest."""
        return self._by_head.get((api_version, kind))

    def at(self, storage: str) -> ApiResource | None:
        """The resource whose objects are stored under that name."""
        return self._by_storage.get(storage)

    def has_kind(self, group: str, kind: str) -> bool:
        """Whether objects of the kind are served, in any version."""
        return (group, kind) in self._kinds
