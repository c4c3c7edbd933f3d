"""Looks that follow the rows are those that are found anew."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.runtime.looks import NOWHERE, Looks, _combined
from bayplan.table import Column, Ints, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node


class World:
    """A table whose rows have marks and totals that a test sets."""

    def __init__(self, rows: int, marks: int) -> None:
        self.table = NodeTable()
        self.writer = TableWriter(self.table)
        self.columns = [Column(self.table.size) for _ in range(marks)]
        self.totals: list[int] = []
        for _ in range(rows):
            self.add_row()
        self.looks = Looks(self.columns)

    def add_row(self) -> None:
        self.writer.set_node(make_node(f"n{len(self.totals)}"))
        self.totals.append(0)

    def set(self, row: int, mark: int, value: int, total: int) -> None:
        if self.columns:
            self.columns[mark % len(self.columns)].data[row] = value
        self.totals[row] = total
        self.table.row_changes.mark(row)

    def follow(self, looks: Looks) -> Looks:
        looks.follow(self.table, np.array(self.totals, dtype=np.int64), None)
        return looks


def partition(looks: Looks) -> set[frozenset[int]]:
    """The rows of each look, by what the looks say; everything else they say agrees with it."""
    numbers = looks.numbers.tolist()
    sizes = Counter(number for number in numbers if number != NOWHERE)
    assert (
        dict(zip(looks.present.tolist(), looks.sizes[looks.present].tolist(), strict=True)) == sizes
    )
    assert [numbers[row] for row in looks.samples.tolist()] == looks.present.tolist()
    return {frozenset(np.flatnonzero(looks.numbers == number).tolist()) for number in sizes}


STEPS = st.tuples(
    st.integers(0, 11), st.integers(0, 2), st.integers(-1, 2), st.sampled_from([0, 5, -1])
)


@given(st.integers(0, 3), st.lists(st.lists(STEPS, max_size=4), max_size=12))
def test_looks_that_follow_are_those_found_anew(
    marks: int, rounds: list[list[tuple[int, int, int, int]]]
) -> None:
    world = World(10, marks)
    for steps in rounds:
        for row, mark, value, total in steps:
            while row >= len(world.totals):
                world.add_row()
            world.set(row, mark, value, total)
        followed = partition(world.follow(world.looks))
        assert followed == partition(world.follow(Looks(world.columns)))


def test_looks_that_no_row_has_any_more_are_forgotten() -> None:
    world = World(8, 1)
    for value in range(200):
        world.set(0, 0, value, 0)
        world.follow(world.looks)

    assert len(world.looks.present) == 2
    assert len(world.looks) < 100


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], 1, id="without marks all rows look alike"),
        pytest.param([[1, 1, 2]], 2, id="one mark"),
        pytest.param([[1, 1, 2], [0, 5, 0]], 3, id="two marks"),
        pytest.param([[0, 2**61, 0], [0, 0, 2**61]], 3, id="numbers too large to be multiplied"),
        pytest.param([[-1, 0, 1], [1, 0, -1]], 3, id="negative numbers"),
    ],
)
def test_rows_are_told_apart_by_any_mark(values: list[list[int]], expected: int) -> None:
    columns: list[Ints] = [np.array(column, dtype=np.int64) for column in values]

    assert len(set(_combined(columns, 3).tolist())) == expected
