"""JSON path: the paths of printer columns, as `.status.conditions[?(@.type=="Ready")].status`.

The part of k8s.io/client-go/util/jsonpath that columns use: fields, indices, `[*]`, slices and comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_FIELD = re.compile(r"\.(?P<name>(?:\\.|[^.\[\]\\ ])+)")
_QUOTED = re.compile(r"""\[(?P<quote>['"])(?P<name>(?:\\.|(?!(?P=quote)).)*)(?P=quote)\]""")
_INDEX = re.compile(r"\[(?P<index>-?\d+)\]")
_SLICE = re.compile(r"\[(?P<first>-?\d*):(?P<last>-?\d*)\]")
_FILTER = re.compile(
    r"""\[\?\(\s*@(?P<path>[^=!<>]*?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>.*?)\s*)?\)\]"""
)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
    "<=": lambda one, other: one <= other,
    ">=": lambda one, other: one >= other,
}


class JsonPathError(ValueError):
    """A path that cannot be read."""


class JsonPath:
    """A parsed path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = list(_parse(text))

    def find(self, tree: Any) -> list[Any]:
        """All values at the path."""
        found = [tree]
        for step in self._steps:
            found = [value for one in found for value in step(one)]
        return found

    def first(self, tree: Any) -> Any:
        """The first value at the path; None if there is none."""
        return next(iter(self.find(tree)), None)


@lru_cache(maxsize=4096)
def parse_json_path(text: str) -> JsonPath:
    """The path; raises JsonPathError when it cannot be read."""
    return JsonPath(text)


def _parse(text: str) -> Iterable[Step]:
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1]
    while rest and rest != ".":
        for pattern, make in _KINDS:
            match = pattern.match(rest)
            if match is not None:
                yield make(match)
                rest = rest[match.end() :]
                break
        else:
            raise JsonPathError(f"expected a path as .spec.name or [0]; got {text!r}")


def _field(match: re.Match[str]) -> Step:
    name = re.sub(r"\\(.)", r"\1", match["name"])
    if name == "*":
        return _all
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _index(match: re.Match[str]) -> Step:
    place = int(match["index"])
    return lambda value: (
        (value[place],) if isinstance(value, list) and -len(value) <= place < len(value) else ()
    )


def _slice(match: re.Match[str]) -> Step:
    first, last = (int(match[name]) if match[name] else None for name in ("first", "last"))
    return lambda value: value[first:last] if isinstance(value, list) else ()


def _all(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _filter(match: re.Match[str]) -> Step:
    path, compare = JsonPath(match["path"]), _COMPARE.get(match["op"] or "")
    wanted = _literal(match["value"] or "")

    def holds(item: Any) -> bool:
        found = path.find(item)
        if compare is None or not found:
            return bool(found) and compare is None
        try:
            return compare(found[0], wanted)
        except TypeError:
            return False

    return lambda value: [item for item in _all(value) if holds(item)]


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"') and text[-1:] == text[:1]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text


_KINDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_FIELD, _field),
    (_QUOTED, _field),
    (_INDEX, _index),
    (_SLICE, _slice),
    (re.compile(r"\[\*\]"), lambda match: _all),
    (_FILTER, _filter),
)
