"""StampedCache: the caches on the path of a decision, in one class, counted by name.

A cache holds answers by key. All of them are dropped when their stamp changes (whatever they depend on besides the
key), or when there are too many. Dropping costs time only. docs/engine.md lists the names.
"""

from __future__ import annotations

from collections.abc import Hashable, Sized
from itertools import islice
from random import Random
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class CacheCounts:
    """Hits, misses and invalidations of the caches of one name."""

    __slots__ = ("drops", "hits", "misses")

    def __init__(self, hits: int = 0, misses: int = 0, drops: int = 0) -> None:
        self.hits = hits
        self.misses = misses
        self.drops = drops

    def minus(self, before: CacheCounts) -> CacheCounts:
        """The counts since `before`."""
        return CacheCounts(
            self.hits - before.hits, self.misses - before.misses, self.drops - before.drops
        )


NOTHING = CacheCounts()
_counts: dict[str, CacheCounts] = {}
"""Counts of all caches of this process, by name."""


def counts_of(name: str) -> CacheCounts:
    """The counts of all caches of this process with this name."""
    return _counts.setdefault(name, CacheCounts())


def read_counts() -> dict[str, CacheCounts]:
    """A copy of all counts of this process, by name."""
    return {name: counts.minus(NOTHING) for name, counts in sorted(_counts.items())}


class StampedCache(Generic[Key, Answer]):
    """Answers by key, at most `limit`, valid while the stamp that is given with a key stays the same.

    found = cache.get(key, stamp)
    if found is None:
        found = cache.put(key, make())
    """

    __slots__ = ("_answers", "_counts", "_limit", "_stamp")

    def __init__(self, name: str, limit: int = 4096) -> None:
        self._answers: dict[Key, Answer] = {}
        self._counts = counts_of(name)
        self._limit = limit
        self._stamp: Hashable = None

    def get(self, key: Key, stamp: Hashable = None) -> Answer | None:
        """The answer for `key`; None when there is none for this stamp."""
        if stamp is not self._stamp and stamp != self._stamp:
            self.drop()
            self._stamp = stamp
        found = self._answers.get(key)
        if found is None:
            self._counts.misses += 1
        else:
            self._counts.hits += 1
        return found

    def put(self, key: Key, answer: Answer) -> Answer:
        """Remember and return the answer for the stamp that `get` was called with."""
        if len(self._answers) >= self._limit:
            self.drop()
        self._answers[key] = answer
        return answer

    def drop(self) -> None:
        """Forget all answers."""
        if self._answers:
            self._counts.drops += 1
            self._answers.clear()

    def __len__(self) -> int:
        return len(self._answers)


class Budget:
    """Memory that several caches share: to make room, answers of any of them are dropped at random.

    Classes of pods often come in turn. With a few more of them than there is room for, the answer that
    was used longest ago is the next to be needed, and dropping that one would leave no hits at all.
    """

    MOST_CELLS = 6_000_000
    """Numbers that all answers hold at most: 48 MB, unless the table is large."""
    LEAST_COLUMNS = 450
    """Number of answers, with a number per row of the table, for which there is room in any case."""
    MOST_ENTRIES = 8192

    __slots__ = ("_cells", "_most_cells", "_random", "_table", "entries")

    def __init__(self, most_cells: int | None = None, table: Sized = ()) -> None:
        self._most_cells = self.MOST_CELLS if most_cells is None else most_cells
        self._table = table
        self.entries: dict[Hashable, tuple[Any, int, CacheCounts]] = {}
        """Answers, their cells and whose they are."""
        self._cells = 0
        self._random = Random(0)

    def put(self, key: Hashable, answer: Any, cells: int, counts: CacheCounts) -> None:
        """Remember an answer of `cells` numbers; others are dropped until there is room."""
        entries = self.entries
        if key in entries:
            self._cells -= entries.pop(key)[1]
        most_cells = max(self._most_cells, self.LEAST_COLUMNS * len(self._table))
        while entries and (self._cells + cells > most_cells or len(entries) >= self.MOST_ENTRIES):
            self._drop(next(islice(entries, self._random.randrange(len(entries)), None)))
        entries[key] = (answer, cells, counts)
        self._cells += cells

    def _drop(self, key: Hashable) -> None:
        _, cells, counts = self.entries.pop(key)
        counts.drops += 1
        self._cells -= cells

    def drop(self) -> None:
        """Forget all answers of all caches."""
        for key in list(self.entries):
            self._drop(key)


class BudgetedCache(Generic[Key, Answer]):
    """Answers by key, which share a budget of memory with those of other caches."""

    __slots__ = ("_budget", "_counts", "_name")

    def __init__(self, name: str, budget: Budget) -> None:
        self._name = name
        self._budget = budget
        self._counts = counts_of(name)

    def get(self, key: Key) -> Answer | None:
        """The answer for `key`; None if there is none."""
        entry = self._budget.entries.get((self._name, key))
        if entry is None:
            self._counts.misses += 1
            return None
        self._counts.hits += 1
        answer: Answer = entry[0]
        return answer

    def put(self, key: Key, answer: Answer, cells: int) -> Answer:
        """Remember and return an answer that holds `cells` numbers."""
        self._budget.put((self._name, key), answer, cells, self._counts)
        return answer
