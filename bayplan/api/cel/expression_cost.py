"""Expression cost: upper bounds of the text that an expression builds, and of the work of evaluating it.

kube-apiserver adds up costs while it evaluates. The library in use counts the steps of loops only, so the sizes of
texts and lists are bounded before: each part of an expression has a size that is linear in those of the elements of the
loops around it. A size is that of the JSON form, in bytes, with one byte more for each element of a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from .macro_expansion import ENTRIES, MAPPED, MERGED, SORTED
from .syntax_tree import CelCall, CelIdent, CelLiteral, CelLoop, CelNode, CelSelect

MAX_ITERATIONS = 10_000
"""Most steps of all loops of an expression, which the library limits."""
MAX_TEXT = 1 << 26
"""Most bytes that a part of an expression may be able to have."""
MAX_WORK = 1 << 28
"""Limit on the bytes of all parts of an expression, each multiplied by its evaluations."""
_MOST = 1 << 80
_SMALL = 16
MAX_INPUT = 1 << 22
"""Bytes of the longest input that is certain not to need a check."""
_ANSWERS = frozenset(
    (
        *("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_", "_||_", "!_", "@in", "size"),
        *("startsWith", "endsWith", "contains", "matches", "isSorted", "int", "double", "bool"),
        *("@not_strictly_false", "indexOf", "lastIndexOf", "sets.contains", "sets.intersects"),
        *("sets.equivalent", "isQuantity", "isIP", "isCIDR", "isURL", "isSemver", "has"),
    )
)
"""Functions whose answer is a number or a truth value."""
_SEARCHES = frozenset(("contains", "matches", "@in", "indexOf", "lastIndexOf", "find", "findAll"))
"""Functions that compare their first argument with the second one at each place."""
_SLOW = {
    "split": 16,
    **dict.fromkeys(
        (
            *("isSorted", "sum", "min", "max", "slice", "flatten", "sort", "distinct", "reverse"),
            *(ENTRIES, MAPPED, MERGED, SORTED),
        ),
        64,
    ),
}
"""Functions that take long for each byte, and how much longer than the others."""


class TextSize(NamedTuple):
    """A size: a constant, and a multiple of the size of each element of a loop that is evaluated now."""

    base: int
    parts: Mapping[str, int] = {}

    def plus(self, other: TextSize) -> TextSize:
        names = {*self.parts, *other.parts}
        parts = {name: self.parts.get(name, 0) + other.parts.get(name, 0) for name in names}
        return TextSize(min(self.base + other.base, _MOST), parts)

    def times(self, count: int) -> TextSize:
        parts = {name: min(many * count, _MOST) for name, many in self.parts.items()}
        return TextSize(min(self.base * count, _MOST), parts)


class LoopVariable(NamedTuple):
    """A variable of a loop: the limit of all elements together, and their number."""

    total: int
    steps: int


class LoopScope(NamedTuple):
    """The variables of the loops around a part of an expression, and how often it is evaluated."""

    variables: Mapping[str, LoopVariable]
    times: int

    def most(self, size: TextSize) -> int:
        """The most that a size can be."""
        parts = (many * self.variables[name].total for name, many in size.parts.items())
        return min(size.base + sum(parts), _MOST)

    def sum(self, size: TextSize) -> int:
        """The sum of a size over all steps of the loops."""
        total = size.base * self.times
        for name, many in size.parts.items():
            variable = self.variables[name]
            total += many * variable.total * (self.times // variable.steps)
        return min(total, _MOST)


class RuleCost(NamedTuple):
    """The most bytes of a part of an expression, and the sum of all parts."""

    most: int
    work: int

    @property
    def is_bounded(self) -> bool:
        return self.most <= MAX_TEXT and self.work <= MAX_WORK

    def for_size(self, size: int) -> RuleCost:
        """The cost for smaller input, if the cost grows with the input."""
        return RuleCost(self.most * size // MAX_INPUT, self.work * size // MAX_INPUT)


Known: TypeAlias = Mapping[str, TextSize]


class _Measure:
    """Measures an expression for inputs of given sizes; lists of the input have at most `items` elements."""

    def __init__(self, sizes: Mapping[str, int], items: int) -> None:
        self._items = items
        self._known: dict[str, TextSize] = {name: TextSize(size) for name, size in sizes.items()}
        self.most = 0
        self.work = 0

    def size(self, node: CelNode, scope: LoopScope) -> TextSize:
        """The size of a part; it is added to the cost."""
        size = self._size(node, scope)
        self.most = max(self.most, scope.most(size))
        if not isinstance(node, CelIdent | CelSelect):
            self._add(scope.sum(size))
        return size

    def _add(self, work: int) -> None:
        self.work = min(self.work + work, _MOST)

    def _size(self, node: CelNode, scope: LoopScope) -> TextSize:
        if isinstance(node, CelIdent):
            return self._known.get(node.name, TextSize(_SMALL))
        if isinstance(node, CelSelect):
            return self.size(node.operand, scope)
        if isinstance(node, CelLiteral):
            size = TextSize(_SMALL + len(node.text or ""))
            for part in node.parts:
                size = size.plus(self.size(part, scope))
            return size
        return self._call(node, scope) if isinstance(node, CelCall) else self._loop(node, scope)

    def _call(self, node: CelCall, scope: LoopScope) -> TextSize:
        sizes = [self.size(part, scope) for part in node.args]
        name, most = node.function, [scope.most(size) for size in sizes]
        if name in _SEARCHES and len(most) > 1:
            self._add(scope.sum(sizes[0]) * min(most[1], 64))
        if name in _SLOW:
            self._add(scope.sum(sizes[0]) * _SLOW[name])
        if name in _ANSWERS:
            return TextSize(_SMALL)
        if name in ("_[_]", "substring"):
            return sizes[0]
        if name in ("split", ENTRIES):
            return sizes[0].times(2)
        if name == "join" and len(sizes) > 1:
            return TextSize(most[0] * (1 + most[1]))
        if name == "replace":
            return TextSize((most[0] + 1) * (1 + most[2]))
        total = TextSize(8 * MAX_ITERATIONS if name == "lists.range" else _SMALL)
        for size in sizes:
            total = total.plus(size)
        return total.times(3) if name == "format" else total

    def _loop(self, node: CelLoop, scope: LoopScope) -> TextSize:
        over = self.size(node.over, scope)
        is_input = not isinstance(node.over, CelCall | CelLoop)
        items = min(self._items if is_input else MAX_ITERATIONS, MAX_ITERATIONS)
        count = max(1, min(scope.most(over), items))
        own = {
            f"{name}#{node.number}": LoopVariable(scope.most(over), count) for name in node.names
        }
        inner = LoopScope({**scope.variables, **own}, scope.times * count)
        before = dict(self._known)
        for name in node.names:
            self._known[name] = TextSize(0, {f"{name}#{node.number}": 1})
        self._known[node.result_name] = TextSize(0)
        total = self.size(node.start, scope)
        if _collects(node):  # the list so far is copied in each step
            self._add(scope.times * count**2 * _SMALL)
        for step in node.steps:
            size = self.size(step, inner)
            times = sum(size.parts.get(name, 0) for name in own)
            rest = {name: many for name, many in size.parts.items() if name not in own}
            total = total.plus(TextSize(size.base, rest).times(count)).plus(over.times(times))
        self._known = before
        return total


def _collects(node: CelLoop) -> bool:
    """Whether the loop makes a list, as `map` and `filter` do."""
    return isinstance(node.start, CelLiteral) and any(
        _appends(step, node.result_name) for step in node.steps
    )


def _appends(node: CelNode, name: str) -> bool:
    if not isinstance(node, CelCall):
        return False
    if node.function == "_+_":
        return any(isinstance(part, CelIdent) and part.name == name for part in node.args)
    return any(_appends(part, name) for part in node.args)


def cost_of(root: CelNode, sizes: Mapping[str, int], items: int = MAX_ITERATIONS) -> RuleCost:
    """The cost of an expression for inputs of these sizes, by their names."""
    measure = _Measure(sizes, items)
    measure.size(root, LoopScope({}, 1))
    return RuleCost(measure.most, measure.work)


def longest_list(value: Any) -> int:
    """The length of the longest list or map in a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(
        [len(parts), *(longest_list(part) for part in parts if isinstance(part, dict | list))]
    )


def size_of(value: Any) -> int:
    """The size of a value; raises ValueError for one that JSON has not."""
    try:
        return len(msgspec.json.encode(value))
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from None
