"""One row: columns of a single row kept as plain numbers, for what-ifs, which are made and dropped by the hundred."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..api.pod import Pod
from .carried import CarriedTerms
from .columns import Ints, LateColumn, ResourceColumns, Size
from .priorities import PriorityColumns
from .terms import TermCounts


class OneRowResources(ResourceColumns):
    """Amounts of one row; an array is made when somebody asks for one."""

    __slots__ = ("_names",)

    def __init__(self, source: ResourceColumns, row: int) -> None:
        self._names = source
        self.rows = [source.rows[row]]

    def __getitem__(self, resource: str) -> Ints:
        amounts = np.array([self.rows[0].get(resource, 0)], dtype=np.int64)
        amounts.flags.writeable = False
        return amounts

    def __contains__(self, resource: object) -> bool:
        return resource in self.rows[0] or resource in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._names, *self.rows[0])))

    def __len__(self) -> int:
        return len(dict.fromkeys((*self._names, *self.rows[0])))

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        here = dict(self.rows[0])
        for resource, amount in amounts.items():
            left = here.get(resource, 0) + sign * amount
            if left:
                here[resource] = left
            else:
                here.pop(resource, None)
        self.rows[0] = here

    def put(self, row: int, amounts: dict[str, int]) -> None:
        self.rows[0] = amounts

    def set(self, row: int, amounts: Mapping[str, int]) -> None:
        self.rows[0] = {resource: amount for resource, amount in amounts.items() if amount}

    def fork(self, size: Size, row: int) -> OneRowResources:
        return OneRowResources(self, 0)


class OneRowPodCount(LateColumn):
    """How many pods are on one row."""

    __slots__ = ("_pods",)

    def __init__(self, pods: Sequence[Mapping[str, Pod]]) -> None:
        self._pods = pods

    def touch(self, row: int) -> None:
        pass

    @property
    def view(self) -> Ints:
        return np.array([len(self._pods[0])], dtype=np.int64)


class OneRowPriorities(PriorityColumns):
    """How many pods of each priority are on one row."""

    def __init__(self, counts: dict[int, int]) -> None:
        self._counts = counts

    def add(self, row: int, priority: int, change: int) -> None:
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
    """The same for the terms that pods carry."""

    def add_pod(self, row: int, pod: Pod, change: int) -> None:
        pass
