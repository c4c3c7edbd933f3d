"""Change: a modification of a cluster."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from ...api.node import Node
from ...choices import expect, several
from ...errors import InputError
from ..references import find_nodes, parse_selector
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
    expected = "a name, or a list of names"
    names = several(type(change).__name__, field, getattr(change, field), (str,), expected)
    object.__setattr__(change, field, tuple(names))


class NodesChange(ClusterChange):
    """A change of nodes that are given by names or patterns (`nodes`), or by labels (`selector`)."""

    nodes: tuple[str, ...]
    selector: str

    def __post_init__(self) -> None:
        """Raise InputError when neither is given, or the selector is wrong, and TypeError for other types."""
        names_of(self, "nodes")
        check_field(self, "selector", str, "labels such as zone=a")
        parse_selector(self.selector)
        if not self.nodes and not self.selector:
            expected = "expected names of nodes or a selector (-l)"
            raise InputError(f"{type(self).__name__.lower()}: {expected}; got neither")

    @property
    def text(self) -> str:
        labels = (f"-l {self.selector}",) if self.selector else ()
        return " ".join((type(self).__name__.lower(), *self.nodes, *labels))

    def find(self, stage: Stage) -> list[Node]:
        """The nodes; raises InputError when there is none."""
        return find_nodes(stage.cluster, self.nodes, self.selector)


def check_field(change: ClusterChange, field: str, kind: type, expected: str) -> None:
    """Raise TypeError unless the field is of the type."""
    expect(type(change).__name__, field, getattr(change, field), kind, expected)


def check_seconds(change: ClusterChange, field: str) -> None:
    """Raise TypeError unless the field is a time in seconds, and InputError when it is negative."""
    given, where = getattr(change, field), type(change).__name__
    expect(where, field, given, (int, float), "seconds")
    if not 0 <= given < math.inf:
        raise InputError(f"{where}: {field}: expected seconds, 0 or more; got {given}")
