"""Elements that are equal end where Go's sort.Slice leaves them."""

import operator
from pathlib import Path

import pytest

from bayplan.api.go_sort import go_sorted, sorted_by

CASES = Path(__file__).with_name("go_sort_cases.txt")
LESS = {"strict": operator.lt, "odd": lambda one, other: one < other or (one == other and one % 2)}


def cases() -> list[tuple[str, list[int], list[int]]]:
    found = []
    for line in CASES.read_text().splitlines():
        if not line.startswith("#"):
            keys, places = line.partition(" ")[2].split(";")
            found.append((line.split()[0], *[list(map(int, p.split(","))) for p in (keys, places)]))
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
    """A comparison that always says yes makes every partition one-sided, until the limit is reached."""
    keys = list(range(200))

    assert sorted(go_sorted(keys, keys, lambda one, other: True)) == keys


def test_sorting_by_a_key_is_stable_up_to_twelve_elements_and_as_in_go_above() -> None:
    _, keys, places = next(
        c
        for c in cases()
        if c[0] == "strict"
        and len(c[1]) > 12
        and c[2] != sorted(range(len(c[1])), key=c[1].__getitem__)
    )

    assert sorted_by(range(12), lambda place: keys[place]) == sorted(
        range(12), key=keys.__getitem__
    )
    assert sorted_by(range(len(keys)), lambda place: keys[place]) == places
