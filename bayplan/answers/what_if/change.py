"""Change: a modification of a cluster."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

from ...errors import InputError
from ..references import parse_selector
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


def check_nodes(change: Any) -> None:
    """Check the fields `nodes`, names or patterns, and `selector`; raises InputError when both are empty."""
    names_of(change, "nodes")
    check_field(change, "selector", str, "labels such as zone=a")
    parse_selector(change.selector)
    if not change.nodes and not change.selector:
        what = type(change).__name__.lower()
        raise InputError(f"{what}: expected names of nodes or a selector (-l); got neither")


def shown_nodes(change: Any) -> str:
    """The nodes as a user would type them."""
    labels = (f"-l {change.selector}",) if change.selector else ()
    return " ".join((*change.nodes, *labels))


def check_field(change: ClusterChange, field: str, kind: type, expected: str) -> None:
    """Raise TypeError unless the field is of the type."""
    given: Any = getattr(change, field)
    if not isinstance(given, kind) or isinstance(given, bool):
        where = f"{type(change).__name__}: {field}"
        raise TypeError(f"{where}: expected {expected}; got {given!r}")


def check_seconds(change: ClusterChange, field: str) -> None:
    """Raise TypeError unless the field is a time in seconds, and InputError when it is negative."""
    given: Any = getattr(change, field)
    where = f"{type(change).__name__}: {field}"
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise TypeError(f"{where}: expected seconds; got {given!r}")
    if not 0 <= given < math.inf:
        raise InputError(f"{where}: expected seconds, 0 or more; got {given}")
