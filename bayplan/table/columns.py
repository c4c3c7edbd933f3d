"""Columns: NumPy arrays with one value per node row, which grow together.

A column is written by `table/writer.py` (through `data`) and read by everyone else (through `view`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ..api.pod import HostPort

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = slice | NDArray[np.int64]
"""The rows to judge: `ALL`, or row numbers in ascending order."""

ALL = slice(None)
FIRST_ROW = slice(0, 1)
T = TypeVar("T")
ANY_IP = "0.0.0.0"  # the wildcard of hostIP, not an address to bind to


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


class PriorityColumns:
    """One count column per distinct priority."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._columns: dict[int, Column] = {}

    def column(self, priority: int) -> Column:
        """The counts of one priority, made on first use (writer only)."""
        column = self._columns.get(priority)
        if column is None:
            column = self._columns[priority] = Column(self._size)
        return column

    def below(self, priority: int) -> Ints:
        """int64 per row: pods with a lower priority than `priority`."""
        total = np.zeros(self._size.rows, dtype=np.int64)
        for known, column in self._columns.items():
            if known < priority:
                total += column.view
        return total

    def may_have_below(self, priority: int) -> bool:
        """Whether pods with a lower priority than `priority` are, or were, on some row."""
        return any(known < priority for known in self._columns)

    def has_below(self, row: int, priority: int) -> bool:
        """Whether a pod with a lower priority than `priority` is at `row`."""
        return any(
            known < priority and column.view[row] > 0 for known, column in self._columns.items()
        )

    def counts_at(self, row: int) -> dict[int, int]:
        """The pods at `row` by priority."""
        return {key: column.view.item(row) for key, column in self._columns.items()}


class SetColumn(Generic[T]):
    """One interned tuple per row, such as taints; row values are ids into `distinct`.

    A cluster has few distinct sets, so a predicate is evaluated once per distinct set and looked up per row.
    """

    __slots__ = ("_id_of", "_ids", "distinct")

    def __init__(self, size: Size) -> None:
        self.distinct: list[tuple[T, ...]] = [()]
        self._ids = Column(size, np.int64, 0)
        self._id_of: dict[tuple[T, ...], int] = {(): 0}

    @property
    def ids(self) -> Ints:
        """int64 per row: position of the row's set in `distinct`."""
        return self._ids.view

    def set(self, row: int, members: tuple[T, ...]) -> None:
        """Record the set at `row` (writer only)."""
        identity = self._id_of.get(members)
        if identity is None:
            identity = self._id_of[members] = len(self.distinct)
            self.distinct.append(members)
        self._ids.data[row] = identity

    def count(self, matters: Callable[[T], bool], rows: Rows) -> Ints:
        """int64 per row of `rows`: members for which `matters` holds; `matters` is called once per distinct member."""
        asked: dict[T, bool] = {}
        totals = np.zeros(len(self.distinct), dtype=np.int64)
        for identity, members in enumerate(self.distinct):
            for member in members:
                if member not in asked:
                    asked[member] = matters(member)
                totals[identity] += asked[member]
        counted: Ints = totals[self.ids[rows]]
        return counted

    def contains_all(self, wanted: frozenset[T], rows: Rows) -> Bools:
        """bool per row of `rows`: the row's set has every member of `wanted`."""
        answer = np.array([wanted.issubset(members) for members in self.distinct], dtype=np.bool_)
        found: Bools = answer[self.ids[rows]]
        return found

    def fork(self, size: Size, row: int) -> SetColumn[T]:
        """The same vocabulary over one row."""
        copy: SetColumn[T] = SetColumn.__new__(SetColumn)
        copy.distinct, copy._id_of = self.distinct, self._id_of
        copy._ids = self._ids.fork(size, row)
        return copy


class PortColumns:
    """Whether a host port of each row is taken, by ip; mirrors HostPortInfo of kube-scheduler/framework/types.go.

    A port that several pods hold is in the set once, so removing one of these pods frees it.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self._taken: dict[tuple[str, int], dict[str, Column]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Take `ports` at `row` (writer only); returns whether one of them was free."""
        return self._set(row, ports, True)

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Free `ports` at `row`, also where another pod holds them (writer only)."""
        self._set(row, ports, False)

    def taken_at(self, row: int) -> list[Column]:
        """Ports taken at `row`, for `restore`."""
        columns = (column for by_ip in self._taken.values() for column in by_ip.values())
        return [column for column in columns if column.data[row]]

    def restore(self, row: int, taken: list[Column]) -> None:
        """Restore the taken ports of `row` (writer only)."""
        for by_ip in self._taken.values():
            for column in by_ip.values():
                column.data[row] = False
        for column in taken:
            column.data[row] = True

    def _set(self, row: int, ports: Iterable[HostPort], is_taken: bool) -> bool:
        changed = False
        for port in ports:
            by_ip = self._taken.setdefault((port.protocol, port.port), {})
            if port.ip not in by_ip:
                by_ip[port.ip] = Column(self._size, np.bool_, False)
            taken = by_ip[port.ip].data
            changed = changed or bool(taken[row]) != is_taken
            taken[row] = is_taken
        return changed

    def conflicts(self, ports: Iterable[HostPort], rows: Rows) -> Bools:
        """bool per row of `rows`: some pod there holds one of `ports`; 0.0.0.0 clashes with every ip."""
        conflict = np.zeros(self._size.rows, dtype=np.bool_)[rows]
        for port in ports:
            for ip, taken in self._taken.get((port.protocol, port.port), {}).items():
                if ANY_IP in (port.ip, ip) or port.ip == ip:
                    conflict |= taken.view[rows]
        return conflict

    def fork(self, size: Size, row: int) -> PortColumns:
        """The ports of one row, copied."""
        copy = PortColumns(size)
        copy._taken = {
            key: {ip: column.fork(size, row) for ip, column in by_ip.items()}
            for key, by_ip in self._taken.items()
        }
        return copy
