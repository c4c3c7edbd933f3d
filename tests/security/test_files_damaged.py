"""Damaged files: changed recordings, snapshots, journals, reports and databases give one line, no traceback."""

import asyncio
import gzip
import io
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.apiserver.server import ApiServer, make_credentials
from bayplan.errors import InputError
from bayplan.planning.pool_files import read_pools
from bayplan.sim import read_manifests
from bayplan.sim.bench.measurements import read_report
from bayplan.sim.recording_file import RecordingWriter, read_recording
from bayplan.sim.replay import Replay
from bayplan.sim.settings import DEFAULT_SETTINGS
from bayplan.sim.streaming import StreamedSimulation, read_lines
from bayplan.sweeps.result_files import RunJournal
from bayplan.sweeps.worker import RunResult

from .damaged import damages

HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large]
some = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=HEALTH)
few = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=HEALTH)

NO_FAULT = "no fault"
OF_ALL = "input: expected "
"""The objects are fine one by one, but not together."""


def node(name: str) -> dict[str, object]:
    """A node as an API server has it."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    metadata = {"name": name, "uid": name, "labels": {"topology.kubernetes.io/zone": "z"}}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(name: str, node_name: str = "") -> dict[str, object]:
    """A pod as an API server has it."""
    requests = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    spec = {
        "containers": [{"name": "c", "resources": requests}],
        "schedulerName": "default-scheduler",
    }
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}}
    bound = {"nodeName": node_name} if node_name else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, **bound}}


@cache
def recorded() -> bytes:
    """A recording, gzipped."""
    stream = io.BytesIO()
    writer = RecordingWriter(stream, datetime(2026, 1, 1, tzinfo=UTC))
    for name in ("a", "b"):
        writer.add(0, "ADDED", node(name))
    writer.synced()
    for i in range(4):
        writer.add(i, "ADDED", pod(f"p{i}"))
        writer.add(i + 0.5, "MODIFIED", pod(f"p{i}", "ab"[i % 2]))
    writer.add(9, "DELETED", pod("p0", "a"))
    writer.end(10)
    return stream.getvalue()


def snapshot() -> bytes:
    objects = [node("a"), node("b"), *(pod(f"p{i}") for i in range(3))]
    tree = {"apiVersion": "v1", "kind": "List", "items": objects}
    return msgspec.json.format(msgspec.json.encode(tree), indent=1)


def in_yaml() -> bytes:
    return b"\n---\n".join(msgspec.yaml.encode(one) for one in (node("a"), pod("p"), pod("q")))


def in_lines() -> bytes:
    objects = [node("a"), *(pod(f"p{i}") for i in range(3))]
    return b"".join(msgspec.json.encode(one) + b"\n" for one in objects)


def journal() -> bytes:
    results = [RunResult(id=f"{i:016x}", seconds=1.5, measures={"cost": 2.0}) for i in range(4)]
    return b"".join(msgspec.json.encode(one) + b"\n" for one in results)


def report() -> bytes:
    return msgspec.json.encode(
        {"apiVersion": "bayplan.dev/v1alpha1", "kind": "BenchmarkReport", "runs": [], "machine": {}}
    )


def replay(file: Path) -> None:
    for partial in (False, True):
        Replay(read_recording(file, partial)).run()


def simulate(file: Path) -> None:
    manifests = read_manifests([file])
    DEFAULT_SETTINGS.simulation(manifests.objects, manifests.place_of).run()


def stream(file: Path) -> None:
    StreamedSimulation(read_lines(file), lambda row: None, seed=0).run_stream()


def pools(file: Path) -> None:
    read_pools([file])


def load_journal(file: Path) -> None:
    for result in RunJournal(file).results.values():
        assert all(isinstance(value, float) for value in result.measures.values())


def read_bench(file: Path) -> None:
    read_report(file)


READERS: dict[str, tuple[Callable[[], bytes], Callable[[Path], None]]] = {
    "recording": (lambda: gzip.decompress(recorded()), replay),
    "packed recording": (recorded, replay),
    "snapshot": (snapshot, simulate),
    "packed snapshot": (lambda: gzip.compress(snapshot(), mtime=0), simulate),
    "nodes and pods as YAML": (in_yaml, simulate),
    "nodes as pools": (in_yaml, pools),
    "trace as lines": (in_lines, stream),
    "packed trace": (lambda: gzip.compress(in_lines(), mtime=0), stream),
    "journal of a sweep": (journal, load_journal),
    "report of a benchmark": (report, read_bench),
}


def fault_of(read: Callable[[], None]) -> str:
    """The line about a file; another exception is a failure."""
    try:
        read()
    except InputError as error:
        return str(error)
    return NO_FAULT


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
@some
def test_damage_is_one_line_that_names_the_file(kind: str, data: st.DataObject) -> None:
    make, read = READERS[kind]
    content = data.draw(damages(make()))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "input"
        file.write_bytes(content)
        assert fault_of(lambda: read(file)).startswith((str(file), OF_ALL, NO_FAULT))


@cache
def database() -> dict[str, bytes]:
    """The files of a data folder."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "data"
        asyncio.run(serve(folder))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


