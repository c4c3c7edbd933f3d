"""Object rules: expressions about the fields of an object, as in `x-kubernetes-validations`.

Mirrors k8s.io/apiserver/pkg/cel/library and its environment: lists, sets, regular expressions, quantities, versions,
addresses, URLs, formats. Macros cannot be added to the library in use: those that it lacks are expanded before.
`self` and `oldSelf` have no types here, unless they are a duration or a time: fields are checked by the definition's
rules, and what else kube-apiserver's checker refuses when an expression is compiled fails when it is evaluated.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..text.patterns import compile_pattern
from .device_expressions import (
    MISSING,
    CelError,
    Function,
    declared,
    first_line,
    quantity_functions,
)
from .expression_cost import MAX_INPUT, MAX_WORK, cost_of, longest_list, size_of
from .macro_expansion import expand_macros, macro_functions
from .syntax_tree import CelTree, read_tree
from .text_formats import address_functions, format_functions

_SYNTAX = "Syntax error"
_FAULT = re.compile(r"^(?:\w+: )?ERROR: <input>:(?P<line>\d+):(?P<column>\d+): (?P<text>.*)$", re.M)
_UNDECLARED = re.compile(r"undeclared reference to '(?P<name>[\w.]+)'")
TOO_COSTLY = "operation cancelled: actual cost limit exceeded"
MAX_COMPARISONS = 10_000_000
_NO_KEY = re.compile(r'Key not found in map : "(?P<key>.*)"$', re.DOTALL)


class UnavailableError(CelError):
    """An expression with something that is not available here."""


class CelRule:
    """A compiled expression."""

    def __init__(self, text: str, kind: str = "DYN") -> None:
        text = expand_macros(text)
        try:
            self._compiled = _rule_environment(kind).compile(text)
        except RuntimeError as error:
            problem = first_line(error)
            if _SYNTAX in problem:
                raise CelError(f"ERROR: {problem}") from None
            unknown = _unknown_names(text, str(error))
            if unknown:
                raise CelError("\n".join(unknown)) from None
            raise UnavailableError(problem) from None
        self._most = cost_of(self.tree.root, dict.fromkeys(("self", "oldSelf"), MAX_INPUT))
        self.kind = self._compiled.return_type().name()
        """The type of its value: DYN where it depends on `self`."""

    @property
    def tree(self) -> CelTree:
        """The expression as a tree."""
        return read_tree(self._compiled.serialize())

    def evaluate(self, value: Any, old: Any = None, budget: WorkBudget | None = None) -> Any:
        """The value of the expression; raises CelError when evaluation fails or is too costly."""
        self._check(value, old, budget or WorkBudget())
        try:
            answer = self._compiled.eval(data={"self": value, "oldSelf": old})
        except RuntimeError as error:
            problem = first_line(error)
            raise CelError(TOO_COSTLY if "budget" in problem else problem) from None
        if answer.type().name() != "ERROR":
            return answer.value()
        problem = first_line(answer.value())
        match = _NO_KEY.search(problem)
        raise CelError(f"no such key: {match['key']}" if match else problem)

    def _check(self, value: Any, old: Any, budget: WorkBudget) -> None:
        """Subtract the work of evaluating the expression, which may be too much."""
        try:
            sizes = {"self": size_of(value), "oldSelf": size_of(old)}
        except ValueError as error:
            raise CelError(f"expected a value in JSON; {error}") from None
        size = sum(sizes.values())
        cost = self._most.for_size(size)
        if not self._most.is_bounded:
            items = max(longest_list(value), longest_list(old))
            cost = cost_of(self.tree.root, sizes, items)
            if not cost.is_bounded:
                raise CelError(TOO_COSTLY)
        budget.left -= size + cost.work
        if budget.left < 0:
            raise CelError(TOO_COSTLY)


class WorkBudget:
    """Bytes that the rules of one object may work on."""

    def __init__(self) -> None:
        self.left = 2 * MAX_WORK


@lru_cache(maxsize=4096)
def compile_rule(text: str, kind: str = "DYN") -> CelRule:
    """The expression about a value of this type; raises UnavailableError, or CelError when it is wrong."""
    return CelRule(text, kind)


@lru_cache(maxsize=3)
def _rule_environment(kind: str) -> Any:
    try:
        from cel_expr_python import cel  # an optional extra
        from cel_expr_python.ext import ext_optional, ext_strings
    except ImportError:
        raise UnavailableError(MISSING) from None
    makers = (
        *(quantity_functions, address_functions, format_functions, macro_functions, _functions),
    )
    functions = [function for make in makers for function in make(cel)]
    of_value = getattr(cel.Type, kind)
    return cel.NewEnv(
        variables={"self": of_value, "oldSelf": of_value},
        extensions=[
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
            cel.CelExtension("rules", declared(cel, functions)),
        ],
    )


def _functions(cel: Any) -> list[Function]:
    kind = cel.Type
    text, dyn, yes, number = kind.STRING, kind.DYN, kind.BOOL, kind.INT
    items = kind.List(dyn)
    return [
        ("isSorted", yes, [dyn], True, lambda items: list(items) == sorted(items)),
        ("sum", dyn, [dyn], True, sum),
        ("min", dyn, [dyn], True, min),
        ("max", dyn, [dyn], True, max),
        ("indexOf", number, [items, dyn], True, _index),
        ("lastIndexOf", number, [items, dyn], True, _last_index),
        ("slice", dyn, [items, number, number], True, _slice),
        ("flatten", dyn, [items], True, lambda given: _flat(given, 1)),
        ("flatten", dyn, [items, number], True, _flat),
        ("sort", dyn, [items], True, sorted),
        ("distinct", dyn, [items], True, _distinct),
        ("reverse", dyn, [items], True, lambda given: list(given)[::-1]),
        ("lists.range", dyn, [number], False, _range),
        ("find", text, [text, text], True, _find),
        ("findAll", dyn, [text, text], True, lambda value, pattern: _find_all(value, pattern, -1)),
        ("findAll", dyn, [text, text, number], True, _find_all),
        ("sets.contains", yes, [dyn, dyn], False, _contains),
        ("sets.intersects", yes, [dyn, dyn], False, _intersects),
        (
            "sets.equivalent",
            yes,
            [dyn, dyn],
            False,
            lambda a, b: _contains(a, b) and _contains(b, a),
        ),
    ]


def shown_fault(text: str, offset: int, fault: str) -> str:
    """A fault in an expression with its place, as kube-apiserver shows it."""
    before = text[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1)
    source = text.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: {fault}\n | {source}\n | {'.' * column}^"


def _unknown_names(text: str, problem: str) -> list[str]:
    """The faults of an expression whose only faults are names that are not declared; empty if there are others."""
    lines, found = text.split("\n"), []
    for fault in _FAULT.finditer(problem):
        line, column = int(fault["line"]), int(fault["column"])
        name = _UNDECLARED.match(fault["text"])
        offset = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
        if name is None:
            return []
        if text[offset : offset + 1] == "(":
            unknown = f"undeclared reference to '{name['name']}' (in container '')"
            found.append(shown_fault(text, offset, unknown))
            continue
        path = name["name"].split(".")
        start = offset - len(".".join(path[:-1]))
        if not text.startswith(path[0], start):
            start = offset
        fault_text = f"undeclared reference to '{path[0]}' (in container '')"
        found.append(shown_fault(text, start, fault_text))
    return found


def _find(value: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(value)
    return match[0] if match else ""


def _find_all(value: str, pattern: str, limit: int) -> list[str]:
    found = [match[0] for match in compile_pattern(pattern).finditer(value)]
    return found if limit < 0 else found[:limit]


def _index(items: list[Any], item: Any) -> int:
    return next((i for i, one in enumerate(items) if one == item), -1)


def _last_index(items: list[Any], item: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if items[i] == item), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items)[start:end]


def _flat(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        found += _flat(item, depth - 1) if isinstance(item, list) and depth else [item]
    return found


def _distinct(items: list[Any]) -> list[Any]:
    _check_cost(len(items) ** 2)
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def _range(count: int) -> list[int]:
    _check_cost(count)
    return list(range(count))


def _contains(one: list[Any], other: list[Any]) -> bool:
    _check_cost(len(one) * len(other))
    return all(x in one for x in other)


def _intersects(one: list[Any], other: list[Any]) -> bool:
    _check_cost(len(one) * len(other))
    return any(x in one for x in other)


def _check_cost(comparisons: int) -> None:
    if comparisons > MAX_COMPARISONS:
        raise ValueError(TOO_COSTLY)
