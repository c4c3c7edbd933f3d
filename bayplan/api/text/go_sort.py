"""GoSort: the order in which Go's sort.Slice leaves elements that are equal.

That sort is a pattern-defeating quicksort (Orson Peters, 2021): not stable, but without chance, so that its result is a
function of the input. Up to 12 elements are sorted by insertion, more by parts around a pivot; which elements change
places on the way decides where equal ones end. The sizes, limits and the generator below are those of Go's
implementation; tests/api/text/go_sort_cases.txt has results of it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Less = Callable[[int, int], bool]
"""Whether the first of two keys comes before the second. It need not be consistent."""

BY_INSERTION = 12
"""Limit up to which elements are sorted by insertion, which is stable."""
FEW = 8
MANY = 50
MOST_SWAPS = 12
REPAIRS = 5
MASK = 2**64 - 1


def ranks(keys: Sequence[Any]) -> list[int]:
    """Equal numbers for equal keys, in the order of the keys."""
    ordered = {key: number for number, key in enumerate(sorted(set(keys)))}
    return [ordered[key] for key in keys]


def go_sorted(values: Sequence[T], keys: Sequence[int], less: Less) -> list[T]:
    """The `values` by their `keys`, as sort.Slice leaves them when it compares the keys with `less`."""
    sorting = _Sorting(keys, less)
    sorting.sort(0, len(keys), len(keys).bit_length())
    return [values[place] for place in sorting.places]


class _Sorting:
    """Sorts keys in place; `places` has the former position of each."""

    def __init__(self, keys: Sequence[int], less: Less) -> None:
        self.keys = list(keys)
        self.places = list(range(len(keys)))
        self._less = less

    def sort(self, first: int, end: int, bad_allowed: int) -> None:
        """Sort the keys from `first` up to `end`; with a heap after `bad_allowed` bad pivots."""
        is_balanced = is_partitioned = True
        while end - first > BY_INSERTION:
            size = end - first
            if bad_allowed == 0:
                self._sort_by_heap(first, end)
                return
            if not is_balanced:
                self._scatter(first, size)
                bad_allowed -= 1
            pivot, swaps = self._choose_pivot(first, size)
            if swaps == MOST_SWAPS:  # everything was in descending order
                self._reverse(first, end)
                pivot, swaps = end - 1 - (pivot - first), 0
            looks_sorted = swaps == 0 and is_balanced and is_partitioned
            if looks_sorted and self._repair(first, end):
                return
            if first > 0 and not self._less(self.keys[first - 1], self.keys[pivot]):
                first = self._skip_equal(first, end, pivot)
                continue
            middle, is_partitioned = self._partition(first, end, pivot)
            left, right = middle - first, end - middle
            is_balanced = min(left, right) >= size // 8
            if left < right:
                self.sort(first, middle, bad_allowed)
                first = middle + 1
            else:
                self.sort(middle + 1, end, bad_allowed)
                end = middle
        self._sort_by_insertion(first, end)

    def _swap(self, one: int, other: int) -> None:
        keys, places = self.keys, self.places
        keys[one], keys[other] = keys[other], keys[one]
        places[one], places[other] = places[other], places[one]

    def _is_before(self, one: int, other: int) -> bool:
        return self._less(self.keys[one], self.keys[other])

    def _sink(self, place: int, lowest: int) -> None:
        """Move the key at `place` down as long as it comes before its lower neighbour."""
        while place > lowest and self._is_before(place, place - 1):
            self._swap(place, place - 1)
            place -= 1

    def _sort_by_insertion(self, first: int, end: int) -> None:
        for place in range(first + 1, end):
            self._sink(place, first)

    def _sort_by_heap(self, first: int, end: int) -> None:
        size = end - first
        for root in range((size - 1) // 2, -1, -1):
            self._sift_down(root, size, first)
        for last in range(size - 1, -1, -1):
            self._swap(first, first + last)
            self._sift_down(0, last, first)

    def _sift_down(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self._is_before(first + child, first + child + 1):
                child += 1
            if not self._is_before(first + root, first + child):
                return
            self._swap(first + root, first + child)
            root = child

    def _reverse(self, first: int, end: int) -> None:
        self.keys[first:end] = self.keys[first:end][::-1]
        self.places[first:end] = self.places[first:end][::-1]

    def _scatter(self, first: int, size: int) -> None:
        """Move three keys from the middle to places that look random."""
        state, room = size, 1 << size.bit_length()
        for place in range(first + size // 4 * 2 - 1, first + size // 4 * 2 + 2):
            state ^= state << 13 & MASK
            state ^= state >> 7
            state ^= state << 17 & MASK
            other = state & (room - 1)
            self._swap(place, first + (other - size if other >= size else other))

    def _choose_pivot(self, first: int, size: int) -> tuple[int, int]:
        """The place of a middle key, and the number of compared pairs in the wrong order."""
        places = [first + size // 4 * quarter for quarter in (1, 2, 3)]
        swaps = 0
        if size >= MANY:
            for i, place in enumerate(places):
                places[i], more = self._median(place - 1, place, place + 1)
                swaps += more
        if size < FEW:
            return places[1], swaps
        pivot, more = self._median(*places)
        return pivot, swaps + more

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        swaps = 0
        if self._is_before(b, a):
            a, b, swaps = b, a, swaps + 1
        if self._is_before(c, b):
            b, swaps = c, swaps + 1
        if self._is_before(b, a):
            b, swaps = a, swaps + 1
        return b, swaps

    def _repair(self, first: int, end: int) -> bool:
        """Move a few keys that are out of order; whether all are in order then."""
        place = first + 1
        for _ in range(REPAIRS):
            while place < end and not self._is_before(place, place - 1):
                place += 1
            if place == end:
                return True
            if end - first < MANY:
                return False
            self._swap(place, place - 1)
            if place - first >= 2:
                self._sink(place - 1, 0)
            self._rise(place, end)
        return False

    def _rise(self, place: int, end: int) -> None:
        """Move the key at `place` up as long as its upper neighbour comes before it."""
        while place + 1 < end and self._is_before(place + 1, place):
            self._swap(place + 1, place)
            place += 1

    def _skip_equal(self, first: int, end: int, pivot: int) -> int:
        """Put the keys that are equal to the pivot, which none is below, in front; returns where they end."""
        self._swap(first, pivot)
        low, high = first + 1, end - 1
        while True:
            while low <= high and not self._is_before(first, low):
                low += 1
            while low <= high and self._is_before(first, high):
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1

    def _partition(self, first: int, end: int, pivot: int) -> tuple[int, bool]:
        """Put the keys before the pivot in front of it; returns its place, and whether nothing had to move."""
        self._swap(first, pivot)
        low, high, has_moved = first + 1, end - 1, False
        while True:
            while low <= high and self._is_before(low, first):
                low += 1
            while low <= high and not self._is_before(high, first):
                high -= 1
            if low > high:
                self._swap(high, first)
                return high, not has_moved
            self._swap(low, high)
            low, high, has_moved = low + 1, high - 1, True
