"""Journal: durable storage of changes before they are acknowledged.

On disk it is an SQLite file: all changes that arrive during one commit go into the next (group
commit), and a commit is on the disk when it returns (`synchronous=FULL`).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

from ....errors import BayplanError, InputError
from .records import Key, RecordChange

FILE_NAME = "bayplan.db"
SCHEMA_VERSION = 1


class JournalEntry(NamedTuple):
    """An object that is stored."""

    resource: str
    key: Key
    resource_version: int
    data: bytes


class StorageError(BayplanError):
    """The disk failed: unacknowledged changes are lost."""


class Journal(Protocol):
    """Stores changes, and reports when they are durable."""

    def load(self) -> tuple[int, Iterator[JournalEntry]]:
        """The last resource version, and all objects."""

    def append(self, change: RecordChange) -> bool:
        """Store a change; return whether it is durable at once. Else listeners are notified when it is."""

    def listen(self, on_safe: Callable[[int], None]) -> None:
        """Call `on_safe` with the resource version up to which everything is durable, whenever that grows."""

    @property
    def failure(self) -> StorageError | None:
        """Why nothing can be stored any more; None while it works."""

    async def close(self) -> None:
        """Flush the rest and close the file."""


class MemoryJournal:
    """Stores nothing: every change counts as durable at once."""

    failure: StorageError | None = None

    def load(self) -> tuple[int, Iterator[JournalEntry]]:
        return 0, iter(())

    def append(self, change: RecordChange) -> bool:
        return True

    def listen(self, on_safe: Callable[[int], None]) -> None:
        pass

    async def close(self) -> None:
        pass


class SqliteJournal:
    """Stores everything in `folder`, which is created if missing. Raises InputError if that fails.

    One process at a time: the file stays locked while the journal is open.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._pending: list[RecordChange] = []
        self._commit: asyncio.Future[None] | None = None
        self._on_safe: Callable[[int], None] = lambda version: None
        self.failure: StorageError | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self._path, check_same_thread=False, timeout=1)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{self._path}: expected a database to write; got {error}") from None

    def _prepare(self) -> None:
        database = self._database
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            raise InputError(
                f"{self._path}: expected data of version {SCHEMA_VERSION}; got version {version}"
            )
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                "CREATE TABLE IF NOT EXISTS objects (resource TEXT, namespace TEXT, name TEXT,"
                " version INTEGER, data BLOB, PRIMARY KEY (resource, namespace, name))"
                " WITHOUT ROWID"
            )
            database.execute("CREATE TABLE IF NOT EXISTS counter (last INTEGER)")
            if database.execute("SELECT count(*) FROM counter").fetchone() == (0,):
                database.execute("INSERT INTO counter VALUES (0)")
            database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def load(self) -> tuple[int, Iterator[JournalEntry]]:
        (last,) = self._database.execute("SELECT last FROM counter").fetchone()
        rows = self._database.execute(
            "SELECT resource, namespace, name, version, data FROM objects ORDER BY version"
        )
        return last, (
            JournalEntry(r, (ns, name), version, data) for r, ns, name, version, data in rows
        )

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
        kept = [
            (change.resource, *new.key, new.resource_version, new.data)
            for change in newest.values()
            if (new := change.new) is not None
        ]
        gone = [_place(change) for change in newest.values() if change.new is None]
        with self._database as database:
            database.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", kept)
            database.executemany(
                "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", gone
            )
            database.execute("UPDATE counter SET last = ?", (batch[-1].record.resource_version,))


def _place(change: RecordChange) -> tuple[str, str, str]:
    return change.resource, *change.record.key
