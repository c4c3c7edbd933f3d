"""Processes: programs that a test starts, watches and ends, each with a log of its own."""

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
    """One program. What it writes goes to `log`."""

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
                start_new_session=True,  # Ctrl-C in a test run is not meant for it
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    def wait_until(self, condition: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Wait for something outside of this process's reach; AssertionError when it ends or takes too long."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert self.is_running, f"{self.name} ended before {what}: {self.last_words()}"
            assert time.monotonic() < deadline, f"{self.name}: not {what}: {self.last_words()}"
            time.sleep(POLL_S)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end, but not for longer than that; returns its exit status, None if it goes on."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, timeout_s: float = 30) -> int:
        """Ask it to end, and wait; returns its exit status. One that was frozen is thawed first."""
        if self.is_running:
            self.send(signal.SIGTERM)
            self.send(signal.SIGCONT)
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end: {self.last_words()}") from None

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        if self.is_running:
            self.send(signal.SIGKILL)
        self._popen.wait()

    def send(self, number: int) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    def cpu_s(self) -> float:
        """Seconds on a processor so far, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def memory_mib(self) -> dict[str, float]:
        """Resident memory now (`rss`) and at its peak (`peak`)."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        sizes = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
        return {
            "rss": sizes.get("VmRSS:", 0) / 1024,  # one that has just ended has none
            "peak": sizes.get("VmHWM:", 0) / 1024,
        }

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-LAST_WORDS:] if self.log.exists() else ""


def _end_with_parent() -> None:
    """Ask the kernel to end this process when whoever started it is gone, however that came."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    """A port on the loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
