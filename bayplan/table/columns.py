"""Columns: NumPy arrays with one value per node row, which grow together.

A column is written by `table/writer.py` (through `data`) and read by everyone else (through `view`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = slice | NDArray[np.int64]
"""The rows to judge: `ALL`, or row numbers in ascending order."""

ALL = slice(None)
FIRST_ROW = slice(0, 1)


class Size:
    """Number of rows in use, and of rows that fit before the columns grow."""

    __slots__ = ("_columns", "capacity", "rows")

    def __init__(self, rows: int = 0, capacity: int = 0) -> None:
        self.rows = rows
        self.capacity = capacity
        self._columns: WeakSet[Column] = WeakSet()

    def add(self, column: Column) -> None:
        """Let a column grow with the others, as long as something refers to it."""
        self._columns.add(column)

    def grow(self, capacity: int) -> None:
        """Make room in all columns, which get new arrays."""
        self.capacity = capacity
        for column in self._columns:
            column.grow(capacity)


class RowValues(Protocol):
    """Anything that has one value per row."""

    @property
    def view(self) -> NDArray[Any]:
        """The values of the table's rows, read-only."""


class Column:
    """One value per row. `view` is read-only and always as long as the table."""

    __slots__ = ("__weakref__", "_fill", "_size", "_view", "cells", "data")

    def __init__(self, size: Size, dtype: type[Any] = np.int64, fill: Any = 0) -> None:
        self._size = size
        self._fill = fill
        self.data: NDArray[Any] = _filled(max(size.capacity, 1), dtype, fill)
        """The writable array, at least as long as the table; only the writer and its parts use it."""
        self.cells = memoryview(self.data)  # type: ignore[arg-type]  # it has a buffer
        """The same values, one at a time: reading or writing one cell takes a third of the time it takes in `data`."""
        self._view = self.data[:0]
        size.add(self)

    def grow(self, capacity: int) -> None:
        """Make room (called by `Size`)."""
        grown = _filled(capacity, self.data.dtype.type, self._fill)
        grown[: len(self.data)] = self.data
        self.data, self.cells = grown, memoryview(grown)  # type: ignore[arg-type]  # an array is a buffer
        self._view = grown[:0]

    @property
    def view(self) -> NDArray[Any]:
        """The values of the table's rows, read-only."""
        view = self._view
        if len(view) != self._size.rows:
            view = self.data[: self._size.rows]
            view.flags.writeable = False
            self._view = view
        return view

    def copy(self, size: Size) -> Column:
        """A column with the same values, which grows with others."""
        copy = Column(size, self.data.dtype.type, self._fill)
        copy.data[:] = self.data
        return copy

    def fork(self, size: Size, row: int) -> Column:
        """A one-row column with a copy of the value at `row`."""
        copy = Column(size, self.data.dtype.type, self._fill)
        copy.data[0] = self.data[row]
        return copy


def _filled(size: int, dtype: type[Any], fill: Any) -> NDArray[Any]:
    """An array of equal values; zeros take no memory until they are written to."""
    return np.full(size, fill, dtype=dtype) if fill else np.zeros(size, dtype=dtype)


class ResourceColumns(Mapping[str, Ints]):
    """One int64 column per resource name; a resource that no row has is a column of zeros.

    cpu is in millicores, every other resource in its own unit.
    """

    __slots__ = ("_capacity", "_cells", "_columns", "_size", "_zeros")

    def __init__(self, size: Size) -> None:
        self._size = size
        self._columns: dict[str, Column] = {}
        self._cells: dict[str, memoryview] = {}
        """The cells of each column, as long as the capacity stays."""
        self._capacity = -1
        self._zeros = Column(size)

    def __getitem__(self, resource: str) -> Ints:
        return self._columns.get(resource, self._zeros).view

    def __contains__(self, resource: object) -> bool:
        return resource in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def copy(self, size: Size) -> ResourceColumns:
        """Columns with the same values, which grow with others."""
        copy = ResourceColumns(size)
        copy._columns = {name: column.copy(size) for name, column in self._columns.items()}
        return copy

    def column(self, resource: str) -> Column:
        """The column of a resource, made on first use."""
        column = self._columns.get(resource)
        if column is None:
            column = self._columns[resource] = Column(self._size)
        return column

    def cells_of(self, resource: str) -> memoryview:
        """The cells of a column, which is made on first use; valid until `size.capacity` changes."""
        known = self.cells_by_name()
        cells = known.get(resource)
        if cells is None:
            cells = known[resource] = self.column(resource).cells
        return cells

    def cells_by_name(self) -> dict[str, memoryview]:
        """The cells of the existing columns; not to be changed."""
        if self._capacity != self._size.capacity:
            self._capacity = self._size.capacity
            self._cells = {name: column.cells for name, column in self._columns.items()}
        return self._cells

    def amount(self, resource: str, row: int) -> int:
        """The amount of one resource at one row."""
        column = self._columns.get(resource)
        amount: int = column.cells[row] if column is not None else 0
        return amount

    def at(self, row: int) -> dict[str, int]:
        """The amounts at one row, without the zeros."""
        amounts = {name: column.cells[row] for name, column in self._columns.items()}
        return {name: amount for name, amount in amounts.items() if amount}

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add `amounts` (or take them away, with sign -1) at `row` (writer only)."""
        for resource, amount in amounts.items():
            self.cells_of(resource)[row] += sign * amount

    def set(self, row: int, amounts: Mapping[str, int]) -> None:
        """Make the values at `row` exactly `amounts` (writer only)."""
        for resource, column in self._columns.items():
            if resource not in amounts:
                column.cells[row] = 0
        for resource, amount in amounts.items():
            self.cells_of(resource)[row] = amount
