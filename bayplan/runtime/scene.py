"""Scene: what changes seldom while pods are scheduled, so that keys that depend on it are not made for every pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ..framework import Plugin
from ..table import NodeTable
from .kept import has_own

Keys = tuple[Hashable, ...]


class Scene:
    """The `concern_key` and `cluster_key` of some plugins. Those that all go by the scene are asked once per scene."""

    __slots__ = ("_concerning", "_follow", "_keys", "_seen", "clustered")

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        plugins = list(plugins)
        self._concerning = [p for p in plugins if has_own(p, Plugin, "concern_key")]
        self.clustered = [p for p in plugins if has_own(p, Plugin, "cluster_key")]
        """Those with a `cluster_key`."""
        self._follow = all(p.follows_scene for p in (*self._concerning, *self.clustered))
        self._seen: Hashable = None
        self._keys: tuple[Keys, Keys] = ((), ())

    def keys(self, table: NodeTable) -> tuple[Keys, Keys]:
        """What decides who is concerned, and what answers depend on beyond the rows."""
        if not self._follow:
            return self._ask(table)
        seen = (
            table.node_changes.version,
            table.carried.version,
            table.namespaces_version,
            table.images.version,
            self._concerning[0].handle.lister.version if self._concerning else 0,
        )
        if seen != self._seen:
            self._keys, self._seen = self._ask(table), seen
        return self._keys

    def _ask(self, table: NodeTable) -> tuple[Keys, Keys]:
        return (
            tuple([plugin.concern_key(table) for plugin in self._concerning]),
            tuple([plugin.cluster_key(table) for plugin in self.clustered]),
        )
