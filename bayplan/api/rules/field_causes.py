"""Field causes: the faults of fields of an object, in the API server's words.

Mirrors staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec


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


def not_found_value(field: str, value: Any, problem: str = "") -> Cause:
    """A value names something that is not there."""
    detail = f": {problem}" if problem else ""
    return Cause("FieldValueNotFound", f"Not found: {_shown(value)}{detail}", field)


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


def unsupported_value(field: str, value: Any, choices: Sequence[str]) -> Cause:
    """A value is not one of the choices."""
    known = ", ".join(f'"{choice}"' for choice in choices)
    message = f"Unsupported value: {_shown(value)}: supported values: {known}"
    return Cause("FieldValueNotSupported", message, field)


def _shown(value: Any) -> str:
    """A value in a message: texts in quotes, everything else as JSON."""
    return f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()
