"""Consoles: standard output and standard error as rich sees them.

rich uses colours on a terminal only, and not when NO_COLOR is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 1000
"""Without a terminal nothing is cut to fit."""
ASCII = str.maketrans(
    {"█": "#", "▓": "+", "▒": "-", "░": ".", "→": ">", "★": "*", "×": "x", "µ": "u", "…": "."}
    | dict(zip("▁▂▃▄▅▆▇", "_.:-=+*", strict=True))
)
"""What stands for our signs where only ASCII can be shown."""


def stdout_console() -> Console:
    """The console for results."""
    return _console(stderr=False)


def stderr_console() -> Console:
    """The console for errors, notes and progress."""
    return _console(stderr=True)


@contextmanager
def written_to_stdout(console: Console) -> Iterator[None]:
    """Write what is printed to `console` at the end, in a form that suits where it goes."""
    with console.capture() as captured:
        yield
    text = captured.get()
    if not console.is_terminal:
        text = "\n".join(line.rstrip() for line in text.split("\n"))
    if console.options.ascii_only:
        text = text.translate(ASCII)
    sys.stdout.write(text)


def _console(stderr: bool) -> Console:
    from rich.console import Console  # a --help does not need it

    stream = sys.stderr if stderr else sys.stdout
    free = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, highlight=False, width=PIPE_WIDTH if free else None)
