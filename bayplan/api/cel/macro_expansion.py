"""Macro expansion: the macros with two variables, and `sortBy`, in terms of those that the library in use has.

`items.all(i, x, p)` becomes `items.__entries().all(e, q)`: `__entries` gives the index or key `k` and the value `v` of
each element, and q is p with `e.k` for i and `e.v` for x. The others are expanded likewise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .device_expressions import Function

_TOKEN = re.compile(
    r"""(?s)(?P<text>[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))"""
    r"""|(?P<comment>//[^\n]*)|(?P<name>[A-Za-z_]\w*)|(?P<space>\s+)|(?P<other>.)"""
)
_OPEN, _CLOSE = "([{", ")]}"
ENTRIES, MAPPED, MERGED, SORTED = "__entries", "__mapped", "__merged", "__sorted"

Tokens = list[str]


def expand_macros(text: str) -> str:
    """The expression without macros that have two variables; the same text if it has none."""
    tokens = [match[0] for match in _TOKEN.finditer(text)]
    return "".join(_expanded(tokens)) if any(name in tokens for name in _MACROS) else text


def _expanded(tokens: Tokens) -> Tokens:
    """The tokens with the macros expanded, the innermost first."""
    found: Tokens = []
    at = 0
    while at < len(tokens):
        args, end = _arguments(tokens, at)
        if args is None:
            found.append(tokens[at])
            at += 1
            continue
        inner = [_expanded(arg) for arg in args]
        made = _MACROS[tokens[at]](tokens[at], inner, f"__e{at}_{len(tokens)}")
        # A macro with one variable stays. Its arguments are not expanded again: calls may be nested deeply.
        found += _chain([(tokens[at], inner)]) if made is None else made
        at = end
    return found


def _arguments(tokens: Tokens, at: int) -> tuple[list[Tokens] | None, int]:
    """The arguments of the macro at a position, and the position after it; None if there is no macro."""
    is_call = (
        tokens[at] in _MACROS and tokens[at + 1 : at + 2] == ["("] and tokens[at - 1 : at] == ["."]
    )
    if not is_call:
        return None, at
    args: list[Tokens] = [[]]
    depth, place = 0, at + 2
    while place < len(tokens):
        token = tokens[place]
        if token in _CLOSE and len(token) == 1:
            if depth == 0:
                return args, place + 1
            depth -= 1
        depth += token in _OPEN and len(token) == 1
        if token == "," and depth == 0:
            args.append([])
        else:
            args[-1].append(token)
        place += 1
    return None, at  # a syntax error, which the library reports


def _variable(tokens: Tokens) -> str:
    """The name that an argument consists of; empty if it is another expression."""
    words = [token for token in tokens if not token.isspace()]
    return words[0] if len(words) == 1 and words[0].isidentifier() else ""


def _with(tokens: Sequence[str], first: str, second: str, entry: str) -> Tokens:
    """The tokens with the variables replaced by those of an entry."""
    found: Tokens = []
    for token in tokens:
        before = next((one for one in reversed(found) if not one.isspace()), "")
        if token in (first, second) and before != ".":
            found += [entry, ".", "v" if token == second else "k"]
        else:
            found.append(token)
    return found


def _quantifier(name: str, args: list[Tokens], entry: str) -> Tokens | None:
    if len(args) != 3:
        return None
    first, second = _variable(args[0]), _variable(args[1])
    word = "exists_one" if name == "existsOne" else name
    if not first or not second or first == second:
        return None
    return _chain([(ENTRIES, []), (word, [[entry], _with(args[2], first, second, entry)])])


def _transformation(name: str, args: list[Tokens], entry: str) -> Tokens | None:
    first, second = (_variable(arg) for arg in args[:2]) if len(args) in (3, 4) else ("", "")
    if not first or not second or first == second:
        return None
    steps: list[tuple[str, list[Tokens]]] = [(ENTRIES, [])]
    if len(args) == 4:
        steps.append(("filter", [[entry], _with(args[2], first, second, entry)]))
    value = _with(args[-1], first, second, entry)
    if name == "transformMap":
        value = ["{", "'k'", ":", entry, ".", "k", ",", "'v'", ":", *value, "}"]
    steps.append(("map", [[entry], value]))
    last = {"transformMap": MAPPED, "transformMapEntry": MERGED}.get(name)
    return _chain([*steps, (last, [])] if last else steps)


def _sort_by(name: str, args: list[Tokens], entry: str) -> Tokens | None:
    variable = _variable(args[0]) if len(args) == 2 else ""
    if not variable:
        return None
    pair = ["{", "'v'", ":", variable, ",", "'k'", ":", *args[1], "}"]
    return _chain([("map", [[variable], pair]), (SORTED, [])])


def _chain(steps: list[tuple[str, list[Tokens]]]) -> Tokens:
    """The tokens of calls one after another; the first one follows a dot."""
    found: Tokens = []
    for i, (name, args) in enumerate(steps):
        found += [*((".",) if i else ()), name, "("]
        for j, arg in enumerate(args):
            found += [*((",",) if j else ()), *arg]
        found.append(")")
    return found


_MACROS: dict[str, Callable[[str, list[Tokens], str], Tokens | None]] = {
    "all": _quantifier,
    "exists": _quantifier,
    "existsOne": _quantifier,
    "exists_one": _quantifier,
    "transformList": _transformation,
    "transformMap": _transformation,
    "transformMapEntry": _transformation,
    "sortBy": _sort_by,
}


def macro_functions(cel: Any) -> list[Function]:
    """The functions that expanded macros call."""
    kind = cel.Type
    dyn = kind.DYN
    return [
        (ENTRIES, dyn, [dyn], True, _entries),
        (MAPPED, dyn, [dyn], True, lambda pairs: {pair["k"]: pair["v"] for pair in pairs}),
        (MERGED, dyn, [dyn], True, _merged),
        (SORTED, dyn, [dyn], True, _sorted),
    ]


def _entries(items: Any) -> list[dict[str, Any]]:
    pairs = items.items() if isinstance(items, dict) else enumerate(items)
    return [{"k": key, "v": value} for key, value in pairs]


def _merged(parts: list[dict[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key in found:
                raise ValueError(f"insert failed: key {key} already exists")
            found[key] = value
    return found


def _sorted(pairs: list[dict[str, Any]]) -> list[Any]:
    return [pair["v"] for pair in sorted(pairs, key=lambda pair: pair["k"])]
