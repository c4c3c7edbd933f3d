"""Store: objects as JSON trees, with resource versions, a log of changes, and lists in pages.

As an API server, it keeps the log for a while only: a watch or the rest of a list from before that is expired.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

Tree = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
FINISHED = ("Succeeded", "Failed")
NEW: Tree = {}

_encode = msgspec.json.Encoder().encode


class ExpiredVersionError(Exception):
    """The version is older than the log."""


class StoredObject(NamedTuple):
    """An object and its JSON."""

    tree: Tree
    data: bytes


class LoggedChange(NamedTuple):
    """A change of an object: its tree before, {} for none, and after it, or as it was deleted."""

    version: int
    type: str
    before: Tree
    stored: StoredObject

    def line(self, leaves_out_finished: bool) -> bytes:
        """The line of a watch; empty if the selection does not have the object."""
        kind = self.type
        if leaves_out_finished:
            was = bool(self.before) and not is_finished(self.before)
            stays = kind != DELETED and not is_finished(self.stored.tree)
            if not was and not stays:
                return b""
            kind = MODIFIED if was and stays else ADDED if stays else DELETED
        data = self.stored.data
        if kind == DELETED and self.type != DELETED:
            data = self._as_it_left()
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), data)

    def _as_it_left(self) -> bytes:
        """The last state that the selection had, with the version of the change."""
        metadata = {**self.before["metadata"], "resourceVersion": str(self.version)}
        return _encode({**self.before, "metadata": metadata})


class Page(NamedTuple):
    """Part of a list; `token` is for the rest, "" for none."""

    version: int
    items: list[bytes]
    token: str


class VersionedStore:
    """All objects, by the plural of their kind."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, dict[Key, StoredObject]] = {}
        self.on_change: list[Callable[[str, LoggedChange], None]] = []
        self._logs: dict[str, list[LoggedChange]] = {}
        self._oldest = self.version
        self._rests: dict[str, tuple[int, list[bytes]]] = {}
        self._uids = self._tokens = 0

    def get(self, plural: str, namespace: str, name: str) -> Tree | None:
        """An object, not to be changed; None if there is none."""
        stored = self.objects.get(plural, {}).get((namespace, name))
        return None if stored is None else stored.tree

    def trees(self, plural: str) -> list[Tree]:
        """All objects of a kind."""
        return [stored.tree for stored in self.objects.get(plural, {}).values()]

    def add(self, plural: str, tree: Tree) -> Tree:
        """Store a new object; it gets a uid."""
        self._uids += 1
        metadata = {**tree["metadata"], "uid": f"uid-{self._uids}"}
        assert self.get(plural, *key_of(metadata)) is None, f"{plural} {metadata['name']} exists"
        return self._write(plural, ADDED, NEW, {**tree, "metadata": metadata})

    def update(self, plural: str, tree: Tree) -> Tree:
        """Store another state of an object."""
        before = self.get(plural, *key_of(tree["metadata"]))
        assert before is not None, f"{plural} {tree['metadata']['name']} does not exist"
        return self._write(plural, MODIFIED, before, tree)

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Remove an object."""
        before = self.get(plural, namespace, name)
        assert before is not None, f"{plural} {name} does not exist"
        self._write(plural, DELETED, before, before)

    def _write(self, plural: str, kind: str, before: Tree, tree: Tree) -> Tree:
        self.version += 1
        metadata = {**tree["metadata"], "resourceVersion": str(self.version)}
        tree = {**tree, "metadata": metadata}
        stored = StoredObject(tree, _encode(tree))
        objects = self.objects.setdefault(plural, {})
        if kind == DELETED:
            del objects[key_of(metadata)]
        else:
            objects[key_of(metadata)] = stored
        change = LoggedChange(self.version, kind, before, stored)
        self._logs.setdefault(plural, []).append(change)
        for notify in self.on_change:
            notify(plural, change)
        return tree

    # Lists and watches

    def first_page(self, plural: str, limit: int, leaves_out_finished: bool) -> Page:
        """The first `limit` objects."""
        items = [
            stored.data
            for _, stored in sorted(self.objects.get(plural, {}).items())
            if not (leaves_out_finished and is_finished(stored.tree))
        ]
        return self._page(self.version, items, limit)

    def next_page(self, token: str, limit: int) -> Page:
        """The rest of a list, in the state of its first page."""
        version, items = self._rests.pop(token, (0, []))
        if version < self._oldest:
            raise ExpiredVersionError
        return self._page(version, items, limit)

    def _page(self, version: int, items: list[bytes], limit: int) -> Page:
        rest, token = items[limit:], ""
        if rest:
            self._tokens += 1
            token = f"{version}-{self._tokens}"
            self._rests[token] = (version, rest)
        return Page(version, items[:limit], token)

    def changes_after(self, plural: str, version: int) -> list[LoggedChange]:
        """The changes since a version."""
        if version < self._oldest:
            raise ExpiredVersionError
        log = self._logs.get(plural, [])
        return log[bisect_right(log, version, key=lambda change: change.version) :]

    def compact(self) -> None:
        """Expire all versions before the current one."""
        self._oldest = self.version
        self._logs.clear()


def key_of(metadata: Tree) -> Key:
    """The namespace and the name of an object."""
    return (metadata.get("namespace", ""), metadata["name"])


def is_finished(tree: Tree) -> bool:
    """Whether a pod has run to its end."""
    return tree.get("status", NEW).get("phase") in FINISHED
