"""One row: columns of a single row as plain numbers, for what-ifs, of which an attempt may make hundreds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..api.pod import Pod
from .carried import NONE_HIDDEN, CarriedTerms, Hidden
from .columns import Column, Ints, PriorityColumns, ResourceColumns, Size
from .terms import TermCounts


class OneRowResources(ResourceColumns):
    """Amounts of one row as a dict; arrays are made on demand."""

    __slots__ = ("_amounts", "_names")

    def __init__(self, source: ResourceColumns, row: int) -> None:
        self._names = source
        self._amounts = source.at(row)

    def __getitem__(self, resource: str) -> Ints:
        amounts = np.array([self._amounts.get(resource, 0)], dtype=np.int64)
        amounts.flags.writeable = False
        return amounts

    def __contains__(self, resource: object) -> bool:
        return resource in self._amounts or resource in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._names, *self._amounts)))

    def __len__(self) -> int:
        return len(dict.fromkeys((*self._names, *self._amounts)))

    def amount(self, resource: str, row: int) -> int:
        return self._amounts.get(resource, 0)

    def at(self, row: int) -> dict[str, int]:
        return {name: amount for name, amount in self._amounts.items() if amount}

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        here = self._amounts
        for resource, amount in amounts.items():
            here[resource] = here.get(resource, 0) + sign * amount

    def set(self, row: int, amounts: Mapping[str, int]) -> None:
        self._amounts = dict(amounts)


class OneRowPodCount(Column):
    """Number of pods on one row."""

    __slots__ = ("_pods",)

    def __init__(self, pods: Sequence[Mapping[str, Pod]]) -> None:
        super().__init__(Size(rows=1, capacity=1))
        self._pods = pods

    @property
    def view(self) -> Ints:
        return np.array([len(self._pods[0])], dtype=np.int64)


class OneRowPriorities(PriorityColumns):
    """Number of pods of each priority on one row."""

    def __init__(self, counts: dict[int, int]) -> None:
        self._counts = counts

    def add(self, priority: int, change: int) -> None:
        """Count a pod `change` times."""
        self._counts[priority] = self._counts.get(priority, 0) + change

    def below(self, priority: int) -> Ints:
        found = sum(count for known, count in self._counts.items() if known < priority)
        return np.array([found], dtype=np.int64)

    def has_below(self, row: int, priority: int) -> bool:
        return any(known < priority and count > 0 for known, count in self._counts.items())

    def counts_at(self, row: int) -> dict[int, int]:
        return dict(self._counts)


class NoTermCounts(TermCounts):
    """Terms of pods belong to the whole cluster: a what-if does not count them."""

    def add_pod(self, row: int, pod: Pod, change: int) -> None:
        pass


class NoCarriedTerms(CarriedTerms):
    """Terms that pods carry belong to the whole cluster: a what-if does not count them."""

    def add_pod(self, row: int, pod: Pod, change: int, hidden: Hidden = NONE_HIDDEN) -> None:
        pass
