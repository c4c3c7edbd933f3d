"""Columns: NumPy arrays with one value per node row, which grow together.

A column is written by `table/writer.py` (through `data`) and read by everyone else (through `view`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = slice | NDArray[np.int64]
"""Which rows to judge: `ALL`, or row numbers in ascending order."""

ALL = slice(None)
FIRST_ROW = slice(0, 1)


class Size:
    """How many rows are in use and how many fit before the columns must grow."""

    __slots__ = ("capacity", "rows")

    def __init__(self, rows: int = 0, capacity: int = 0) -> None:
        self.rows = rows
        self.capacity = capacity


class RowValues(Protocol):
    """Anything that has one value per row."""

    @property
    def view(self) -> NDArray[Any]:
        """The values of the table's rows, read-only."""


class Column:
    """One value per row. `view` is read-only and always as long as the table."""

    __slots__ = ("_data", "_fill", "_size", "_view")

    def __init__(self, size: Size, dtype: type[Any] = np.int64, fill: Any = 0) -> None:
        self._size = size
        self._fill = fill
        self._data: NDArray[Any] = np.full(max(size.capacity, 1), fill, dtype=dtype)
        self._view = self._data[:0]

    @property
    def data(self) -> NDArray[Any]:
        """The writable array, at least as long as the table; only the writer and its parts use it."""
        if len(self._data) < self._size.capacity:
            grown = np.full(self._size.capacity, self._fill, dtype=self._data.dtype)
            grown[: len(self._data)] = self._data
            self._data = grown
        return self._data

    @property
    def view(self) -> NDArray[Any]:
        """The values of the table's rows, read-only."""
        view = self._view
        if len(view) != self._size.rows or view.base is not self._data:
            view = self.data[: self._size.rows]
            view.flags.writeable = False
            self._view = view
        return view

    def fork(self, size: Size, row: int) -> Column:
        """A one-row column with a copy of the value at `row`."""
        copy = Column(size, self._data.dtype.type, self._fill)
        copy.data[0] = self.data[row]
        return copy


class LateColumn(Column):
    """A column that is written when it is read: a row that changes is only noted.

    Rows change one by one, and whole columns are read seldom. `value_of` gives the value of a row at that time.
    """

    __slots__ = ("_stale", "_value_of")

    def __init__(self, size: Size, value_of: Callable[[int], int]) -> None:
        super().__init__(size)
        self._value_of = value_of
        self._stale: set[int] = set()

    def touch(self, row: int) -> None:
        """The value at `row` changed (writer only)."""
        self._stale.add(row)

    @property
    def view(self) -> NDArray[Any]:
        """The values of the table's rows, read-only."""
        if self._stale:
            rows = list(self._stale)
            self._stale.clear()
            if len(rows) == 1:
                self.data[rows[0]] = self._value_of(rows[0])
            else:
                self.data[rows] = [self._value_of(row) for row in rows]
        return super().view


class ResourceColumns(Mapping[str, Ints]):
    """One int64 column per resource name; a resource nobody has is a column of zeros.

    cpu is in millicores, every other resource in its own unit. `rows` has the amounts as plain numbers, row by row and
    without the zeros: judging a single row is quicker on those. The columns follow when they are read. Dicts in `rows`
    are never changed, only replaced.
    """

    __slots__ = ("_columns", "_size", "_stale", "_zeros", "rows")

    def __init__(self, size: Size) -> None:
        self._size = size
        self._columns: dict[str, Column] = {}
        self._zeros = Column(size)
        self._stale: set[int] = set()
        self.rows: list[dict[str, int]] = []

    def __getitem__(self, resource: str) -> Ints:
        if self._stale:
            self._catch_up()
        return self._columns.get(resource, self._zeros).view

    def __contains__(self, resource: object) -> bool:
        return resource in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def add_row(self) -> None:
        """Make room for one more row (writer only)."""
        self.rows.append({})

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add `amounts` (or take them away, with sign -1) at `row` (writer only)."""
        here = dict(self.rows[row])
        for resource, amount in amounts.items():
            known = here.get(resource)
            if known is None:
                self._enter(resource)
                known = 0
            known += sign * amount
            if known:
                here[resource] = known
            else:
                here.pop(resource, None)
        self.put(row, here)

    def set(self, row: int, amounts: Mapping[str, int]) -> None:
        """Make the values at `row` exactly `amounts` (writer only)."""
        for resource in amounts:
            self._enter(resource)
        self.put(row, {resource: amount for resource, amount in amounts.items() if amount})

    def put(self, row: int, amounts: dict[str, int]) -> None:
        """The same for amounts without zeros, of resources that are known here; rows may share them (writer only)."""
        self.rows[row] = amounts
        self._stale.add(row)

    def fork(self, size: Size, row: int) -> ResourceColumns:
        """The same columns for one row, copied."""
        copy = ResourceColumns(size)
        copy._columns = {name: Column(size) for name in self._columns}
        copy.rows = [dict(self.rows[row])]
        copy._stale = {0}
        return copy

    def _enter(self, resource: str) -> None:
        if resource not in self._columns:
            self._columns[resource] = Column(self._size)

    def _catch_up(self) -> None:
        if len(self._stale) == 1:  # as between two pods: without a list it is ten times as quick
            row = self._stale.pop()
            here = self.rows[row]
            for resource, column in self._columns.items():
                column.data[row] = here.get(resource, 0)
            return
        rows = list(self._stale)
        self._stale.clear()
        amounts = [self.rows[row] for row in rows]
        for resource, column in self._columns.items():
            column.data[rows] = [here.get(resource, 0) for here in amounts]
