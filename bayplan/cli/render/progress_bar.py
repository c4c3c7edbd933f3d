"""Progress bar: a bar on a terminal for work that takes more than half a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .consoles import stderr_console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 0.5
INTERVAL_S = 0.1


class ProgressBar:
    """Shows how much of something is done; appears after half a second, on a terminal only."""

    def __init__(self, label: str) -> None:
        self._bar: Progress | None = None
        self._label = label
        self._console = stderr_console()
        self._due = time.monotonic() + PATIENCE_S if self._console.is_terminal else float("inf")

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + INTERVAL_S
        if self._bar is None:
            self._bar, self._task = self._make(total)
            # It is kept before it starts: Ctrl-C in the middle of the start must be able to stop it.
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)

    def _make(self, total: int) -> tuple[Progress, TaskID]:
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        bar = Progress(
            *columns,
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=False,  # the answer must never go where the bar is
        )
        return bar, bar.add_task(self._label, total=total)

    def describe(self, label: str) -> None:
        """Change the text beside the bar."""
        self._label = label
        if self._bar is not None:
            self._bar.update(self._task, description=label)

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress_bar(label: str) -> Iterator[ProgressBar]:
    """A bar for the work done inside the `with`."""
    bar = ProgressBar(label)
    try:
        yield bar
    finally:
        bar.close()
