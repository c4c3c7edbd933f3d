"""Elements that are equal end where Go's sort.Slice leaves them."""

import operator
from pathlib import Path

import pytest

from bayplan.api.text.go_sort import go_sorted, ranks

CASES = Path(__file__).with_name("go_sort_cases.txt")
LESS = {"strict": operator.lt, "odd": lambda one, other: one < other or (one == other and one % 2)}


def cases() -> list[tuple[str, list[int], list[int]]]:
    found = []
    for line in CASES.read_text().splitlines():
        if not line.startswith("#"):
            keys, places = line.partition(" ")[2].split(";")
            lists = [list(map(int, part.split(","))) for part in (keys, places)]
            found.append((line.split()[0], lists[0], lists[1]))
    return found


@pytest.mark.parametrize(
    ("comparison", "keys", "places"),
    [
        pytest.param(*case, id=f"{case[0]}, {len(case[1])} keys, case {i}")
        for i, case in enumerate(cases())
    ],
)
def test_the_order_is_that_of_go(comparison: str, keys: list[int], places: list[int]) -> None:
    assert go_sorted(range(len(keys)), keys, LESS[comparison]) == places


def test_a_heap_ends_a_sort_with_bad_pivots() -> None:
    """A comparison that is always true makes every partition one-sided, until the limit is reached."""
    keys = list(range(200))

    assert sorted(go_sorted(keys, keys, lambda one, other: True)) == keys


def test_equal_keys_have_equal_ranks() -> None:
    assert ranks([(2, "b"), (1, "a"), (2, "b"), (3, "a")]) == [1, 0, 1, 2]
