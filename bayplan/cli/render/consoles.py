"""Consoles: standard output and standard error as rich sees them.

rich uses colours on a terminal only, and not when NO_COLOR is set.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

ANSWER = "\x1e"
"""Begins the line of an answer until it is written."""
_ANSWER_LINE = re.compile(f"^{ANSWER}.*\n", re.MULTILINE)
_LINE_END = re.compile(r"[^\S\n]+$", re.MULTILINE)
_BLANK_LINES = re.compile("\n{3,}")
PIPE_WIDTH = 1000
"""Without a terminal no line is truncated."""
ASCII = str.maketrans(
    {"█": "#", "▓": "+", "▒": "-", "░": ".", "→": ">", "★": "*", "×": "x", "µ": "u", "…": "."}
    | dict(zip("▁▂▃▄▅▆▇", "_.:-=+*", strict=True))
)
"""Replacements of our signs where only ASCII can be shown."""


def stdout_console() -> Console:
    """The console for results."""
    return _console(stderr=False)


def stderr_console() -> Console:
    """The console for errors, notes and progress."""
    return _console(stderr=True)


@contextmanager
def written_to_stdout(console: Console) -> Iterator[None]:
    """Write the output to `console` at the end, in a form that suits its destination.

    The answer of `conclude` comes last on a terminal, and first in a pipe or a file.
    """
    with console.capture() as captured:
        yield
    text = captured.get()
    if not console.is_terminal:
        text = _LINE_END.sub("", text)
        if answer_comes_first():
            answers = "".join(_ANSWER_LINE.findall(text))
            text = (
                _BLANK_LINES.sub("\n\n", answers + _ANSWER_LINE.sub("", text)).rstrip("\n") + "\n"
            )
    text = text.replace(ANSWER, "")
    if console.options.ascii_only:
        text = text.translate(ASCII)
    sys.stdout.write(text)


def say(console: Console, text: str, style: str = "") -> None:
    """Print a text as it is, in lines of any length."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def note(text: str, word: str = "note", style: str = "dim") -> None:
    """Print a note, or a warning, on standard error."""
    say(stderr_console(), f"{word}: {text}", style)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, such as parts of documents that are not modelled."""
    for text in notes:
        note(text)


def conclude(console: Console, answer: Text) -> None:
    """Print the answer in one line; `written_to_stdout` decides on its place."""
    console.print(answer.__class__(ANSWER).append_text(answer), soft_wrap=True)


def answer_comes_first() -> bool:
    """Whether the answer comes before its tables where there is no terminal: `| head -1` shows it."""
    return True


def _console(stderr: bool) -> Console:
    from rich.console import Console  # a --help does not need it

    stream = sys.stderr if stderr else sys.stdout
    free = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, highlight=False, width=PIPE_WIDTH if free else None)
