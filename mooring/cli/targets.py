"""Targets: files that an option names to write to."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
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


def write_whole(option: str, target: Path, pieces: Iterable[str]) -> None:
    """Write all pieces to the file, gzipped if its name says so, or leave whatever was there as it was.

    InputError, which names the option, when it cannot be written.
    """
    try:
        number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        problem = f"expected a file to write to; got {error.strerror}"
        raise InputError(f"{option}: {target}: {problem}") from None
    try:
        with os.fdopen(number, "wb") as file:
            if target.suffix == ".gz":
                with gzip.open(file, "wt", encoding="utf-8") as packed:
                    packed.writelines(pieces)
            else:
                file.writelines(piece.encode() for piece in pieces)
        os.replace(name, target)
    except OSError as error:
        problem = f"expected a file to write to; got {error.strerror}"
        raise InputError(f"{option}: {target}: {problem}") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
