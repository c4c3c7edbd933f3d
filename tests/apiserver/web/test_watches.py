"""Watches over HTTP: start, events and end."""

import pytest

from bayplan.apiserver.server import ApiServer
from bayplan.apiserver.store import store as store_module
from tests.rig.api_server import ServerInThread, api_server, config_map_tree

MAPS = "/api/v1/namespaces/default/configmaps"


def version(api: ServerInThread) -> str:
    found: str = api.get(MAPS).tree["metadata"]["resourceVersion"]
    return found


def test_a_watch_from_a_version_has_the_later_events(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"))
    start = version(api)
    api.make(MAPS, config_map_tree("b"))
    api.patch(f"{MAPS}/a", {"data": {"x": "1"}})

    with api.watch(f"{MAPS}?resourceVersion={start}") as stream:
        api.delete(f"{MAPS}/b")

        assert stream.seen(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


def test_a_watch_without_version_begins_with_the_existing_objects(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"), config_map_tree("b"))

    with api.watch(MAPS) as stream:
        api.make(MAPS, config_map_tree("c"))

        assert stream.seen(3) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


def test_events_hold_whole_objects(api: ServerInThread) -> None:
    made = api.make(MAPS, config_map_tree("a", x="1"))

    with api.watch(MAPS) as stream:
        assert stream.take(1) == [{"type": "ADDED", "object": made}]


def test_a_deleted_object_has_the_version_of_its_deletion(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a", x="1"))
    start = version(api)

    with api.watch(f"{MAPS}?resourceVersion={start}") as stream:
        api.delete(f"{MAPS}/a")
        gone = stream.take(1)[0]["object"]

    assert int(gone["metadata"]["resourceVersion"]) == int(start) + 1
    assert gone["data"] == {"x": "1"}


def test_selectors_add_and_delete_objects(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"))

    with api.watch(f"{MAPS}?labelSelector=on&resourceVersion={version(api)}") as stream:
        api.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": "1"}}})
        api.patch(f"{MAPS}/a", {"metadata": {"labels": {"on": None}}})

        assert stream.seen(2) == [("ADDED", "a"), ("DELETED", "a")]


def test_one_object_by_its_name(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"), config_map_tree("b"))

    with api.watch(f"{MAPS}?fieldSelector=metadata.name%3Db") as stream:
        api.patch(f"{MAPS}/a", {"data": {"x": "1"}})
        api.patch(f"{MAPS}/b", {"data": {"x": "1"}})

        assert stream.seen(2) == [("ADDED", "b"), ("MODIFIED", "b")]


def test_a_path_with_a_name_is_read_and_not_watched(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"))

    assert api.get(f"{MAPS}/a?watch=true").tree["metadata"]["name"] == "a"


def test_namespaces_are_separate(api: ServerInThread) -> None:
    with api.watch(MAPS) as stream:
        api.make("/api/v1/namespaces/kube-system/configmaps", config_map_tree("other"))
        api.make(MAPS, config_map_tree("mine"))

        assert stream.seen(1) == [("ADDED", "mine")]


def test_an_expired_version_is_an_error_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "HISTORY", 2)
    with api_server() as api:
        api.make(MAPS, *(config_map_tree(name) for name in "abcde"))
        oldest = api.get(f"{MAPS}/a").tree["metadata"]["resourceVersion"]

        with api.watch(f"{MAPS}?resourceVersion={oldest}") as stream:
            event = stream.take(1)[0]

            assert (stream.status, event["type"]) == (200, "ERROR")
            assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
            assert stream.ends()


def test_a_version_from_before_a_restart_makes_the_client_list_again(api: ServerInThread) -> None:
    with api.watch(f"{MAPS}?resourceVersion=987654") as stream:
        assert stream.take(1)[0]["object"]["code"] == 410


def test_events_before_the_end_of_a_watch_are_sent(api: ServerInThread) -> None:
    def change_and_end(server: ApiServer) -> None:
        server.load(config_map_tree("a"))
        server.load(config_map_tree("b"))
        server.store.end_watches("configmaps")

    with api.watch(MAPS) as stream:
        api.within(change_and_end)

        assert stream.seen(2) == [("ADDED", "a"), ("ADDED", "b")]
        assert stream.ends()


def test_a_watch_ends_at_its_timeout(api: ServerInThread) -> None:
    with api.watch(f"{MAPS}?timeoutSeconds=1") as stream:
        assert stream.ends()


def test_initial_events_end_with_a_bookmark(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"))
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

    with api.watch(f"{MAPS}?{query}") as stream:
        first, bookmark = stream.take(2)

    assert (first["type"], bookmark["type"]) == ("ADDED", "BOOKMARK")
    metadata = bookmark["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert metadata["resourceVersion"] == version(api)
    assert bookmark["object"]["kind"] == "ConfigMap"


@pytest.mark.parametrize("form", ["Table", "PartialObjectMetadata"])
def test_a_bookmark_has_the_form_of_the_events(api: ServerInThread, form: str) -> None:
    api.make(MAPS, config_map_tree("a"))
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

    with api.watch(
        f"{MAPS}?{query}", Accept=f"application/json;as={form};v=v1;g=meta.k8s.io"
    ) as stream:
        objects = [event["object"] for event in stream.take(2)]

    heads = [(tree["kind"], tree["apiVersion"]) for tree in objects]
    assert heads == [(form, "meta.k8s.io/v1")] * 2
    if form == "Table":
        rows = [tree["rows"][0]["object"] for tree in objects]
        assert [(row["kind"], row["apiVersion"]) for row in rows] == [
            ("PartialObjectMetadata", "meta.k8s.io/v1")
        ] * 2


def test_initial_events_need_resource_version_match(api: ServerInThread) -> None:
    with api.watch(f"{MAPS}?sendInitialEvents=true") as stream:
        assert stream.status == 422


def test_a_watch_as_table(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"), config_map_tree("b"))

    with api.watch(MAPS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io") as stream:
        first, second = (event["object"] for event in stream.take(2))

    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["columnDefinitions"] == [], "headings come once"
    assert [table["rows"][0]["cells"][0] for table in (first, second)] == ["a", "b"]
