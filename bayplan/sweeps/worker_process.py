"""Worker process: a worker as a program, `python -m bayplan.sweeps.worker_process`.

It reads a run per line from standard input, as JSON, and writes a result per line to standard output. It ends when its
input ends, also in the middle of a run: then the process that started it is gone, and with it the reader of the result.
"""

from __future__ import annotations

import os
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

import msgspec

from .sweep_run import SweepRun
from .worker import Worker


def main() -> None:
    """Do the runs that are received as lines. Output of plugins goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives out runs
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    worker, lines = Worker(), SimpleQueue[bytes]()
    Thread(target=_read, args=(sys.stdin.buffer, lines), daemon=True).start()
    try:
        while True:
            result = worker.run(msgspec.json.decode(lines.get(), type=SweepRun))
            target.write(msgspec.json.encode(result) + b"\n")
            target.flush()
    except BrokenPipeError:
        os._exit(0)  # the reader is gone, and the buffer cannot be written


def _read(source: BinaryIO, lines: SimpleQueue[bytes]) -> None:
    """Pass lines on until the input ends, and the process with it."""
    for line in source:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
