"""Recording file: the events of a live cluster as gzipped JSON lines.

The first line is the head: `{"apiVersion": ..., "kind": "Recording", "start": time}`. Then come the objects at the
start, an `ADDED` each at `"t": 0`, then `{"t": 0, "type": "SYNCED"}`, then the events, `t` seconds after the start. The
last line is `{"t": ..., "type": "END"}`: a file without it is truncated. Objects hold the fields that affect placement.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from ..api.own_documents import API_VERSION
from ..api.wire.decode import UnknownObject, decode
from ..errors import DecodeError, InputError, os_errors_named
from ..manifests.input_bytes import (
    CHUNK,
    GZIP,
    CutOffError,
    DamagedFileError,
    InputStream,
    bounded_lines,
    open_input,
)

KIND = "Recording"
ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
SYNCED, END = "SYNCED", "END"
CHANGES = (ADDED, MODIFIED, DELETED)


class RecordedEvent(msgspec.Struct, frozen=True):
    """An event of an object, `at_s` seconds after the start."""

    at_s: float
    type: str
    obj: Any


class Recording(msgspec.Struct):
    """A complete recording."""

    start: datetime
    objects: list[Any] = msgspec.field(default_factory=list)
    """The objects at the start."""
    events: list[RecordedEvent] = msgspec.field(default_factory=list)
    duration_s: float = 0.0


class RecordingWriter:
    """Writes a recording to `stream` incrementally. Flushed data can be read even without the end."""

    def __init__(self, stream: IO[bytes], start: datetime) -> None:
        self._stream = stream
        self._packer = zlib.compressobj(6, zlib.DEFLATED, GZIP)
        head = {"apiVersion": API_VERSION, "kind": KIND, "start": start.isoformat()}
        self._write(head)

    def add(self, at_s: float, type: str, tree: Mapping[str, Any]) -> None:
        """Write an event of an object."""
        self._write({"t": round(at_s, 6), "type": type, "object": tree})

    def synced(self) -> None:
        """Mark the end of the initial objects."""
        self._write({"t": 0, "type": SYNCED})
        self.flush()

    def flush(self) -> None:
        """Flush everything to the file."""
        self._stream.write(self._packer.flush(zlib.Z_SYNC_FLUSH))
        self._stream.flush()

    def end(self, at_s: float) -> None:
        """Write the end."""
        self._write({"t": round(at_s, 6), "type": END})
        self._stream.write(self._packer.flush(zlib.Z_FINISH))
        self._stream.flush()

    def _write(self, line: Mapping[str, Any]) -> None:
        self._stream.write(self._packer.compress(msgspec.json.encode(line) + b"\n"))


OBJECT = "object"
_LINES = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_recording(path: Path, partial: bool = False) -> Recording:
    """Read a recording, gzipped or not; `partial` accepts a truncated one.

    Raises InputError, one line with the file and the line number, for invalid data.
    """
    reader = _Reader(str(path), partial)
    with os_errors_named(path, "a readable file"), open_input(path) as stream:
        reader.read_all(stream)
    return reader.result()


class _Reader:
    """Parses line by line."""

    def __init__(self, name: str, partial: bool) -> None:
        self._name = name
        self._is_partial = partial
        self._recording: Recording | None = None
        self._is_synced = self._has_ended = False
        self._number = 0

    def read_all(self, stream: InputStream) -> None:
        """Parse the lines of a file, decompressed; the last one only if it is complete."""
        lines = bounded_lines(io.BufferedReader(stream, CHUNK), self._fault_at)
        try:
            for self._number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    self._cut_off()
                elif line != b"\n":
                    self._read(line)
        except DamagedFileError:
            raise self._fault("expected a gzip file; got damaged data after this line") from None
        except CutOffError:
            self._number += 1
            self._cut_off()

    def _read(self, line: bytes) -> None:
        try:
            texts = _LINES.decode(line)
            tree = {k: v if k == OBJECT else msgspec.json.decode(v) for k, v in texts.items()}
        except msgspec.ValidationError as error:
            got = str(error).rpartition("got ")[2].replace("`", "")
            raise self._fault(f"expected an object; got {got}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._fault(f"expected JSON; got {error}") from None
        except RecursionError:
            raise self._fault("expected less deep nesting") from None
        if self._recording is None:
            self._recording = Recording(self._start(tree))
        elif self._has_ended:
            raise self._fault("expected nothing after the END; got another line")
        else:
            self._event(self._recording, tree)

    def result(self) -> Recording:
        """The recording after all lines were read."""
        if self._recording is None:
            raise InputError(f"{self._name}: expected a recording; got an empty file")
        if not self._has_ended:
            self._cut_off()
        return self._recording

    def _cut_off(self) -> None:
        """Raise InputError for a truncated file, unless that is accepted."""
        if not self._is_partial or not self._is_synced:
            advice = ". Try: --partial" if self._is_synced else ""
            raise self._fault(f"expected more, up to an END; got a file that was cut off{advice}")

    def _fault(self, problem: str) -> InputError:
        """The error about the current line."""
        return self._fault_at(self._number, problem)

    def _fault_at(self, number: int, problem: str) -> InputError:
        return InputError(f"{self._name}: line {number}: {problem}")

    def _start(self, tree: Mapping[str, Any]) -> datetime:
        kind, version = tree.get("kind"), tree.get("apiVersion")
        if kind != KIND or version != API_VERSION:
            found = f"{version} {kind}" if kind else "something else"
            raise self._fault(
                f"expected the head of a recording, {API_VERSION} {KIND}; got {found}"
            )
        try:
            start = datetime.fromisoformat(str(tree.get("start")))
        except ValueError:
            start = None
        if start is None or start.tzinfo is None:
            raise self._fault(f"start: expected a time with its zone; got {tree.get('start')!r}")
        return start

    def _event(self, recording: Recording, tree: Mapping[str, Any]) -> None:
        at_s, kind = tree.get("t"), tree.get("type")
        if isinstance(at_s, bool) or not isinstance(at_s, int | float) or at_s < 0:
            raise self._fault(f"t: expected seconds since the start; got {at_s!r}")
        if at_s < recording.duration_s:
            raise self._fault(f"t: expected {recording.duration_s:g} or later; got {at_s:g}")
        recording.duration_s = float(at_s)
        if kind == SYNCED and not self._is_synced:
            self._is_synced = True
        elif kind == END and self._is_synced:
            self._has_ended = True
        elif kind in CHANGES and (self._is_synced or kind == ADDED):
            obj = self._object(bytes(tree.get(OBJECT, b"null")))
            if self._is_synced:
                recording.events.append(RecordedEvent(float(at_s), kind, obj))
            else:
                recording.objects.append(obj)
        else:
            allowed = f"{ADDED}, {MODIFIED}, {DELETED} or {END}"
            expected = allowed if self._is_synced else f"{ADDED} or {SYNCED}"
            raise self._fault(f"type: expected {expected}; got {kind!r}")

    def _object(self, text: bytes) -> Any:
        try:
            obj = decode(text)
        except DecodeError as error:
            raise self._fault(f"object: {error}") from None
        except RecursionError:
            raise self._fault("object: expected less deep nesting") from None
        if isinstance(obj, UnknownObject):
            raise self._fault(f"object: kind: expected one that affects placement; got {obj.kind}")
        return obj
