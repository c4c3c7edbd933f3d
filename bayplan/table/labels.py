"""LabelColumns: node labels, dictionary-encoded, one column per key in use, and counts per domain.

The code of a row's value is also the row's domain in topology spread and pod affinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..api.node import Node
from ..api.selectors import Requirement
from ..stamped_cache import StampedCache
from .columns import Bools, Column, Ints, Rows, Size

ABSENT = -1


class LabelColumn:
    """The values of one label key: `codes` per row, `ABSENT` where the node lacks the key.

    An array indexed by code has one slot more than there are values: code -1 falls on it.
    """

    __slots__ = (
        "_code_of",
        "_matches",
        "_shared",
        "_uses",
        "column",
        "domains_version",
        "key",
        "labelled",
        "presence",
        "values",
    )

    def __init__(self, key: str, size: Size) -> None:
        self.key = key
        self.values: list[str] = []
        self.column = Column(size, np.int64, ABSENT)
        """Holds `codes`."""
        self.presence = Column(size)
        """1 where the node has the key."""
        self.labelled = 0
        """Number of rows with the key."""
        self.domains_version = 0
        """Changes when a value gets its first row, or loses its last."""
        self._uses: list[int] = []
        self._shared = 0
        self._code_of: dict[str, int] = {}
        self._matches: StampedCache[Requirement, Bools] = StampedCache("label requirements")

    @property
    def codes(self) -> Ints:
        """int64 per row."""
        return self.column.view

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same value."""
        return self._shared == 0

    @property
    def slots(self) -> int:
        """Length of an array indexed by code, the slot for ABSENT included."""
        return len(self.values) + 1

    def shape(self, nodes: int) -> tuple[int, bool, bool]:
        """The facts that counts per domain depend on, in a cluster of that many nodes: slots, and whether every node is
        a domain of its own.
        """
        return len(self.values), self._shared == 0, self.labelled == nodes

    def code_of(self, value: str) -> int:
        """The code of `value`; ABSENT when no node ever had it."""
        return self._code_of.get(value, ABSENT)

    def set(self, row: int, value: str | None) -> int | None:
        """Record the value at `row` (writer only); returns the code of the old one, None if it is the same."""
        code = ABSENT if value is None else self._encode(value)
        data = self.column.data
        old: int = data.item(row)
        if old == code:
            return None
        if old != ABSENT:
            self._shared -= self._uses[old] == 2
            self._uses[old] -= 1
            self.labelled -= 1
            self.domains_version += self._uses[old] == 0
        if code != ABSENT:
            self._uses[code] += 1
            self._shared += self._uses[code] == 2
            self.labelled += 1
            self.domains_version += self._uses[code] == 1
        data[row] = code
        self.presence.data[row] = code != ABSENT
        return old

    def matching(self, requirement: Requirement) -> Bools:
        """bool per code (with the slot for ABSENT): the value satisfies `requirement`."""
        known = self._matches.get(requirement, len(self.values))
        if known is None:
            known = self._matches.put(requirement, self._judge(requirement))
        return known

    def _judge(self, requirement: Requirement) -> Bools:
        verdict = np.empty(self.slots, dtype=np.bool_)
        if requirement.operator in ("In", "NotIn"):
            wanted = requirement.operator == "In"
            verdict[:] = not wanted
            for value in requirement.values or ():
                if (code := self.code_of(value)) != ABSENT:
                    verdict[code] = wanted
        else:
            verdict[:-1] = [requirement.matches_value(value) for value in self.values]
        verdict[-1] = requirement.matches_value(None)
        return verdict

    def _encode(self, value: str) -> int:
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
            self._uses.append(0)
        return code

    def fork(self, size: Size, row: int) -> LabelColumn:
        """The same dictionary over one row; labels do not change in a what-if."""
        copy = LabelColumn.__new__(LabelColumn)
        for name in LabelColumn.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.column = self.column.fork(size, row)
        copy.presence = self.presence.fork(size, row)
        return copy


class LabelColumns:
    """Every label key in use, each a column made on first use."""

    def __init__(self, size: Size, nodes: Sequence[Node | None]) -> None:
        self._size = size
        self._nodes = nodes
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str) -> LabelColumn:
        """The column of `key`, built from the nodes on first use."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(key, self._size)
            for row, node in enumerate(self._nodes):
                if node is not None and key in node.labels:
                    column.set(row, node.labels[key])
        return column

    def codes(self, key: str) -> Ints:
        """int64 per row: the code of the row's value of `key`, ABSENT where there is none."""
        return self.column(key).codes

    def equal(self, key: str, value: str, rows: Rows) -> Bools:
        """bool per row of `rows`: label `key` is exactly `value`."""
        column = self.column(key)
        code = column.code_of(value)
        if code == ABSENT:
            return np.zeros(len(column.codes[rows]), dtype=np.bool_)
        return np.equal(column.codes[rows], code)

    def has(self, key: str, rows: Rows) -> Bools:
        """bool per row of `rows`: the node has label `key`."""
        return np.not_equal(self.column(key).codes[rows], ABSENT)

    def match(self, requirement: Requirement, rows: Rows) -> Bools:
        """bool per row of `rows`: the node's labels satisfy `requirement`."""
        column = self.column(requirement.key)
        matched: Bools = column.matching(requirement)[column.codes[rows]]
        return matched

    def set(self, row: int, labels: Mapping[str, str]) -> list[tuple[LabelColumn, int]]:
        """Record the labels of the node at `row` (writer only); returns the columns that changed, with old codes."""
        found = [
            (column, column.set(row, labels.get(key))) for key, column in self._columns.items()
        ]
        return [(column, old) for column, old in found if old is not None]

    def fork(self, size: Size, row: int) -> LabelColumns:
        """The same columns over one row, copied when asked for."""
        return _ForkedLabels(self, size, row)


class _ForkedLabels(LabelColumns):
    """Labels of one row of another table."""

    def __init__(self, base: LabelColumns, size: Size, row: int) -> None:
        super().__init__(size, [])
        self._base = base
        self._row = row

    def column(self, key: str) -> LabelColumn:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = self._base.column(key).fork(self._size, self._row)
        return column


class DomainTally:
    """A count per domain of `label`; the slot for ABSENT stays 0.

    The counts of the cluster are live arrays that must not be written. An attempt uses them without a copy; a what-if
    clones the tally and records its changes, at no cost per domain.
    """

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
