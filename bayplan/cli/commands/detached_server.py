"""Detached server: `bayplan up --detach`, a server that goes on when the command has ended.

The process is forked before it does anything else. The child serves; the parent waits until the child is ready, or
relays its output if it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from ...cluster.private_files import open_private
from ..failures import INTERRUPTED


class DetachedServer:
    """The child's side: its output goes to a temporary file until it is ready."""

    def __init__(self, pipe: int, output: Path) -> None:
        self._pipe = pipe
        self._output = output

    def be_ready(self, message: Mapping[str, Any], log: Path) -> None:
        """Write to `log` from now on, and send the parent the output so far."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._output.unlink(missing_ok=True)
        _redirect(open_private(log, os.O_WRONLY | os.O_APPEND), 1, 2)
        os.write(self._pipe, json.dumps(message).encode())
        os.close(self._pipe)


def fork_server(keeps_stdin: bool, on_ready: Callable[[Mapping[str, Any]], None]) -> DetachedServer:
    """Return in a new process, which is the server. The old one calls `on_ready` and exits, or prints why the
    server ended and exits with its status."""
    receive, send = os.pipe()
    descriptor, name = tempfile.mkstemp(prefix="bayplan-", suffix=".log")
    # Python ignores what a signal's handler raises in the functions that it calls after a fork.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(receive)
        os.setsid()
        _redirect(descriptor, 1, 2)
        if not keeps_stdin:
            _redirect(os.open(os.devnull, os.O_RDONLY), 0)
        return DetachedServer(send, Path(name))
    os.close(send)
    os.close(descriptor)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        with os.fdopen(receive) as file:
            text = file.read()
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGTERM)
        Path(name).unlink(missing_ok=True)
        raise typer.Exit(INTERRUPTED) from None
    if text:
        on_ready(json.loads(text))
        raise typer.Exit(0)
    _, status = os.waitpid(pid, 0)
    sys.stderr.write(Path(name).read_text(errors="replace"))
    Path(name).unlink(missing_ok=True)
    raise typer.Exit(os.waitstatus_to_exitcode(status) or 1)


def _redirect(descriptor: int, *targets: int) -> None:
    for target in targets:
        os.dup2(descriptor, target)
    os.close(descriptor)