async def serve(folder: Path) -> None:
    """Start a server on the folder, add an object, and stop."""
    made = make_credentials(folder, ["localhost"])
    server = ApiServer(folder, token=made.token, certificate=made.certificate)
    await server.start()
    try:
        server.load(node("a"))
        await server.store.safe()
    finally:
        await server.stop()


def restored(folder: Path, changed: dict[str, bytes]) -> Path:
    """A data folder with some other contents."""
    folder.mkdir(mode=0o700)
    for name, content in (database() | changed).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("name", ["bayplan.db", "token", "tls.key", "tls.crt", "names"])
@given(data=st.data())
@few
def test_a_damaged_data_folder_is_one_line(name: str, data: st.DataObject) -> None:
    content = data.draw(damages(database()[name], b"metadata"))
    with TemporaryDirectory() as within:
        folder = restored(Path(within) / "data", {name: content})
        fault = fault_of(lambda: asyncio.run(serve(folder)))
        assert fault.startswith((str(folder), NO_FAULT))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param(
            "UPDATE objects SET data = replace(data, 'metadata', 'netadata') WHERE resource = 'nodes'",
            "nodes a: expected an object as it was stored; got one that its checksum does not fit",
            id="an object is not the one that was stored",
        ),
        pytest.param(
            "UPDATE objects SET name = 'b' WHERE resource = 'nodes'",
            "nodes b: expected an object as it was stored; got one that its checksum does not fit",
            id="an object has another name",
        ),
        pytest.param(
            "UPDATE objects SET sum = NULL WHERE resource = 'nodes'",
            "nodes a: expected an object as it was stored; got one that its checksum does not fit",
            id="a checksum is missing",
        ),
        pytest.param(
            "UPDATE counter SET last = 1",
            "table counter: expected a resource version, that of the last change or a later one; got 1",
            id="the counter went back",
        ),
        pytest.param(
            "DELETE FROM counter; INSERT INTO counter VALUES ('x')",
            "table counter: expected a resource version, that of the last change or a later one; got 'x'",
            id="the counter is no number",
        ),
        pytest.param(
            "DROP TABLE objects; CREATE TABLE objects (x TEXT)",
            "expected a whole database; got no such column: version",
            id="another table",
        ),
        pytest.param(
            "PRAGMA user_version=7",
            "expected data of version 2; got version 7",
            id="a later version",
        ),
    ],
)
def test_a_tampered_database_is_refused(statement: str, expected: str, tmp_path: Path) -> None:
    folder = restored(tmp_path / "data", {})
    with sqlite3.connect(folder / "bayplan.db") as edited:
        edited.executescript(statement)
    edited.close()

    with pytest.raises(InputError) as caught:
        asyncio.run(serve(folder))

    assert str(caught.value) == f"{folder / 'bayplan.db'}: {expected}"


def test_a_database_without_checksums_gets_them(tmp_path: Path) -> None:
    folder = restored(tmp_path / "data", {})
    with sqlite3.connect(folder / "bayplan.db") as edited:
        edited.executescript("ALTER TABLE objects DROP COLUMN sum; PRAGMA user_version=1")
    edited.close()

    asyncio.run(serve(folder))

    with sqlite3.connect(folder / "bayplan.db") as read:
        (missing,) = read.execute("SELECT count(*) FROM objects WHERE sum IS NULL").fetchone()
        (version,) = read.execute("PRAGMA user_version").fetchone()
    read.close()
    assert (missing, version) == (0, 2)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            lambda lines: [*lines[:3], b"{", *lines[3:]],
            "line 4: expected JSON; got Input data was truncated",
            id="a line that is cut",
        ),
        pytest.param(
            lambda lines: [lines[0], lines[6], *lines[1:6], *lines[7:]],
            "line 3: t: expected 1 or later; got 0",
            id="reordered",
        ),
        pytest.param(
            lambda lines: lines[:-1],
            "line 13: expected more, up to an END; got a file that was cut off. Try: --partial",
            id="without the end",
        ),
        pytest.param(
            lambda lines: [lines[0], b'{"t": ' + b"[" * 5000, *lines[1:]],
            "line 2: expected less deep nesting",
            id="deep nesting",
        ),
        pytest.param(
            lambda lines: [lines[0], b"[1]", *lines[1:]],
            "line 2: expected an object; got array",
            id="a list",
        ),
        pytest.param(
            lambda lines: [lines[0], b'{"type": "\xff"}', *lines[1:]],
            "line 2: expected JSON; got 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
            id="no text",
        ),
    ],
)
def test_a_recording_names_line_expected_and_found(
    change: Callable[[list[bytes]], list[bytes]], expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.jsonl"
    lines = gzip.decompress(recorded()).splitlines()
    file.write_bytes(b"".join(line + b"\n" for line in change(lines)))

    with pytest.raises(InputError) as caught:
        read_recording(file)

    assert str(caught.value) == f"{file}: {expected}"
