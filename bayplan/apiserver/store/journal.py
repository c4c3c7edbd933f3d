"""Journal: durable storage of changes before they are acknowledged.

On disk it is an SQLite file: all changes that arrive during one commit go into the next (group
commit), and a commit is on the disk when it returns (`synchronous=FULL`). Each row has a checksum, so
that damage is found when the file is read.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...cluster.private_files import keep_private, make_private_folder, open_private
from ...errors import BayplanError, InputError, os_errors_named
from .records import Key, RecordChange

FILE_NAME = "bayplan.db"
SCHEMA_VERSION = 2
UNSUMMED_VERSION = 1
"""Rows of this version have no checksums; they get them when the file is opened."""


class JournalEntry(NamedTuple):
    """An object that is stored."""

    resource: str
    key: Key
    resource_version: int
    data: bytes


class StorageError(BayplanError):
    """The disk failed: unacknowledged changes are lost."""


class Journal:
    """Stores changes, and reports when they are durable. This base class stores nothing: every change is durable at
    once.
    """

    failure: StorageError | None = None
    """Reason why nothing can be stored any more; None while it works."""

    def load(self) -> tuple[int, Iterator[JournalEntry]]:
        """The last resource version, and all objects."""
        return 0, iter(())

    def append(self, change: RecordChange) -> bool:
        """Store a change; return whether it is durable at once. Else listeners are notified when it is."""
        return True

    def listen(self, on_safe: Callable[[int], None]) -> None:
        """Call `on_safe` with the resource version up to which everything is durable, whenever that grows."""

    async def close(self) -> None:
        """Flush the rest and close the file."""


class SqliteJournal(Journal):
    """Stores everything in `folder`, which is created if missing; only their owner reads file and folder.

    Raises InputError if that fails, and for a file that is damaged or belongs to another user.

    One process at a time: the file stays locked while the journal is open.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._pending: list[RecordChange] = []
        self._commit: asyncio.Future[None] | None = None
        self._on_safe: Callable[[int], None] = lambda version: None
        with self._faults("a database to write"):
            make_private_folder(folder)
            self._make_private()
            self._database = sqlite3.connect(self._path, check_same_thread=False, timeout=1)
            try:
                self._prepare(self._database)
            except BaseException:  # closed in any case
                self._database.close()
                raise

    def _make_private(self) -> None:
        """Let only the owner read the file; files that SQLite adds get the same mode."""
        if not os.path.lexists(self._path):
            os.close(open_private(self._path))
        for ending in ("", "-wal", "-shm", "-journal"):
            keep_private(self._path.with_name(FILE_NAME + ending))

    @contextmanager
    def _faults(self, expected: str) -> Iterator[None]:
        """Raise an error of the disk or of SQLite in the block as an InputError that names the file."""
        try:
            with os_errors_named(self._path, expected):
                yield
        except (sqlite3.Error, OverflowError) as error:
            raise InputError(f"{self._path}: expected {expected}; got {error}") from None

    def _prepare(self, database: sqlite3.Connection) -> None:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, UNSUMMED_VERSION, SCHEMA_VERSION):
            raise InputError(
                f"{self._path}: expected data of version {SCHEMA_VERSION}; got version {version}"
            )
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                "CREATE TABLE IF NOT EXISTS objects (resource TEXT, namespace TEXT, name TEXT,"
                " version INTEGER, data BLOB, sum INTEGER, PRIMARY KEY (resource, namespace, name))"
                " WITHOUT ROWID"
            )
            database.execute("CREATE TABLE IF NOT EXISTS counter (last INTEGER)")
            if database.execute("SELECT count(*) FROM counter").fetchone() == (0,):
                database.execute("INSERT INTO counter VALUES (0)")
            if version == UNSUMMED_VERSION:
                database.create_function("checksum", 5, checksum, deterministic=True)
                database.execute("ALTER TABLE objects ADD COLUMN sum INTEGER")
                database.execute(
                    "UPDATE objects SET sum = checksum(resource, namespace, name, version, data)"
                )
            database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def load(self) -> tuple[int, Iterator[JournalEntry]]:
        with self._faults("a whole database"):
            counters = self._database.execute("SELECT last FROM counter").fetchall()
            (newest,) = self._database.execute("SELECT max(version) FROM objects").fetchone()
        last = counters[0][0] if len(counters) == 1 else None
        if not isinstance(last, int) or not _at_most(newest, last):
            expected = "a resource version, that of the last change or a later one"
            raise InputError(f"{self._path}: table counter: expected {expected}; got {last!r}")
        return last, self._entries()

    def _entries(self) -> Iterator[JournalEntry]:
        with self._faults("a whole database"):
            for row in self._database.execute(
                "SELECT resource, namespace, name, version, data, sum FROM objects ORDER BY version"
            ):
                *content, found = row
                resource, namespace, name, version, data = content
                if found is None or checksum(*content) != found:
                    place = f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"
                    expected = "expected an object as it was stored"
                    raise InputError(
                        f"{self._path}: {place}: {expected}; got one that its checksum does not fit"
                    )
                yield JournalEntry(resource, (namespace, name), version, data)

    def append(self, change: RecordChange) -> bool:
        self._pending.append(change)
        if self._commit is None and self.failure is None:
            self._begin()
        return False

    def listen(self, on_safe: Callable[[int], None]) -> None:
        self._on_safe = on_safe

    async def close(self) -> None:
        while self._commit is not None:
            await asyncio.wait([self._commit])
        self._thread.shutdown()
        self._database.close()

    def _begin(self) -> None:
        """Write all pending changes, in the journal's own thread."""
        batch, self._pending = self._pending, []
        loop = asyncio.get_running_loop()
        self._commit = loop.run_in_executor(self._thread, self._write, batch)
        self._commit.add_done_callback(lambda commit: self._written(commit, batch))

    def _written(self, commit: asyncio.Future[None], batch: list[RecordChange]) -> None:
        self._commit = None
        error = commit.exception()
        if error is not None:
            self.failure = StorageError(f"{self._path}: expected to write; got {error}")
        elif self._pending:
            self._begin()  # before the callbacks, so that the disk does not wait for them
        self._on_safe(batch[-1].record.resource_version)

    def _write(self, batch: list[RecordChange]) -> None:
        newest = {(change.resource, change.record.key): change for change in batch}
        rows = (
            (change.resource, *new.key, new.resource_version, new.data)
            for change in newest.values()
            if (new := change.new) is not None
        )
        kept = [(*row, checksum(*row)) for row in rows]
        gone = [_place(change) for change in newest.values() if change.new is None]
        with self._database as database:
            database.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", kept)
            database.executemany(
                "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", gone
            )
            database.execute("UPDATE counter SET last = ?", (batch[-1].record.resource_version,))


def checksum(resource: Any, namespace: Any, name: Any, version: Any, data: Any) -> int | None:
    """CRC-32 of a row; None if a cell has another type than the server writes."""
    texts = (resource, namespace, name)
    if not all(isinstance(text, str) for text in texts) or not isinstance(version, int):
        return None
    if not isinstance(data, bytes):
        return None
    return zlib.crc32(data, zlib.crc32("\0".join((*texts, str(version))).encode()))


def _at_most(newest: Any, last: int) -> bool:
    """Whether no object is newer than the counter; `newest` is None without objects."""
    return newest is None or (isinstance(newest, int) and newest <= last)


def _place(change: RecordChange) -> tuple[str, str, str]:
    return change.resource, *change.record.key
