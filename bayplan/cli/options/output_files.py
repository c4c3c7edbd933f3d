"""Output files: files that an option names to write to."""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

from ...errors import OutputError, os_errors_named

STDOUT = "-"
EXPECTED = "a file to write to"


@contextmanager
def stream_target(option: str, target: str) -> Iterator[IO[str]]:
    """Open a file that is written during the run; InputError, with the name of the option, if that fails."""
    place = f"{option}: {target}"
    with os_errors_named(place, EXPECTED):
        stream = open(target, "w", encoding="utf-8")  # noqa: SIM115 - closed below, with its faults named
    with os_errors_named(place, EXPECTED, OutputError), stream:
        yield stream


class WholeFile:
    """A file that is written completely or not at all: a temporary file in the same folder replaces it at the end.

    A device or a pipe is written directly. Errors name the option: InputError if it cannot be opened, OutputError if it
    cannot be written.
    """

    def __init__(self, option: str, target: Path) -> None:
        self._shown = f"{option}: {target}"
        self._target = target
        self._place: Path | None = None
        is_file = target.is_file() or not target.exists()
        with os_errors_named(self._shown, EXPECTED):
            file = self._open_beside() if is_file else target.open("wb")
            packed = gzip.GzipFile(fileobj=file, mode="wb") if target.suffix == ".gz" else file
        self._files = [packed] if packed is file else [packed, file]

    def write(self, text: str | bytes) -> int:
        """Add to it; returns how much."""
        with os_errors_named(self._shown, EXPECTED, OutputError):
            self._files[0].write(text.encode() if isinstance(text, str) else text)
        return len(text)

    def keep(self) -> None:
        """Move the complete file to its place; a second call does nothing."""
        with os_errors_named(self._shown, EXPECTED, OutputError):
            for file in self._files:
                file.close()
            if self._place is not None:
                os.replace(self._beside, self._place)
                self._place = None

    def drop(self) -> None:
        """Discard the written part; an earlier file stays. A complete file is left alone."""
        for file in self._files:
            with suppress(OSError):  # the disk may be full
                file.close()
        if self._place is not None:
            self._beside.unlink(missing_ok=True)

    def _open_beside(self) -> IO[bytes]:
        self._place = self._target.resolve()  # a link keeps pointing to the file
        mode = self._place.stat().st_mode if self._place.exists() else None
        if mode is not None:
            os.close(os.open(self._place, os.O_WRONLY))  # raises for one that may not be written
        self._beside = self._place.with_name(f".{self._place.name}.{token_hex(4)}")
        file = self._beside.open("xb")
        if mode is not None:
            self._beside.chmod(stat.S_IMODE(mode))
        return file


@contextmanager
def whole_target(option: str, target: Path) -> Iterator[WholeFile]:
    """A file to write to, which is opened at once, and gzipped by its name.

    When the `with` ends with an exception, an existing file is not changed.
    """
    file = WholeFile(option, target)
    try:
        yield file
        file.keep()
    finally:
        file.drop()


def write_whole(option: str, target: Path, pieces: Iterable[str | bytes]) -> None:
    """Write all pieces to the file, gzipped by its name, or leave the former file as it was."""
    with whole_target(option, target) as file:
        for piece in pieces:
            file.write(piece)
