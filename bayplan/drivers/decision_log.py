"""Decision log: one JSON line per attempt of a scheduler, in a file that is rotated, or on standard output."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import IO

import msgspec

from ..clock import Clock
from ..errors import InputError, os_errors_named
from ..scheduler import Attempt

log = logging.getLogger(__name__)

STDOUT = "-"
MOST_BYTES = 64 << 20
"""Size at which a file is rotated."""
MOST_FILES = 4
"""FILE, FILE.1 and so on, the oldest last."""
FLUSH_S = 1.0
BUFFER = 1 << 18


class LoggedAttempt(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """One line: the decision about a pod at one moment."""

    time: float
    """Seconds since 1970."""
    namespace: str
    name: str
    uid: str
    attempt: int
    result: str
    """`bound`, `unschedulable` or `error`."""
    node: str = ""
    total: int | None = None
    """None if there was no choice."""
    runner_up: str = ""
    runner_up_total: int | None = None
    margin: int | None = None
    """Points between the node and the runner-up."""
    feasible_nodes: int = 0
    nodes: int = 0
    from_nomination: bool = False
    refusals: dict[str, int] = {}
    """Number of nodes per plugin that refused them first."""
    message: str = ""
    victims: tuple[str, ...] = ()
    nominated_node: str = ""
    state_version: int = 0


class DecisionLog:
    """Writes to `target`; a full disk ends the log, not the scheduling."""

    def __init__(self, target: str, clock: Clock, most_bytes: int = MOST_BYTES) -> None:
        self._path = None if target == STDOUT else Path(target)
        self._clock = clock
        self._most_bytes = most_bytes
        self._encoder = msgspec.json.Encoder()
        self._flushed_s = clock.monotonic()
        self._stream: IO[bytes] | None = sys.stdout.buffer
        if self._path is not None:
            with os_errors_named(f"--decisions: {target}", "a file to write to"):
                self._stream = self._path.open("ab", BUFFER)
        self._size = 0 if self._path is None else self._path.stat().st_size

    def note(self, attempt: Attempt) -> None:
        """Write an attempt that has ended."""
        if self._stream is None:
            return
        line = self._encoder.encode(logged(attempt, self._clock.timestamp())) + b"\n"
        try:
            self._stream.write(line)
            self._size += len(line)
            now_s = self._clock.monotonic()
            if now_s - self._flushed_s > FLUSH_S:
                self._stream.flush()
                self._flushed_s = now_s
            if self._path is not None and self._size > self._most_bytes:
                self._rotate(self._path)
        except (OSError, ValueError) as error:
            log.error("--decisions: %s; no more decisions are written", error)
            self._stream = None

    def close(self) -> None:
        """Write the buffered lines."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            stream.flush()
            if self._path is not None:
                stream.close()
        except (OSError, ValueError) as error:
            log.error("--decisions: %s", error)

    def _rotate(self, path: Path) -> None:
        assert self._stream is not None, "rotated after a line was written"
        self._stream.close()
        for number in range(MOST_FILES - 1, 0, -1):
            older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
            if older.exists():
                os.replace(older, path.with_name(f"{path.name}.{number}"))
        self._stream, self._size = path.open("ab", BUFFER), 0


def logged(attempt: Attempt, time: float) -> LoggedAttempt:
    """An attempt as a line."""
    pod, notes = attempt.pod, attempt.notes
    line = LoggedAttempt(
        time=time,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        attempt=attempt.number,
        result=attempt.outcome.value,
        node=attempt.node_name,
        total=attempt.score,
        feasible_nodes=attempt.feasible_nodes,
        nodes=attempt.evaluated_nodes,
        from_nomination=attempt.from_nomination,
        message=attempt.message,
        nominated_node=attempt.nominated_node_name or "",
    )
    if notes is not None:
        line.runner_up, line.runner_up_total = notes.runner_up, notes.runner_up_total
        line.refusals, line.victims = notes.refusals, notes.victims
        line.state_version = notes.state_version
        if attempt.score is not None and notes.runner_up_total is not None:
            line.margin = attempt.score - notes.runner_up_total
    return line


def read_decisions(path: Path, namespace: str, name: str) -> list[LoggedAttempt]:
    """The attempts at a pod in the log at `path` and its rotated files, oldest first; raises InputError.

    Without a `namespace`, those of the only namespace that has the pod.
    """
    rotated = [path.with_name(f"{path.name}.{number}") for number in range(MOST_FILES - 1, 0, -1)]
    decoder = msgspec.json.Decoder(LoggedAttempt)
    found: list[LoggedAttempt] = []
    needle = msgspec.json.encode(name)
    for file in (*(each for each in rotated if each.exists()), path):
        expected = "a file that `run --decisions` wrote"
        with os_errors_named(f"--decisions: {file}", expected), file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if needle not in line or not line.endswith(b"\n"):
                    continue  # the last line may be incomplete
                one = _decoded(decoder, line, file, number)
                if one.name == name and namespace in ("", one.namespace):
                    found.append(one)
    spaces = sorted({one.namespace for one in found})
    if len(spaces) > 1:
        raise InputError(
            f"pod {name}: expected a namespace, as in pod/{spaces[0]}/{name}; got pods in {', '.join(spaces)}"
        )
    return found


def _decoded(
    decoder: msgspec.json.Decoder[LoggedAttempt], line: bytes, file: Path, number: int
) -> LoggedAttempt:
    try:
        return decoder.decode(line)
    except msgspec.DecodeError as error:
        problem = f"expected a line that `run --decisions` wrote; got {error}"
        raise InputError(f"--decisions: {file}:{number}: {problem}") from None
