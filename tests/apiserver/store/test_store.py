"""Store: resource versions, watch events, and durability."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.apiserver.store import store as store_module
from bayplan.apiserver.store.journal import Journal, SqliteJournal
from bayplan.apiserver.store.records import RecordChange
from bayplan.apiserver.store.store import Store, TooOldError
from bayplan.errors import InputError


def tree(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", **more}}


def put(store: Store, name: str, namespace: str = "default", **more: Any) -> int:
    return store.put("things", (namespace, name), tree(name, **more)).resource_version


class LateJournal(Journal):
    """A journal whose durability is controlled by the test."""

    def __init__(self) -> None:
        self.tell: Callable[[int], None] = lambda version: None

    def append(self, change: RecordChange) -> bool:
        return False

    def listen(self, on_safe: Callable[[int], None]) -> None:
        self.tell = on_safe


def test_one_counter_for_all() -> None:
    store = Store()

    versions = [put(store, "a"), put(store, "b"), put(store, "a")]
    gone = store.remove("things", ("default", "b"))

    assert versions == [1, 2, 3]
    assert gone.resource_version == store.resource_version == 4
    assert gone.decode()["metadata"]["resourceVersion"] == "4"


def test_lists_are_in_the_order_of_namespace_and_name() -> None:
    store = Store()
    for name, namespace in (("b", "y"), ("a", "y"), ("c", "x"), ("a", "x")):
        put(store, name, namespace)
    store.remove("things", ("x", "c"))
    put(store, "d", "x")

    assert [r.key for r in store.list("things")] == [("x", "a"), ("x", "d"), ("y", "a"), ("y", "b")]
    assert [r.key for r in store.list("things", "y")] == [("y", "a"), ("y", "b")]
    assert list(store.list("other")) == []


@given(st.lists(st.tuples(st.sampled_from("pr"), st.sampled_from("abc"), st.sampled_from("xy"))))
def test_lists_hold_what_was_put_and_not_removed(steps: list[tuple[str, str, str]]) -> None:
    store, expected = Store(), set()
    for action, name, namespace in steps:
        if action == "p":
            put(store, name, namespace)
            expected.add((namespace, name))
        elif (namespace, name) in expected:
            store.remove("things", (namespace, name))
            expected.discard((namespace, name))

        assert [r.key for r in store.list("things")] == sorted(expected)
        for wanted in "xy":
            found = [r.key for r in store.list("things", wanted)]
            assert found == sorted(key for key in expected if key[0] == wanted)


def test_objects_are_found_by_owner() -> None:
    store = Store()
    put(store, "a", ownerReferences=[{"uid": "boss"}])

    assert list(store.owned_by("boss")) == [("things", ("default", "a"))]
    put(store, "a")
    assert list(store.owned_by("boss")) == []
    assert store.find_uid("uid-a") == ("things", ("default", "a"))


async def types(store: Store, since: int | None, matches: Any = None) -> list[tuple[str, str]]:
    watcher = store.watch("things", "", matches, since)
    return [(event.type, event.record.key[1]) for event in watcher.take()]


def test_a_watch_begins_at_the_given_version() -> None:
    async def run() -> None:
        store = Store()
        put(store, "a")
        put(store, "b")
        put(store, "a")
        store.remove("things", ("default", "b"))

        assert await types(store, None) == [("ADDED", "a")]
        assert await types(store, 1) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        assert await types(store, 4) == []

    asyncio.run(run())


def test_a_watch_with_a_selector_adds_and_deletes_objects() -> None:
    async def run() -> None:
        store = Store()
        put(store, "a", labels={"on": "no"})
        watcher = store.watch("things", "", lambda record: record.labels.get("on") == "yes", 1)
        put(store, "a", labels={"on": "yes"})
        put(store, "a", labels={"on": "yes", "more": "x"})
        put(store, "a", labels={"on": "no"})
        put(store, "a", labels={"on": "never"})

        events = watcher.take()

        assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        gone = events[2].record
        assert gone.labels == {"on": "yes", "more": "x"}
        assert gone.resource_version == 4

    asyncio.run(run())


def test_a_version_older_than_the_history_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "HISTORY", 3)

    async def run() -> None:
        store = Store()
        for _ in range(6):
            put(store, "a")

        assert len(await types(store, 3)) == 3
        with pytest.raises(TooOldError):
            store.watch("things", "", None, 2)

    asyncio.run(run())


def test_watchers_see_only_durable_changes() -> None:
    async def run() -> None:
        journal = LateJournal()
        store = Store(journal)
        followed: list[RecordChange] = []
        store.follow(followed.append)
        watcher = store.watch("things", "", None, 0)
        put(store, "a")
        put(store, "b")
        waiting = asyncio.create_task(store.safe())
        await asyncio.sleep(0)

        assert [change.record.resource_version for change in followed] == [1, 2]
        assert watcher.take() == []
        journal.tell(1)
        assert [event.record.key[1] for event in watcher.take()] == ["a"]
        await asyncio.sleep(0)
        assert not waiting.done()
        journal.tell(2)
        await waiting

    asyncio.run(run())


def test_a_watch_that_begins_before_a_change_is_durable_misses_nothing() -> None:
    async def run() -> None:
        journal = LateJournal()
        store = Store(journal)
        put(store, "old")
        put(store, "leaving")
        journal.tell(2)
        put(store, "old", labels={"new": "yes"})
        put(store, "young")
        store.remove("things", ("default", "leaving"))

        watcher = store.watch("things", "", None, None)
        before = [(event.type, event.record.key[1]) for event in watcher.take()]
        journal.tell(5)
        after = [(event.type, event.record.key[1]) for event in watcher.take()]

        assert sorted(before) == [("ADDED", "leaving"), ("ADDED", "old")]
        assert after == [("MODIFIED", "old"), ("ADDED", "young"), ("DELETED", "leaving")]

    asyncio.run(run())


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "remove", "safe", "look"]), st.sampled_from("abcd"))
)


@given(STEPS)
def test_list_and_watch_give_the_current_objects(steps: list[tuple[str, str]]) -> None:
    """For any interleaving of changes, their durability and the start of watches."""

    async def run() -> None:
        journal = LateJournal()
        store = Store(journal)
        views: list[tuple[Any, dict[str, int]]] = []
        for action, name in steps:
            present = store.get("things", ("default", name)) is not None
            match action:
                case "put":
                    put(store, name)
                case "remove" if present:
                    store.remove("things", ("default", name))
                case "safe":
                    journal.tell(store.resource_version)
                case "look":
                    views.append((store.watch("things", "", None, None), {}))
                    since = store.safe_version
                    started = {
                        event.record.key[1]: event.record.resource_version
                        for event in store.watch("things", "", None, None).take()
                    }
                    views.append((store.watch("things", "", None, since), started))
        journal.tell(store.resource_version)
        expected = {r.key[1]: r.resource_version for r in store.list("things")}
        for watcher, known in views:
            for event in watcher.take():
                if event.type == "DELETED":
                    del known[event.record.key[1]]
                else:
                    assert (event.type == "ADDED") is (event.record.key[1] not in known)
                    known[event.record.key[1]] = event.record.resource_version
            assert known == expected

    asyncio.run(run())


def test_all_objects_survive_a_restart(tmp_path: Path) -> None:
    async def fill() -> None:
        store = Store(SqliteJournal(tmp_path))
        for name in "abc":
            put(store, name, labels={"name": name})
        store.remove("things", ("default", "b"))
        put(store, "a", labels={"name": "changed"})
        await store.safe()
        await store.close()

    async def look() -> None:
        store = Store(SqliteJournal(tmp_path))

        found = {record.key[1]: dict(record.labels) for record in store.list("things")}
        assert found == {"a": {"name": "changed"}, "c": {"name": "c"}}
        assert store.resource_version == 5
        assert put(store, "d") == 6, "versions are never given out twice"
        with pytest.raises(TooOldError):
            store.watch("things", "", None, 2)
        await store.safe()
        await store.close()

    asyncio.run(fill())
    asyncio.run(look())


def test_a_folder_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store(SqliteJournal(tmp_path))
        with pytest.raises(InputError, match="expected a database to write"):
            SqliteJournal(tmp_path)
        await store.close()

    asyncio.run(run())


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bayplan.db").write_text("no database at all, but long enough to look at" * 30)

    with pytest.raises(InputError, match=r"bayplan\.db: expected a database"):
        SqliteJournal(tmp_path)


def test_waiting_clients_get_an_error_when_the_disk_fails(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path)
        store = Store(journal)
        journal._database.execute("DROP TABLE objects")
        put(store, "a")

        with pytest.raises(Exception, match="no such table"):
            await store.safe()
        with pytest.raises(Exception, match="no such table"):
            await store.safe()

    asyncio.run(run())


def test_old_changes_beyond_a_minimum_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LEAST_HISTORY", 2)
    now = 1000.0
    monkeypatch.setattr("bayplan.apiserver.store.store.time.monotonic", lambda: now)
    store = Store()
    versions = [put(store, name) for name in ("a", "b", "c")]

    now += store_module.HISTORY_S + 1
    versions.append(put(store, "d"))

    store.watch("things", "", None, versions[1])
    with pytest.raises(TooOldError):
        store.watch("things", "", None, versions[0])
