"""Reflector with streams: the first state from the server's cache, and the fall-backs of client-go."""

import pytest

from bayplan.errors import ApiError
from bayplan.kube.connection import UnreachableError
from tests.kube.test_reflector import Server, event, follow, gone, page, pod


def initial_end(version: int) -> bytes:
    notes = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": notes}})


def test_first_state_is_a_stream_from_the_cache() -> None:
    told: list[int] = []
    first = [
        event("ADDED", pod("b", 9)) + event("ADDED", pod("a", 3)),
        event("MODIFIED", pod("a", 4)) + initial_end(7) + event("ADDED", pod("c", 8)),
    ]
    server = Server([], [first])

    seen, _ = follow(server, from_cache=True, synced=lambda: told.append(len(server.watched_from)))

    assert [name for _, name, _ in seen] == ["b", "a", "a", "c"]
    assert (server.watched_from, server.streams, told) == (["0", "8"], 1, [1])


def test_after_an_expired_version_the_stream_is_of_the_newest_state() -> None:
    first = [event("ADDED", pod("a", 3)) + event("ADDED", pod("b", 4)) + initial_end(5), gone()]
    again = [event("ADDED", pod("a", 3)) + event("ADDED", pod("c", 8)) + initial_end(9)]
    server = Server([], [first, again])

    seen, _ = follow(server, from_cache=True)

    assert seen[2:] == [("ADDED", "c", "8"), ("DELETED", "b", "4")]
    assert (server.watched_from, server.streams) == (["0", "", "9"], 2)


@pytest.mark.parametrize("code", [400, 403, 422, 500])
def test_a_server_without_streams_lists_its_cache(code: int) -> None:
    pages = [page(5, pod("a", 1), more="next"), page(5, pod("b", 2))]
    server = Server(pages, [ApiError("sendInitialEvents: Forbidden", code)])

    seen, _ = follow(server, from_cache=True)

    assert [name for _, name, _ in seen] == ["a", "b"]
    assert [query.get("resourceVersion") for query in server.list_queries] == ["0", None]
    assert (server.watched_from, server.pauses) == (["0", "5"], [])


def test_a_stream_that_breaks_off_is_read_again() -> None:
    broken: list[bytes | Exception] = [
        event("ADDED", pod("a", 3)) + event("ADDED", pod("gone", 9)),
        UnreachableError("reset"),
    ]
    server = Server([], [broken, [event("ADDED", pod("a", 3)) + initial_end(10)]])

    seen, _ = follow(server, from_cache=True)

    assert seen == [("ADDED", "a", "3"), ("ADDED", "gone", "9"), ("DELETED", "gone", "9")]
    assert server.watched_from == ["0", "0", "10"]


def test_a_stream_that_ends_before_its_bookmark_leads_to_a_list() -> None:
    server = Server([page(5, pod("b", 2))], [[event("ADDED", pod("a", 3))]])

    seen, _ = follow(server, from_cache=True)

    assert seen == [("ADDED", "a", "3"), ("ADDED", "b", "2"), ("DELETED", "a", "3")]
    assert server.watched_from == ["0", "5"]


def test_a_stream_that_begins_with_an_error_leads_to_a_list() -> None:
    status = {"kind": "Status", "status": "Failure", "code": 500, "message": "no progress of etcd"}
    server = Server([page(5, pod("a", 1))], [[event("ERROR", status)]])

    seen, _ = follow(server, from_cache=True)

    assert seen == [("ADDED", "a", "1")]
    assert server.watched_from == ["0", "5"]
