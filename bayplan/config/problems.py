"""Problems: faults of a configuration, collected instead of raised one by one.

Mirrors staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

import json
from enum import Enum
from typing import Any, NamedTuple

import msgspec


class ProblemKind(Enum):
    """Type of a mistake; from INVALID on, those that validation finds."""

    SYNTAX = "syntax"
    VERSION = "version"
    UNKNOWN_FIELD = "unknown field"
    DUPLICATE_FIELD = "duplicate field"
    TYPE = "type"
    VALUE = "value"
    INVALID = "invalid"
    REQUIRED = "required"
    DUPLICATE = "duplicate"
    UNSUPPORTED = "unsupported"
    FORBIDDEN = "forbidden"


class Upstream(NamedTuple):
    """kube-scheduler's wording of a problem: one or several details, and the value if it is not the
    one found."""

    details: tuple[str, ...]
    value: object = None


class Problem(msgspec.Struct, frozen=True):
    """One mistake: path, expected, found.

    `details` are kube-scheduler's texts, which makes an error of each; `bad_value` is what it
    prints as the value, None where it prints none.
    """

    path: str
    expected: str
    got: str
    kind: ProblemKind = ProblemKind.INVALID
    details: tuple[str, ...] = ()
    bad_value: str | None = None

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}expected {self.expected}; got {self.got}"

    def upstream_texts(self) -> list[str]:
        """Return kube-scheduler's errors for this mistake."""
        words = _UPSTREAM_WORDS[self.kind]
        if self.kind in _VALUELESS:
            start = f"{self.path}: {words}"
        else:
            start = f"{self.path}: {words}: {self.bad_value}"
        return [f"{start}: {detail}" if detail else start for detail in self.details]


_VALUELESS = frozenset({ProblemKind.REQUIRED, ProblemKind.FORBIDDEN})
_UPSTREAM_WORDS = {
    ProblemKind.INVALID: "Invalid value",
    ProblemKind.REQUIRED: "Required value",
    ProblemKind.DUPLICATE: "Duplicate value",
    ProblemKind.UNSUPPORTED: "Unsupported value",
    ProblemKind.FORBIDDEN: "Forbidden",
}


class Problems(list[Problem]):
    """The problems found so far, in the order they were found."""

    def add(
        self,
        path: str,
        expected: str,
        got: object,
        kind: ProblemKind = ProblemKind.INVALID,
        upstream: Upstream | str = "",
    ) -> None:
        """Record that `path` should be `expected` and is `got`, a value of the file.

        `upstream` has kube-scheduler's wording of the same mistake.
        """
        if isinstance(upstream, str):
            upstream = Upstream((upstream,))
        bad_value = None
        if kind not in _VALUELESS:
            value = got if upstream.value is None else upstream.value
            bad_value = json.dumps(value, ensure_ascii=False, default=lambda _: {})
        self.append(Problem(path, expected, show(got), kind, upstream.details, bad_value))

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
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def supported(choices: tuple[str, ...]) -> str:
    """Return kube-scheduler's text for the values a field may have."""
    return "supported values: " + ", ".join(f'"{choice}"' for choice in choices)


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
