"""Recording: round trips, and errors with their line for truncated or invalid files."""

import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.wire.placement_fields import clipped_tree
from bayplan.errors import InputError
from bayplan.sim.recording_file import RecordingWriter, read_recording
from bayplan.testing.builders import make_node, make_pod

START = datetime(2026, 1, 1, tzinfo=UTC)
HEAD = {"apiVersion": "bayplan.dev/v1", "kind": "Recording", "start": START.isoformat()}
NODE = clipped_tree(make_node("a"))
SYNCED = {"t": 0, "type": "SYNCED"}
END = {"t": 9, "type": "END"}


def recorded() -> bytes:
    """A small recording as bytes."""
    stream = io.BytesIO()
    writer = RecordingWriter(stream, START)
    writer.add(0.0, "ADDED", NODE)
    writer.synced()
    for i in range(20):
        writer.add(i + 0.5, "ADDED", clipped_tree(make_pod(f"p{i}")))
        writer.flush()
    writer.end(30.25)
    return stream.getvalue()


def test_a_written_recording_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl.gz"
    file.write_bytes(recorded())

    recording = read_recording(file)

    assert recording.start == START
    assert [obj.name for obj in recording.objects] == ["a"]
    assert [(e.at_s, e.type, e.obj.name) for e in recording.events[:2]] == [
        (0.5, "ADDED", "p0"),
        (1.5, "ADDED", "p1"),
    ]
    assert recording.duration_s == 30.25


def test_a_decompressed_file_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(gzip.decompress(recorded()))

    assert len(read_recording(file).events) == 20


@given(st.integers(0, len(recorded()) - 1))
def test_a_file_truncated_anywhere(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    file = tmp_path_factory.mktemp("cut") / "run.jsonl.gz"
    file.write_bytes(recorded()[:size])

    with pytest.raises(InputError, match=r"cut off|empty file|gzip|expected"):
        read_recording(file)
    try:
        partial = read_recording(file, partial=True)
    except InputError as error:
        assert "cut off" in str(error) or "empty file" in str(error) or "JSON" in str(error)  # noqa: PT017
    else:
        assert [e.obj.name for e in partial.events] == [f"p{i}" for i in range(len(partial.events))]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param([], "expected a recording; got an empty file", id="nothing"),
        pytest.param(["hello"], "line 1: expected JSON; got", id="no JSON"),
        pytest.param([[1]], "line 1: expected an object", id="a list"),
        pytest.param(
            [NODE], "line 1: expected the head of a recording, bayplan.dev/v1 Recording; got v1 Node",
            id="another file",
        ),
        pytest.param(
            [{**HEAD, "start": "today"}],
            "line 1: start: expected a time with its zone; got 'today'",
            id="no time",
        ),
        pytest.param(
            [HEAD, {"t": 0, "type": "MODIFIED", "object": NODE}],
            "line 2: type: expected ADDED or SYNCED; got 'MODIFIED'",
            id="a change before the start",
        ),
        pytest.param(
            [HEAD, SYNCED, {"t": 1, "type": "MOVED", "object": NODE}],
            "line 3: type: expected ADDED, MODIFIED, DELETED or END; got 'MOVED'",
            id="unknown type",
        ),
        pytest.param(
            [HEAD, SYNCED, {"t": "1", "type": "ADDED", "object": NODE}],
            "line 3: t: expected seconds since the start; got '1'",
            id="time as text",
        ),
        pytest.param(
            [HEAD, SYNCED, {"t": 5, "type": "ADDED", "object": NODE}, {"t": 4, "type": "END"}],
            "line 4: t: expected 5 or later; got 4",
            id="back in time",
        ),
        pytest.param(
            [HEAD, SYNCED, {"t": 1, "type": "ADDED"}], "line 3: object: expected object", id="no object"
        ),
        pytest.param(
            [HEAD, SYNCED, {"t": 1, "type": "ADDED", "object": {"kind": "Pod", "metadata": {"name": 5}}}],
            "line 3: object: pod: metadata.name: expected string, got integer",
            id="a name that is a number",
        ),
        pytest.param(
            [HEAD, SYNCED, {"t": 1, "type": "ADDED", "object": {"kind": "Ingress"}}],
            "line 3: object: kind: expected one that affects placement; got Ingress",
            id="a kind that is not recorded",
        ),
        pytest.param(
            [HEAD, SYNCED, END, END], "line 4: expected nothing after the END; got another line", id="after the end"
        ),
        pytest.param(
            [HEAD, SYNCED],
            "line 2: expected more, up to an END; got a file that was cut off. Try: --partial",
            id="no end",
        ),
        pytest.param(
            [HEAD], "line 1: expected more, up to an END; got a file that was cut off", id="not even a start"
        ),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, lines: list[Any], problem: str) -> None:
    file = tmp_path / "run.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_text("".join(f"{text}\n" for text in texts))

    with pytest.raises(InputError) as caught:
        read_recording(file)

    assert str(caught.value).startswith(f"{file}: {problem}")


def test_damaged_data(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl.gz"
    data = bytearray(recorded())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    file.write_bytes(bytes(data))

    with pytest.raises(InputError, match=r"line \d+: "):
        read_recording(file)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: expected a readable file; got No such file"):
        read_recording(tmp_path / "none")
