"""Change: a modification of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..stage import Stage


class ClusterChange(ABC):
    """One change; `text` is how a user would type it."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The change in a few words, such as `drain node-3`."""

    @abstractmethod
    def apply(self, stage: Stage) -> None:
        """Make the change; raises InputError when it names a missing object."""


def names_of(change: ClusterChange, field: str) -> None:
    """Make the field a tuple of names: one name stands for itself. Raises TypeError for anything else."""
    given: Any = getattr(change, field)
    names = (given,) if isinstance(given, str) else given
    is_listed = isinstance(names, tuple | list)
    if not is_listed or not all(isinstance(name, str) for name in names):
        where = f"{type(change).__name__}: {field}"
        raise TypeError(f"{where}: expected a name, or a list of names; got {given!r}")
    object.__setattr__(change, field, tuple(names))


def check_field(change: ClusterChange, field: str, kind: type, expected: str) -> None:
    """Raise TypeError unless the field is of the type."""
    given: Any = getattr(change, field)
    if not isinstance(given, kind) or isinstance(given, bool):
        where = f"{type(change).__name__}: {field}"
        raise TypeError(f"{where}: expected {expected}; got {given!r}")
