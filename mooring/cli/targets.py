"""Targets: files that an option names to write to."""

from __future__ import annotations

from typing import IO

from ..errors import InputError

STDOUT = "-"


def open_target(option: str, target: str) -> IO[str]:
    """Open the file to write to; InputError, which names the option, when that cannot be."""
    try:
        return open(target, "w", encoding="utf-8")
    except OSError as error:
        problem = f"expected a file to write to; got {error.strerror}"
        raise InputError(f"{option}: {target}: {problem}") from None
