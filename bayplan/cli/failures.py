"""Failures: the one place where an error of a command becomes a line and an exit status."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from ..errors import BayplanError, EngineDisagreementError, OutputError
from .render.consoles import stderr_console

BAD_INPUT = 2
INTERNAL_ERROR = 70
"""A bug of ours, or output that could not be written (EX_SOFTWARE of sysexits.h)."""
INTERRUPTED = 130
BROKEN_PIPE = 141

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
COMMAND_LINE_ERRORS: tuple[type[BaseException], ...] = (
    typer.Exit,
    typer.Abort,
    # typer brings its own copy of click, or uses click, by its version
    *(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"),
)


has_tracebacks = False
"""Whether errors are printed with a traceback, as with `bayplan --debug`."""


@contextmanager
def failures_reported() -> Iterator[None]:
    """End with one line on standard error and an exit status instead of a traceback.

    2 for bad input, 70 for a bug or for output that cannot be written, 130 for Ctrl-C, 141 when the reader of our
    output went away. Errors of the command line itself are left to click.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # a full disk or a closed pipe must show here, not when the interpreter ends
    except COMMAND_LINE_ERRORS:
        raise
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        _leave_stdout()
        raise SystemExit(BROKEN_PIPE) from None
    except EngineDisagreementError as error:
        _report(error, _bug_text(error))
        raise SystemExit(INTERNAL_ERROR) from None
    except OutputError as error:
        _report(error, str(error))
        raise SystemExit(INTERNAL_ERROR) from None
    except BayplanError as error:
        _report(error, str(error))
        raise SystemExit(BAD_INPUT) from None
    except OSError as error:
        _leave_stdout()
        place = error.filename or ("standard output" if error.errno in FULL else "")
        _report(error, f"{place}: {error.strerror}" if place else str(error))
        raise SystemExit(INTERNAL_ERROR) from None
    except Exception as error:
        # Last resort: any other exception is a bug; its status must differ from those of documented answers.
        _report(error, _bug_text(error))
        raise SystemExit(INTERNAL_ERROR) from None


def print_error(text: str) -> None:
    """Print an error for people; one line, unless a file has several faults."""
    console = stderr_console()
    for line in text.splitlines():
        console.print("[bold red]error:[/]", end=" ")
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _bug_text(error: Exception) -> str:
    text = " ".join(str(error).split())
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    command = " ".join(["bayplan --debug", *sys.argv[1:2]])
    return (
        f"internal error: {named} ({_place(error)}). This is a bug in Bayplan: `{command} ...` prints the traceback; "
        "please report it as an issue of the project, with the input if it can be shared"
    )


def _place(error: Exception) -> str:
    """File and line where the error was raised, from the package's folder on."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "no traceback"
    file = frames[-1].filename.replace(os.sep, "/")
    return f"{file.rpartition('/site-packages/')[2].rpartition('/bayplan/')[2]}:{frames[-1].lineno}"


def _report(error: Exception, text: str) -> None:
    with suppress(OSError):  # standard error may be full or closed, too; the status stays
        if has_tracebacks:
            traceback.print_exception(error, file=sys.stderr)
        print_error(text)


def _leave_stdout() -> None:
    """Direct standard output elsewhere: Python flushes it once more at its end."""
    with suppress(OSError, ValueError):  # a stream without a descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
