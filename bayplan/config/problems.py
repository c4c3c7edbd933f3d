"""Problems: faults of a configuration, collected instead of raised one by one.

Mirrors staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

import json
from typing import Any

import msgspec

MAX_SHOWN = 100
"""Characters of a text of the file that a message repeats."""


class Problem(msgspec.Struct, frozen=True):
    """One mistake: path, expected, found."""

    path: str
    expected: str
    got: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}expected {self.expected}; got {self.got}"


class Problems(list[Problem]):
    """The problems found so far, in the order they were found."""

    def add(self, path: str, expected: str, got: object) -> None:
        """Record that `path` should be `expected` and is `got`, a value of the file."""
        self.append(Problem(path, expected, show(got)))

    def cover(self, path: str) -> bool:
        """Whether a problem at or above `path` is already recorded."""
        return any(is_within(path, problem.path) for problem in self)


def show(value: Any) -> str:
    """Return the text for a value of the file in a message."""
    match value:
        case Literally():
            return value
        case None | "":
            return "nothing"
        case dict() | msgspec.Struct():
            return "a mapping" if value else "an empty mapping"
        case list() | tuple():
            return f"a list of {len(value)}" if value else "an empty list"
        case str() if len(value) > MAX_SHOWN:
            return show(f"{value[: MAX_SHOWN - 1]}…")
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


class Literally(str):
    """Text of a message that is not a value of the file, shown without quotes."""

    __slots__ = ()


def is_within(path: str, ancestor: str) -> bool:
    """Whether `path` is `ancestor` or below it; the empty path is the whole file."""
    if not ancestor or path == ancestor:
        return True
    return path.startswith((f"{ancestor}.", f"{ancestor}["))


def child(path: str, name: str) -> str:
    """Returns the path of field `name` below `path`."""
    return f"{path}.{name}" if path else name
