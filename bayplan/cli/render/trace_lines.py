"""Trace lines: the events of a simulation, one line each, as they occur."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from ..options.output_files import STDOUT, stream_target
from .consoles import stdout_console

if TYPE_CHECKING:
    from rich.console import Console

    from ...sim import TraceEntry

NARROWEST, WIDEST = 20, 60
WHAT_WIDTH = len("terminating")
TIME_WIDTH = len("00:00:00")
STYLES = {
    "bound": "green",
    "finished": "blue",
    "refused": "yellow",
    "failed": "red",
    "waiting": "cyan",
    "selected": "cyan",
    "reserved": "cyan",
    "lost": "red",
    "preempted": "magenta",
    "terminating": "magenta",
    "deleted": "magenta",
    "removed": "magenta",
}


class TraceWriter:
    """Writes entries as aligned lines, in colour on a terminal, or as JSON lines."""

    def __init__(self, stream: IO[str], console: Console | None, as_json: bool) -> None:
        self._stream = stream
        self._console = console
        self._as_json = as_json
        self._width = NARROWEST
        self.is_stdout = stream is sys.stdout

    def make_room(self, longest_name: int) -> None:
        """Make the column of names at least this wide."""
        self._width = min(max(self._width, longest_name), WIDEST)

    def __call__(self, entry: TraceEntry) -> None:
        """Write one entry."""
        self.make_room(len(entry.subject))
        if self._as_json:
            self._stream.write(json_line(entry))
        elif self._console is not None:
            from rich.text import Text

            style = STYLES.get(entry.what, "")
            self._console.print(Text(text_line(entry, self._width), style=style), soft_wrap=True)
        else:
            self._stream.write(text_line(entry, self._width) + "\n")


@contextmanager
def trace_to(target: str | None, as_json: bool) -> Iterator[TraceWriter | None]:
    """A writer to a file, or to standard output for `-`; None when there is nothing to write to."""
    if target is None:
        yield None
    elif target == STDOUT:
        console = stdout_console()
        yield TraceWriter(sys.stdout, console if console.is_terminal else None, as_json)
        if not as_json:
            sys.stdout.write("\n")
    else:
        with stream_target("--trace", target) as stream:
            yield TraceWriter(stream, None, as_json)


def text_line(entry: TraceEntry, width: int) -> str:
    """`00:00:05  bound        shop/web-1  to worker-a1`."""
    time = clock_time(entry.time_s)
    line = f"{time:<{TIME_WIDTH}}  {entry.what:<{WHAT_WIDTH}}  {entry.subject:<{width}}"
    return f"{line}  {entry.details}" if entry.details else line.rstrip()


def json_line(entry: TraceEntry) -> str:
    """The entry as one line of JSON."""
    import msgspec

    return msgspec.json.encode(entry.to_dict()).decode() + "\n"


def clock_time(seconds: float) -> str:
    """Hours, minutes and seconds since the start; fractions only where there are any."""
    millis = round(seconds * 1000)
    minutes, rest = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, fraction = divmod(rest, 1000)
    text = f"{hours:02d}:{minutes:02d}:{whole:02d}"
    return f"{text}.{fraction:03d}" if fraction else text
