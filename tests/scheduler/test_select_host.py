"""Host selection: one of the best nodes, by chance, by name, or as the heap of kube-scheduler has it."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.scheduler import FirstByName, RandomTies, TieBreak
from bayplan.scheduler.select_host import best_positions
from bayplan.table import Ints, NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_table
from tests.rig.first_found import FirstFound


@dataclass
class Order:
    """A search that went through the rows in this order."""

    order: Ints


def make_rows(count: int) -> NodeTable:
    return make_table(*(make_node(f"n{i}") for i in range(count)))


def choose(
    ties: TieBreak, table: NodeTable, rows: list[int], totals: list[int], order: list[int]
) -> int:
    """The row that wins."""
    tied = best_positions(np.array(totals))
    found = np.array(rows, dtype=np.int64)
    return int(found[ties.choose(tied, found, table, Order(np.array(order, dtype=np.int64)))])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_best_positions_are_those_of_the_highest_total(totals: list[int]) -> None:
    best = [i for i, total in enumerate(totals) if total == max(totals)]

    assert best_positions(np.array(totals)).tolist() == best


# Random


@given(st.lists(st.integers(0, 3), min_size=2, max_size=20), st.integers(0, 1000))
def test_random_ties_only_pick_a_best_node(totals: list[int], seed: int) -> None:
    count = len(totals)
    table, ties = make_rows(count), RandomTies(seed)

    for _ in range(5):
        winner = choose(ties, table, list(range(count)), totals, list(range(count)))
        assert totals[winner] == max(totals)


def test_random_ties_are_the_same_for_the_same_seed_and_reach_everyone() -> None:
    table, rows = make_rows(5), list(range(5))

    def picks(seed: int) -> list[int]:
        ties = RandomTies(seed)
        return [choose(ties, table, rows, [7, 7, 1, 7, 7], rows) for _ in range(50)]

    assert picks(3) == picks(3)
    assert picks(3) != picks(4)
    assert set(picks(3)) == {0, 1, 3, 4}


# By name


def test_first_by_name_takes_the_smallest_name_of_the_best() -> None:
    table = make_table(*(make_node(name) for name in ("d", "b", "c", "a")))

    assert choose(FirstByName(), table, [0, 1, 2, 3], [9, 9, 9, 1], [0, 1, 2, 3]) == 1
    assert choose(FirstByName(), table, [0, 2], [9, 9], [0, 1, 2, 3]) == 2


def test_first_by_name_includes_nodes_that_came_later() -> None:
    table, ties = make_table(make_node("d"), make_node("b")), FirstByName()
    choose(ties, table, [0, 1], [1, 1], [0, 1])
    writer = TableWriter(table)

    writer.remove_node("b")
    writer.set_node(make_node("z"))
    writer.set_node(make_node("c"))

    assert table.names == ["d", "z", "c"]
    assert choose(ties, table, [0, 1, 2], [1, 1, 1], [0, 1, 2]) == 2


def test_first_by_name_sorts_as_text() -> None:
    table = make_table(make_node("n9"), make_node("n10"))

    assert choose(FirstByName(), table, [0, 1], [1, 1], [0, 1]) == 1


# As found


def top_of_heap(scores: list[int]) -> int:
    """Index of the first element popped of a max-heap, by Go's container/heap step by step."""
    heap = list(enumerate(scores))

    def less(i: int, j: int) -> bool:
        return heap[i][1] > heap[j][1]

    def down(i: int, size: int) -> None:
        while True:
            child = 2 * i + 1
            if child >= size:
                return
            if child + 1 < size and less(child + 1, child):
                child += 1
            if not less(child, i):
                return
            heap[i], heap[child] = heap[child], heap[i]
            i = child

    for i in reversed(range(len(heap) // 2)):
        down(i, len(heap))
    last = len(heap) - 1
    heap[0], heap[last] = heap[last], heap[0]
    down(0, last)
    return heap[last][0]


@pytest.mark.parametrize(
    ("scores", "winner"),
    [
        pytest.param([5], 0, id="one"),
        pytest.param([5, 5, 5, 5], 0, id="all equal: the first"),
        pytest.param([1, 5, 5], 1, id="left before right"),
        pytest.param([1, 2, 5, 5], 3, id="below the left child comes before the right child"),
        pytest.param([1, 5, 5, 5], 1, id="a parent before its children"),
    ],
)
def test_top_of_heap(scores: list[int], winner: int) -> None:
    """The simulation itself, on lists one can follow by hand."""
    assert top_of_heap(scores) == winner


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.data())
def test_first_found_is_the_top_of_the_heap(scores: list[int], data: st.DataObject) -> None:
    """Nodes are found in any order, and some rows of the table are not feasible at all."""
    count = len(scores) + 3
    table = make_rows(count)
    order = data.draw(st.permutations(range(count)))
    found = data.draw(st.permutations(range(count)))[: len(scores)]
    feasible = [row for row in order if row in found]  # as the search found them
    score_of = dict(zip(feasible, scores, strict=True))
    rows = sorted(feasible)

    winner = choose(FirstFound(), table, rows, [score_of[row] for row in rows], list(order))

    assert winner == feasible[top_of_heap(scores)]
