"""Field causes: the faults of fields of an object, in the API server's words.

Mirrors staging/src/k8s.io/apimachinery/pkg/util/validation/field/{errors,path}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

Tree = Mapping[str, Any]
Faults = Callable[[Any], Sequence[str]]
"""The messages about a value; none if it is valid."""


class Cause(NamedTuple):
    """One cause of an error."""

    reason: str
    message: str
    field: str = ""

    def as_dict(self) -> dict[str, str]:
        found = {"reason": self.reason, "message": self.message}
        return found | {"field": self.field} if self.field else found


def required(field: str, message: str = "") -> Cause:
    """A value is missing."""
    return Cause("FieldValueRequired", f"Required value{f': {message}' if message else ''}", field)


def invalid_value(field: str, value: Any, problem: str) -> Cause:
    """A value is invalid."""
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {problem}", field)


def duplicate(field: str, value: Any) -> Cause:
    """A value that must be unique is there twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    """A list has too many items."""
    items = "item" if limit == 1 else "items"
    message = f"Too many: {count}: must have at most {limit} {items}"
    return Cause("FieldValueTooMany", message, field)


def too_long(field: str, limit: int) -> Cause:
    """A text is too long."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def forbidden_field(field: str, problem: str = "") -> Cause:
    """A field must not be set, or not be changed."""
    return Cause("FieldValueForbidden", f"Forbidden{f': {problem}' if problem else ''}", field)


def _shown(value: Any) -> str:
    """A value in a message: texts in quotes, everything else as JSON."""
    return f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()


_OWN: Any = object()
"""Stands for the value of the field that a fault is about."""


class Part:
    """A part of an object: its fields, its path, and the list of faults of the object.

    A fault is about a field of the part, or about the part itself if the name is empty.
    """

    __slots__ = ("causes", "path", "tree")

    def __init__(
        self, tree: Tree | None, path: str = "", causes: list[Cause] | None = None
    ) -> None:
        self.tree: Tree = tree or {}
        self.path = path
        self.causes: list[Cause] = [] if causes is None else causes

    def get(self, name: str) -> Any:
        """The value of a field; None without it."""
        return self.tree.get(name)

    def has(self, name: str) -> bool:
        """Whether a field is set."""
        return self.tree.get(name) is not None

    def set_of(self, names: Sequence[str]) -> list[str]:
        """The fields that are set."""
        return [name for name in names if self.tree.get(name) is not None]

    def at(self, name: str) -> str:
        """The path of a field."""
        if not name or not self.path:
            return name or self.path
        return f"{self.path}{name}" if name[0] == "[" else f"{self.path}.{name}"

    def below(self, name: str, tree: Tree | None = None) -> Part:
        """The object in a field, or `tree` in place of it; an empty one without both."""
        return Part(self.tree.get(name) if tree is None else tree, self.at(name), self.causes)

    def items(self, name: str) -> Iterator[tuple[str, Any]]:
        """Name and value of each item of a list."""
        for i, item in enumerate(self.tree.get(name) or ()):
            yield f"{name}[{i}]", item

    def each(self, *names: str) -> Iterator[Part]:
        """The objects in lists."""
        for name in names:
            for i, item in enumerate(self.tree.get(name) or ()):
                yield Part(item, self.at(f"{name}[{i}]"), self.causes)

    # Faults

    def required(self, name: str, problem: str = "") -> None:
        self.causes.append(required(self.at(name), problem))

    def invalid(self, name: str, problem: str, value: Any = _OWN) -> None:
        shown = self.tree.get(name) if value is _OWN else value
        self.causes.append(invalid_value(self.at(name), shown, problem))

    def forbidden(self, name: str, problem: str = "") -> None:
        self.causes.append(forbidden_field(self.at(name), problem))

    def unsupported(self, name: str, words: Sequence[str], value: Any = _OWN) -> None:
        shown = _shown(self.tree.get(name) if value is _OWN else value)
        known = ", ".join(f'"{word}"' for word in words)
        message = f"Unsupported value: {shown}: supported values: {known}"
        self.causes.append(Cause("FieldValueNotSupported", message, self.at(name)))

    def duplicate(self, name: str, value: Any) -> None:
        self.causes.append(duplicate(self.at(name), value))

    def not_found(self, name: str, value: Any, problem: str = "") -> None:
        message = f"Not found: {_shown(value)}{f': {problem}' if problem else ''}"
        self.causes.append(Cause("FieldValueNotFound", message, self.at(name)))

    def too_long(self, name: str, limit: int) -> None:
        self.causes.append(too_long(self.at(name), limit))

    def too_many(self, name: str, count: int, limit: int) -> None:
        self.causes.append(too_many(self.at(name), count, limit))

    def warn(self, name: str | None, text: str) -> None:
        """Add a warning; about no field if the name is None."""
        self.causes.append(Cause("Warning", text, "" if name is None else self.at(name)))

    # Rules

    def needs(self, *names: str, problem: str = "") -> bool:
        """Refuse empty fields; True if there is none."""
        empty = [name for name in names if not self.tree.get(name)]
        for name in empty:
            self.required(name, problem)
        return not empty

    def check(self, name: str, faults: Faults, value: Any = _OWN) -> None:
        """Refuse a value with faults; a field without a value is an empty text."""
        checked = (self.tree.get(name) or "") if value is _OWN else value
        for fault in faults(checked):
            self.invalid(name, fault, checked)

    def text(self, name: str, faults: Faults) -> None:
        """Refuse a text with faults, unless it is empty."""
        if self.tree.get(name):
            self.check(name, faults)

    def given(self, name: str, faults: Faults) -> None:
        """Refuse a text with faults, if it is set; it may be empty."""
        if self.has(name):
            self.check(name, faults)

    def needs_text(self, name: str, faults: Faults) -> None:
        """Refuse an empty text, and one with faults."""
        if self.needs(name):
            self.check(name, faults)

    def choice(self, name: str, *words: str) -> None:
        """Refuse another word than these."""
        word = self.tree.get(name)
        if word is not None and word not in words:
            self.unsupported(name, words, str(word))

    def needs_choice(self, name: str, *words: str) -> None:
        """Refuse a word that is absent or not one of these."""
        word = self.tree.get(name) or ""
        if word not in words:
            self.unsupported(name, words, word)

    def limit(self, name: str, least: int, most: int, problem: str) -> None:
        """Refuse a number that is not within these."""
        number = self.tree.get(name)
        if number is not None and not least <= number <= most:
            self.invalid(name, problem)

    def not_negative(self, *names: str) -> None:
        """Refuse numbers below 0."""
        for name in names:
            number = self.tree.get(name)
            if isinstance(number, int) and number < 0:
                self.invalid(name, NEGATIVE)

    def unique(self, name: str, seen: set[Any], value: Any = _OWN) -> None:
        """Refuse a value that is in `seen`, to which it is added."""
        found = (self.tree.get(name) or "") if value is _OWN else value
        if found in seen:
            self.duplicate(name, found)
        seen.add(found)


NEGATIVE = "must be greater than or equal to 0"
