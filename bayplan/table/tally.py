"""DomainTally: counts per domain for one attempt, with the changes of a what-if stored separately.

The counts of the cluster are live arrays that must not be written. An attempt uses them without a copy; a what-if
clones the tally and records its changes, at no cost per domain.
"""

from __future__ import annotations

from .columns import Ints
from .labels import LabelColumn


class DomainTally:
    """A count per domain of `label`; the slot for ABSENT stays 0."""

    __slots__ = ("_changes", "_shared", "label")

    def __init__(self, label: LabelColumn, shared: Ints) -> None:
        self.label = label
        self._shared = shared
        self._changes: dict[int, int] = {}

    @property
    def key(self) -> str:
        """The topology key."""
        return self.label.key

    @property
    def counts(self) -> Ints:
        """int64 per domain (by code, one slot more for ABSENT). Do not write to it."""
        if not self._changes:
            return self._shared
        counts = self._shared.copy()
        for code, change in self._changes.items():
            counts[code] += change
        return counts

    def at(self, value: str | None) -> int:
        """The count of the domain `value`; 0 for None, a node without the key."""
        if value is None:
            return 0
        code = self.label.code_of(value)
        return int(self._shared[code]) + self._changes.get(code, 0)

    def add(self, value: str | None, change: int) -> None:
        """Add `change` to the domain `value`; None, a node without the key, is in no domain."""
        if value is not None:
            code = self.label.code_of(value)
            self._changes[code] = self._changes.get(code, 0) + change

    def clone(self) -> DomainTally:
        """A copy that can be changed independently."""
        copy = DomainTally(self.label, self._shared)
        copy._changes = self._changes.copy()
        return copy
