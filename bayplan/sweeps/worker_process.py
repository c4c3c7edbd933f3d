"""Worker process: a worker as a program, `python -m bayplan.sweeps.worker_process`.

It reads a run per line from standard input, as JSON, and writes a result per line to standard output. It ends when its
input ends, so it does not outlive the process that started it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import BinaryIO

import msgspec

from .sweep_run import SweepRun
from .worker import Worker


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Do the runs that come as lines, until there are no more."""
    worker = Worker()
    for line in source:
        result = worker.run(msgspec.json.decode(line, type=SweepRun))
        target.write(msgspec.json.encode(result) + b"\n")
        target.flush()


def main() -> None:
    """Serve on standard input and output. Output of plugins goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives out runs
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, target)
    except BrokenPipeError:
        os._exit(0)  # the reader is gone, and the buffer cannot be written


if __name__ == "__main__":
    main()
