"""Failures: what becomes of errors on the way out: one line, and an exit status."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

from ..errors import BayplanError
from .consoles import stderr_console

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

Parameters = ParamSpec("Parameters")


class Tracebacks:
    """Whether errors are printed with a traceback, which `bayplan --debug` asks for."""

    def __init__(self) -> None:
        self._is_enabled = False

    def enable(self) -> None:
        """Print them from now on."""
        self._is_enabled = True

    def show(self, error: BaseException) -> None:
        """Print where `error` comes from, with its causes."""
        if self._is_enabled:
            traceback.print_exception(error, file=sys.stderr)


tracebacks = Tracebacks()


def reports_failures(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Let `command` end with a line on standard error instead of a traceback.

    2 for bad input, 130 for Ctrl-C, 141 when the reader of our output went away.
    """

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except BayplanError as error:
            tracebacks.show(error)
            print_error(str(error))
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Python flushes standard output once more at its end; there must be somewhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(BROKEN_PIPE) from None

    return run


def print_error(text: str) -> None:
    """Print an error for people; one line, unless a file has several faults."""
    console = stderr_console()
    for line in text.splitlines():
        console.print("[bold red]error:[/]", end=" ")
        console.print(line, markup=False, highlight=False, soft_wrap=True)
