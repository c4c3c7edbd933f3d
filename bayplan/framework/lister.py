"""Lister: how plugins read the objects of the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class Lister(Protocol):
    """The objects of the cluster that are not nodes or pods, by kind: `Service`, `ReplicaSet`, ...; by default none."""

    @property
    def version(self) -> int:
        """Changes whenever an object does."""
        return 0

    def version_of(self, *kinds: str) -> int:
        """Changes whenever an object of one of `kinds` does."""
        return 0

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""
        return ()

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-wide kinds have the namespace ""."""
        return None
