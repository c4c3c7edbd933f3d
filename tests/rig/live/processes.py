"""Processes: programs that a test starts, watches and stops, each with its own log."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LAST_WORDS = 2000
POLL_S = 0.05
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Process:
    """One program. Its output goes to `log`."""

    def __init__(self, command: Sequence[str], log: Path, **env: str) -> None:
        self.name = Path(command[0]).name
        self.log = log
        with log.open("ab") as file:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **env},
                start_new_session=True,  # Ctrl-C in a test run must not reach it
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    def wait_until(self, condition: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Wait for a condition outside of this process; raises AssertionError when it ends or on a
        timeout."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self.is_running, f"{self.name} ended before {what}: {self.last_words()}"
            assert time.monotonic() < deadline, f"{self.name}: not {what}: {self.last_words()}"
            time.sleep(POLL_S)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end, up to a timeout; return its exit status, None if it is still running."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, timeout_s: float = 30) -> int:
        """Ask it to end, and wait; return its exit status. A stopped (SIGSTOP) process is resumed
        first."""
        if self.is_running:
            self.send(signal.SIGTERM)
            self.send(signal.SIGCONT)
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end: {self.last_words()}") from None

    def kill(self) -> None:
        """Kill it at once, as in a power failure."""
        if self.is_running:
            self.send(signal.SIGKILL)
        self._popen.wait()

    def send(self, number: int) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    def cpu_s(self) -> float:
        """Processor seconds so far, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def memory_mib(self) -> dict[str, float]:
        """Resident memory now (`rss`) and at its peak (`peak`)."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        sizes = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
        return {
            "rss": sizes.get("VmRSS:", 0) / 1024,  # a process that has just ended has none
            "peak": sizes.get("VmHWM:", 0) / 1024,
        }

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-LAST_WORDS:] if self.log.exists() else ""


def _end_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends for any reason."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    """A free port on the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
