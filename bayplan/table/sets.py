"""SetColumn: a column of interned sets, such as taints and declared features.

A cluster has few distinct sets, so a predicate is evaluated once per distinct set and looked up per row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from .columns import Bools, Column, Ints, Rows, Size

T = TypeVar("T")


class SetColumn(Generic[T]):
    """One interned tuple per row; row values are ids into `distinct`."""

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
