"""Reach: the rows that each of many node selectors picks, computed for all selectors at once.

A cluster may have thousands of volumes, each with a node selector of its own: "on this host", "in this zone". Most
selectors name values of one label, and are looked up together by the code of the row's value. The others are matched
one by one, each distinct selector once.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..api.selectors import LabelSelector, NodeSelector, Requirement
from .columns import Bools, Ints, Rows
from .labels import ABSENT, LabelColumn
from .node_table import NodeTable

Alternatives: TypeAlias = tuple[tuple[Requirement, ...], ...]
"""Alternatives, each a list of conditions on labels that must all hold. An empty list picks nothing."""

EVERYWHERE: Alternatives = ((),)


def alternatives_of(selector: NodeSelector | LabelSelector | None) -> Alternatives:
    """The conditions of a selector; None picks every node. Conditions on the node's name are left out."""
    if selector is None:
        return EVERYWHERE
    if isinstance(selector, LabelSelector):
        return (selector.requirements,) if selector.is_usable else ()
    return tuple(term.expressions for term in selector.usable_terms)


def match_alternatives(table: NodeTable, alternatives: Alternatives, rows: Rows) -> Bools:
    """bool per row of `rows`: the node meets one of the alternatives."""
    matched = np.zeros(table.count(rows), dtype=np.bool_)
    for requirements in alternatives:
        meets = np.ones(len(matched), dtype=np.bool_)
        for requirement in requirements:
            meets &= table.labels.match(requirement, rows)
        matched |= meets
    return matched


class Reach:
    """Node selectors by number, and the first of a list of them that picks each row."""

    def __init__(self) -> None:
        self._numbers: dict[Alternatives, int] = {}
        self._everywhere: set[int] = set()
        self._by_label: dict[str, _LabelValues] = {}
        self._others: dict[int, Alternatives] = {}

    def number(self, alternatives: Alternatives) -> int:
        """The number of a selector; equal ones have one number."""
        known = self._numbers.get(alternatives)
        if known is not None:
            return known
        number = self._numbers[alternatives] = len(self._numbers)
        if any(not requirements for requirements in alternatives):
            self._everywhere.add(number)
        elif all(len(own) == 1 and own[0].operator == "In" for own in alternatives):
            for requirements in alternatives:
                key = requirements[0].key
                values = self._by_label.setdefault(key, _LabelValues(key))
                values.add(number, requirements[0].values or ())
        else:
            self._others[number] = alternatives
        return number

    def first(self, selectors: Ints, table: NodeTable, rows: Rows, depth: int = 1) -> Ints:
        """int64, `depth` lines with an entry per row of `rows`: which of `selectors` pick it, the first ones first.

        `selectors` holds numbers of selectors, and may hold one more than once; the answer holds positions in it, its
        length where no (further) one picks the row.
        """
        places = self._places(selectors, depth)
        nowhere = len(selectors)
        found = [values.first(places, nowhere, table, rows) for values in self._by_label.values()]
        size = table.count(rows)
        for number in self._everywhere:
            found.append(np.repeat(places[:, number, None], size, axis=1))
        for number, alternatives in self._others.items():
            if places[0, number] < nowhere:
                picked = match_alternatives(table, alternatives, rows)
                found.append(np.where(picked, places[:, number, None], nowhere))
        if not found:
            return np.full((depth, size), nowhere, dtype=np.int64)
        if depth == 1:
            nearest: Ints = np.minimum.reduce(found)
            return nearest
        # Two alternatives of a selector may pick the same row.
        return _without_doubles(np.sort(np.concatenate(found), axis=0), nowhere)[:depth]

    def _places(self, selectors: Ints, depth: int) -> Ints:
        """int64, `depth` lines with an entry per known selector: its positions in `selectors`, in ascending order."""
        nowhere = len(selectors)
        places = np.full((depth, max(len(self._numbers), 1)), nowhere, dtype=np.int64)
        positions = np.arange(nowhere, dtype=np.int64)
        if depth == 1:
            places[0, selectors[::-1]] = positions[
                ::-1
            ]  # the first of equal selectors is written last
            return places
        order = np.argsort(selectors, kind="stable")
        grouped = selectors[order]
        ranks = _ranks(grouped)
        near = ranks < depth
        places[ranks[near], grouped[near]] = order[near]
        return places


def _without_doubles(places: Ints, nowhere: int) -> Ints:
    """The sorted lines, without repeated places in a row."""
    doubled = np.zeros(places.shape, dtype=np.bool_)
    doubled[1:] = places[1:] == places[:-1]
    return np.sort(np.where(doubled, nowhere, places), axis=0)


def _ranks(grouped: Ints) -> Ints:
    """int64 per entry: its position among equal entries, which are adjacent."""
    if not len(grouped):
        return grouped
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    lengths = np.diff(np.r_[starts, len(grouped)])
    return np.arange(len(grouped), dtype=np.int64) - np.repeat(starts, lengths)


def _fill(by_code: Ints, places: Ints, codes: Ints, nowhere: int) -> None:
    """Put the nearest of `places` into the slots of `codes`, each once and in order."""
    there = places < nowhere
    # One number for code and place: sorting those is quicker than sorting pairs.
    entries = np.unique(codes[there] * nowhere + places[there])
    codes, places = np.divmod(entries, max(nowhere, 1))
    ranks = _ranks(codes)
    near = ranks < len(by_code)
    by_code[ranks[near], codes[near]] = places[near]


class _LabelValues:
    """Selectors that name values of one label: one entry per selector and value."""

    __slots__ = ("_key", "_known", "_numbers", "_slots", "_values")

    def __init__(self, key: str) -> None:
        self._key = key
        self._numbers: list[int] = []
        self._values: list[str] = []
        self._known: tuple[Ints, Ints] | None = None
        self._slots = -1

    def add(self, number: int, values: tuple[str, ...]) -> None:
        """One more selector."""
        for value in values:
            self._numbers.append(number)
            self._values.append(value)
        self._known = None

    def first(self, places: Ints, nowhere: int, table: NodeTable, rows: Rows) -> Ints:
        """int64, as many lines as `places` with an entry per row: the first places of selectors that pick it."""
        column = table.labels.column(self._key)
        numbers, codes = self._codes(column)
        by_code = np.full((len(places), column.slots), nowhere, dtype=np.int64)
        if len(places) == 1:
            np.minimum.at(by_code[0], codes, places[0, numbers])
        else:
            _fill(by_code, places[:, numbers], np.tile(codes, (len(places), 1)), nowhere)
        found: Ints = by_code[:, column.codes[rows]]
        return found

    def _codes(self, column: LabelColumn) -> tuple[Ints, Ints]:
        """Numbers of selectors and codes of their values; a value that no node ever had is left out."""
        if self._known is None or self._slots != column.slots:
            codes = np.array([column.code_of(value) for value in self._values], dtype=np.int64)
            there = codes != ABSENT
            self._known = np.array(self._numbers, dtype=np.int64)[there], codes[there]
            self._slots = column.slots
        return self._known
