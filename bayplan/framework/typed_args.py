"""Typed args: a plugin's arguments as a type of its own."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ..errors import InputError

T = TypeVar("T", bound=msgspec.Struct)


def typed_args(kind: type[T], args: Any) -> T:
    """`args` as `kind`: unchanged, the defaults for None, or converted from a mapping; InputError if it is invalid."""
    if isinstance(args, kind):
        return args
    try:
        return msgspec.convert({} if args is None else args, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"args: {error}") from error
