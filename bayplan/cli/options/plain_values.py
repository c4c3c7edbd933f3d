"""Plain values: values of options, converted without pydantic.

typer converts values with pydantic, whose import takes longer than all else that typer does. Most values are right as
they are, or after one call. Those are taken here; all others, wrong ones among them, are left to typer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

_LEFT = object()
"""In place of a value that typer has to convert."""


def take_plain_values(params: Iterable[Any]) -> None:
    """Let these parameters of a command take plain values as they are."""
    for param in params:
        # Versions of typer without pydantic do not have this method.
        if "get_runtime_param" not in vars(param) and hasattr(param, "get_runtime_param"):
            param.get_runtime_param = PlainValues(param)


class PlainValues:
    """Replaces a parameter's `get_runtime_param`, and its result."""

    def __init__(self, param: Any) -> None:
        self._type = param.type_descriptor.annotation
        self._info = param.type_descriptor.parameter_info
        self._make_converter = param.get_runtime_param

    def __call__(self) -> PlainValues:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        plain = self._plain(value, self._type)
        if plain is not _LEFT:
            return plain
        return self._make_converter().coerce(value, param=param, ctx=ctx)

    def _plain(self, value: Any, kind: Any) -> Any:
        if get_origin(kind) is list and isinstance(value, list | tuple):
            values = [self._plain(item, get_args(kind)[0]) for item in value]
            return _LEFT if _LEFT in values else values
        if not isinstance(kind, type) or self._info.parser is not None:
            return _LEFT
        if type(value) is kind:
            return value
        if issubclass(kind, Enum):
            return next((one for one in kind if one.value == value), _LEFT)
        return Path(value) if kind is Path and self._is_readable(value) else _LEFT

    def _is_readable(self, path: str) -> bool:
        """Whether a path stands the checks that typer makes."""
        info = self._info
        is_checked = info.writable or info.resolve_path or not (info.file_okay and info.dir_okay)
        return not is_checked and os.access(path, os.R_OK)
