"""Node search: how many more nodes are needed until every pod has one, by simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations_with_replacement
from math import ceil, comb
from typing import TypeAlias

from ...errors import InputError
from ...manifests.timeline import InputObject
from ...sim.settings import DEFAULT_SETTINGS, OnProgress, Settings
from ..stage import PlaceOf
from .answer import NodeSearch, WhatIfAnswer
from .change import ClusterChange
from .node_changes import AddNodes
from .question import ask_what_if

Counts: TypeAlias = tuple[int, ...]
"""A number of nodes for each node to copy."""
MAX_EXCHANGES = 40
MAX_PROOF = 60
"""Limit on the choices of one node less that are tried to prove that a number is the lowest."""


def fit_with_nodes(
    objects: Iterable[InputObject],
    like: str | Sequence[str],
    settings: Settings = DEFAULT_SETTINGS,
    *,
    changes: Sequence[ClusterChange] = (),
    fewest: bool = False,
    as_is: bool = False,
    place_of: PlaceOf | None = None,
    on_progress: OnProgress | None = None,
) -> WhatIfAnswer:
    """Number of further nodes like `like` with which every pod fits that can fit on such a node.

    The nodes are added before `changes`, so that a drain can use them. Several names are used in turn, as for zones;
    with `fewest`, the number of each is chosen so that the sum is small, and `search.is_fewest` is true if it is proven
    to be the lowest. The number is found by simulation: it is enough, and one less is not. With as many nodes of each
    kind as waiting pods, each pod could have a node to itself; as many pods as are waiting even then cannot be helped.
    """
    likes = (like,) if isinstance(like, str) else tuple(dict.fromkeys(like))
    if not likes:
        raise InputError("expected the name of a node to copy (--like); got none")
    given = list(objects)

    def ask(counts: Counts) -> WhatIfAnswer:
        nodes = [AddNodes(n, (name,)) for name, n in zip(likes, counts, strict=True) if n]
        return ask_what_if(
            given,
            [*nodes, *changes],
            settings,
            as_is=as_is,
            place_of=place_of,
            on_progress=on_progress,
        )

    search = _Search(ask, len(likes))
    is_fewest = True if fewest else None
    if fewest and len(likes) > 1:
        counts, is_fewest = search.fewest()
    else:
        counts = search.in_turn()
    answer = search.ask(counts)
    named = dict(zip(likes, counts, strict=True))
    answer.search = NodeSearch(named, search.waiting, search.tried(), unplaced(answer), is_fewest)
    return answer


def unplaced(answer: WhatIfAnswer) -> dict[str, str]:
    """The pods that wait, or that a drain could not evict, with the cause."""
    stuck = {pod: stall.cause for c in answer.courses for stall in c.stalls for pod in stall.pods}
    return {**stuck, **answer.pending_after}


class _Search:
    """The tries: an answer for each choice of numbers."""

    def __init__(self, ask: Callable[[Counts], WhatIfAnswer], kinds: int) -> None:
        self._ask = ask
        self._kinds = kinds
        self._answers: dict[Counts, WhatIfAnswer] = {}
        self.waiting = len(unplaced(self.ask((0,) * kinds)))
        self._most = (self.waiting,) * kinds
        self._hopeless = unplaced(self.ask(self._most))

    def ask(self, counts: Counts) -> WhatIfAnswer:
        """The answer with these nodes."""
        if counts not in self._answers:
            self._answers[counts] = self._ask(counts)
        return self._answers[counts]

    def count_left(self, counts: Counts) -> int:
        """The number of unplaced pods with these nodes, without pods that fit on no such node."""
        left = unplaced(self.ask(counts))
        if len(left) <= len(self._hopeless):
            return 0
        return sum(key not in self._hopeless for key in left)

    def tried(self) -> dict[int, int]:
        """The number of unplaced pods for each number of nodes."""
        found: dict[int, int] = {}
        for counts, answer in self._answers.items():
            left = len(unplaced(answer))
            found[sum(counts)] = min(left, found.get(sum(counts), left))
        return dict(sorted(found.items()))

    def in_turn(self) -> Counts:
        """The smallest number of nodes, divided equally among the kinds."""
        if len(self._hopeless) >= self.waiting:
            return (0,) * self._kinds
        return self._spread(self._smallest(self._spread, sum(self._most)))

    def fewest(self) -> tuple[Counts, bool]:
        """Few nodes, and whether every choice of one less was tried and is not enough."""
        best = self._few()
        while sum(best):
            less = sum(best) - 1
            if comb(less + self._kinds - 1, self._kinds - 1) > MAX_PROOF:
                return best, False
            better = next(filter(self._is_enough, _choices(less, self._kinds)), None)
            if better is None:
                break
            best = self._reduced(better, range(self._kinds))
        return best, True

    def _few(self) -> Counts:
        """Find a small number of nodes: none can be left out, and no two can be exchanged for one."""
        first = self.in_turn()
        if not sum(first):
            return first
        orders = [[(i + j) % self._kinds for j in range(self._kinds)] for i in range(self._kinds)]
        best = min((self._reduced(first, order) for order in orders), key=sum)
        for _ in range(MAX_EXCHANGES):
            better = next(filter(self._is_enough, self._exchanged(best)), None)
            if better is None:
                break
            best = self._reduced(better, range(self._kinds))
        return best

    def _spread(self, number: int) -> Counts:
        """The number, divided among the kinds in turn."""
        each, rest = divmod(number, self._kinds)
        return tuple(each + (i < rest) for i in range(self._kinds))

    def _reduced(self, counts: Counts, order: Iterable[int]) -> Counts:
        """Reduce the number of each kind as far as possible, one kind after the other."""
        for kind in order:

            def with_number(number: int, kind: int = kind, counts: Counts = counts) -> Counts:
                return (*counts[:kind], number, *counts[kind + 1 :])

            if self._is_enough(with_number(0)):
                counts = with_number(0)
            elif counts[kind]:
                counts = with_number(self._smallest(with_number, counts[kind]))
        return counts

    def _exchanged(self, counts: Counts) -> Iterable[Counts]:
        """Variants of `counts` with two nodes exchanged for one of another kind."""
        for one, two in combinations_with_replacement(range(self._kinds), 2):
            for new in range(self._kinds):
                if new in (one, two):
                    continue
                less = list(counts)
                less[one] -= 1
                less[two] -= 1
                less[new] += 1
                if min(less) >= 0:
                    yield tuple(less)

    def _is_enough(self, counts: Counts) -> bool:
        return self.count_left(counts) == 0

    def _smallest(self, counts_of: Callable[[int], Counts], most: int) -> int:
        """The smallest number of nodes that is enough; 0 is not, `most` is.

        Every try is a simulation, so the next number is interpolated; every third one halves the
        interval, for cases where interpolation converges slowly.
        """
        waiting = self.count_left(counts_of(0))
        low, high, left = 0, most, waiting
        tries = 0
        while high - low > 1:
            tries += 1
            guess = low + 1
            if tries % 3 == 0 or (low and left >= waiting):
                guess = (low + high) // 2
            elif low:
                helped_per_node = (waiting - left) / low
                guess = low + ceil(left / helped_per_node)
            guess = min(max(guess, low + 1), high - 1)
            found = self.count_left(counts_of(guess))
            if found:
                low, left = guess, found
            else:
                high = guess
        return high


def _choices(number: int, kinds: int) -> Iterator[Counts]:
    """All ways to divide a number among kinds."""
    if kinds == 1:
        yield (number,)
        return
    for first in range(number + 1):
        for rest in _choices(number - first, kinds - 1):
            yield (first, *rest)
