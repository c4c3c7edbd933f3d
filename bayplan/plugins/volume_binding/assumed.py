"""AssumedObjects: volumes and claims with the decisions that are not written yet.

Mirrors pkg/scheduler/framework/plugins/volumebinding/{passive_assume_cache,assume_cache}.go. As soon as the lister
shows another version of an object, the assumption about the old version is dropped.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from ...api.meta import KubeObject
from ...errors import BayplanError
from ...framework.lister import Lister

Object = TypeVar("Object", bound=KubeObject)
Key = tuple[str, str]
"""Namespace and name."""


class OutOfSyncError(BayplanError):
    """The object was changed or deleted since it was read."""


class AssumedObjects(Generic[Object]):
    """The objects of one kind, some of them as assumed.

    `touched` has the keys of objects that were assumed or restored since a reader last emptied it.
    """

    def __init__(self, kind: type[Object], lister: Lister) -> None:
        self._kind = kind.kind
        self._lister = lister
        self._assumed: dict[Key, Object] = {}
        self.touched: set[Key] = set()

    def __len__(self) -> int:
        """Number of assumed objects."""
        return len(self._assumed)

    def listed(self, namespace: str, name: str) -> Object | None:
        """The object as the cluster has it."""
        found: Object | None = self._lister.get(self._kind, namespace, name)
        return found

    def get(self, namespace: str, name: str) -> Object | None:
        """The object as assumed, else as the cluster has it."""
        return self.seen(self.listed(namespace, name))

    def seen(self, listed: Object | None) -> Object | None:
        """The assumed version of an object of the lister, or the object itself."""
        if listed is None or not self._assumed:
            return listed
        assumed = self._assumed.get(_key(listed))
        if assumed is None or assumed.resource_version != listed.resource_version:
            return listed
        return assumed

    def assume(self, obj: Object) -> None:
        """Assume `obj` in place of the object of its name, which must not have changed since it was read."""
        listed = self.listed(obj.namespace, obj.name)
        if listed is None:
            raise OutOfSyncError(f'{self.plural} "{obj.key}" not found')
        if listed.resource_version != obj.resource_version:
            stored, assumed = listed.resource_version, obj.resource_version
            raise OutOfSyncError(
                f'"{obj.key}" is out of sync (stored: {stored}, assume: {assumed})'
            )
        self._assumed[_key(obj)] = obj
        self.touched.add(_key(obj))

    def restore(self, obj: Object) -> None:
        """Drop the assumption, unless another version than `obj` is assumed. A written `obj` has another version, which
        is assumed until the lister shows it.
        """
        assumed = self._assumed.get(_key(obj))
        if assumed is not None and assumed.resource_version == obj.resource_version:
            self._assumed.pop(_key(obj), None)
            self.touched.add(_key(obj))
        else:
            self.expire(obj.namespace, obj.name)

    def expire(self, namespace: str, name: str) -> None:
        """Drop the assumption about another version of an object that was added, changed or deleted."""
        assumed = self._assumed.get((namespace, name))
        if assumed is not None:
            listed = self.listed(namespace, name)
            if listed is None or listed.resource_version != assumed.resource_version:
                self._assumed.pop((namespace, name), None)
                self.touched.add((namespace, name))

    def expire_all(self) -> None:
        """Drop outdated assumptions, as any object may have changed."""
        for namespace, name in list(self._assumed):
            self.expire(namespace, name)

    @property
    def plural(self) -> str:
        """Plural name of the kind in the API."""
        return f"{self._kind.lower()}s"


def _key(obj: KubeObject) -> Key:
    return obj.namespace, obj.name
