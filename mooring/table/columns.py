"""Columns: NumPy arrays with one value per node row, which grow together.

A column is written by `table/writer.py` (through `data`) and read by everyone else (through `view`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

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


class ResourceColumns(Mapping[str, Ints]):
    """One int64 column per resource name; a resource nobody has is a column of zeros.

    cpu is in millicores, every other resource in its own unit. `rows` has the same amounts once more as plain
    numbers, row by row and without the zeros: judging a single row is quicker on those.
    """

    __slots__ = ("_columns", "_size", "_zeros", "rows")

    def __init__(self, size: Size) -> None:
        self._size = size
        self._columns: dict[str, Column] = {}
        self._zeros = Column(size)
        self.rows: list[dict[str, int]] = []

    def __getitem__(self, resource: str) -> Ints:
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
        here = self.rows[row]
        for resource, amount in amounts.items():
            self._put(row, here, resource, here.get(resource, 0) + sign * amount)

    def set(self, row: int, amounts: Mapping[str, int]) -> None:
        """Make the values at `row` exactly `amounts` (writer only)."""
        here = self.rows[row]
        for resource in here.keys() - amounts.keys():
            self._put(row, here, resource, 0)
        for resource, amount in amounts.items():
            self._put(row, here, resource, amount)

    def fork(self, size: Size, row: int) -> ResourceColumns:
        """The same columns for one row, copied."""
        copy = ResourceColumns(size)
        copy._columns = {name: column.fork(size, row) for name, column in self._columns.items()}
        copy.rows = [dict(self.rows[row])]
        return copy

    def _put(self, row: int, here: dict[str, int], resource: str, amount: int) -> None:
        column = self._columns.get(resource)
        if column is None:
            column = self._columns[resource] = Column(self._size)
        column.data[row] = amount
        if amount:
            here[resource] = amount
        else:
            here.pop(resource, None)
