"""Reflector: the known objects follow the server through pages, watches, disconnects and expired
versions."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.wire.kinds import KINDS
from bayplan.api.wire.whole import whole
from bayplan.errors import ApiError
from bayplan.kube import reflector as module
from bayplan.kube.connection import UnreachableError
from bayplan.kube.reflector import ObjectEvent, Reflector
from bayplan.kube.retry_backoff import Backoff
from bayplan.kube.watched_kinds import RESOURCES, Resource
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario

Tree = dict[str, Any]


def pod(name: str, version: int, **spec: Any) -> Tree:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"containers": [], **spec}}


def page(version: int, *items: Tree, more: str = "") -> Tree:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(items)}


def event(kind: str, obj: Tree) -> bytes:
    return msgspec.json.encode({"type": kind, "object": {"kind": "Pod", **obj}}) + b"\n"


def gone(message: str = "too old resource version") -> bytes:
    status = {"kind": "Status", "status": "Failure", "code": 410, "message": message}
    return msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"


class Stop(Exception):  # noqa: N818
    """The prepared responses are used up."""


class Body:
    def __init__(self, chunks: Sequence[bytes | Exception]) -> None:
        self._chunks = chunks

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


class Server:
    """Responds with prepared data: pages or errors for lists, chunks or an error for watches."""

    def __init__(
        self,
        lists: Sequence[Tree | ApiError],
        watches: Sequence[Sequence[bytes | Exception] | ApiError],
    ) -> None:
        self._lists, self._watches = list(lists), list(watches)
        self.list_queries: list[Mapping[str, Any]] = []
        self.watched_from: list[Any] = []
        self.streams = 0
        self.pauses: list[float] = []

    async def request(self, method: str, path: str, *, query: Mapping[str, str | int]) -> bytes:
        self.list_queries.append(dict(query))
        if not self._lists:
            raise Stop
        answer = self._lists.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return msgspec.json.encode(answer)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str | int], silence_s: float
    ) -> AsyncIterator[Body]:
        self.watched_from.append(query["resourceVersion"])
        self.streams += query.get("sendInitialEvents") == "true"
        if not self._watches:
            raise Stop
        answer = self._watches.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        yield Body(answer)


def follow(
    server: Server, resource: Resource = RESOURCES["Pod"], **options: Any
) -> tuple[list[tuple[str, str, str]], Reflector]:
    """Run until the prepared responses are used up; return the delivered events: type, name,
    version."""
    seen: list[ObjectEvent] = []
    waits = Backoff(first_s=0, limit_s=0)
    reflector = Reflector(resource, server, seen.extend, backoff=waits, **options)
    with pytest.raises(Stop):
        asyncio.run(reflector.run())
    return [(kind, obj.name, obj.resource_version) for kind, obj in seen], reflector


def test_list_is_read_page_by_page_and_watched_from_its_version() -> None:
    server = Server([page(5, pod("a", 1), more="next"), page(5, pod("b", 2))], [])

    seen, _ = follow(server)

    assert seen == [("ADDED", "a", "1"), ("ADDED", "b", "2")]
    assert [query.get("continue") for query in server.list_queries] == [None, "next"]
    assert server.watched_from == ["5"]


def test_only_unfinished_pods_are_requested() -> None:
    server = Server([page(1)], [])

    follow(server)

    expected = "status.phase!=Succeeded,status.phase!=Failed"
    assert server.list_queries[0]["fieldSelector"] == expected


def test_list_that_expires_between_pages_is_restarted() -> None:
    server = Server(
        [
            page(5, pod("a", 1), pod("b", 2), more="next"),
            ApiError("the continue parameter is too old", 410),
            page(7, pod("a", 6)),
        ],
        [],
    )

    seen, _ = follow(server)

    assert seen[2:] == [("MODIFIED", "a", "6"), ("DELETED", "b", "2")]
    assert server.watched_from == ["7"]


def test_synced_is_called_once() -> None:
    told: list[bool] = []
    server = Server([page(1), page(3)], [[gone()]])

    follow(server, synced=lambda: told.append(True))

    assert told == [True]


def test_watch_resumes_from_the_last_version() -> None:
    first = [event("ADDED", pod("a", 6)), event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})]
    server = Server([page(5)], [first, [event("MODIFIED", pod("a", 10))]])

    seen, _ = follow(server)

    assert seen == [("ADDED", "a", "6"), ("MODIFIED", "a", "10")]
    assert server.watched_from == ["5", "9", "10"]


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param([gone()], id="the watch reports an expired version"),
        pytest.param(ApiError("too old resource version", 410), id="the watch is refused with 410"),
    ],
)
def test_expired_version_leads_to_a_list_and_its_differences(cut: Any) -> None:
    before = page(5, pod("same", 1), pod("changed", 2), pod("gone", 3))
    after = page(9, pod("same", 1), pod("changed", 8), pod("new", 7))
    server = Server([before, after], [cut])

    seen, _ = follow(server)

    assert seen[3:] == [
        ("MODIFIED", "changed", "8"),
        ("ADDED", "new", "7"),
        ("DELETED", "gone", "3"),
    ]
    assert server.watched_from == ["5", "9"]


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param([event("ADDED", pod("a", 6)), UnreachableError("reset")], id="a reset"),
        pytest.param([event("ADDED", pod("a", 6)) + b'{"type":"MODI'], id="half a line"),
    ],
)
def test_broken_watch_is_resumed(cut: list[bytes | Exception]) -> None:
    server = Server([page(5)], [cut, [event("DELETED", pod("a", 7))]])

    seen, _ = follow(server)

    assert seen == [("ADDED", "a", "6"), ("DELETED", "a", "7")]
    assert server.watched_from == ["5", "6", "7"]


@given(st.lists(st.integers(min_value=1, max_value=60), max_size=20))
def test_lines_may_be_cut_anywhere(sizes: list[int]) -> None:
    stream = b"".join(
        (
            event("ADDED", pod("a", 6)),
            event("ADDED", pod("b", 7)),
            event("MODIFIED", pod("a", 8)),
            event("DELETED", pod("b", 9)),
        )
    )
    chunks: list[bytes | Exception] = []
    rest = stream
    for size in sizes:
        chunks.append(rest[:size])
        rest = rest[size:]
    server = Server([page(5)], [[*chunks, rest]])

    seen, _ = follow(server)

    expected = [
        ("ADDED", "a", "6"),
        ("ADDED", "b", "7"),
        ("MODIFIED", "a", "8"),
        ("DELETED", "b", "9"),
    ]
    assert seen == expected


def test_object_at_a_known_version_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[Any] = []
    decode: Callable[..., object] = vars(module)["decode_as"]

    def recorded(data: Any, kind: Any) -> object:
        decoded.append(data)
        return decode(data, kind)

    monkeypatch.setattr(module, "decode_as", recorded)
    pods = [pod(f"p{i}", i) for i in range(1, 50)]
    server = Server([page(60, *pods), page(70, *pods[1:], pod("p1", 65))], [[gone()]])

    seen, _ = follow(server)

    assert len(decoded) == 1
    assert seen[len(pods) :] == [("MODIFIED", "p1", "65")]


def test_pending_pod_with_a_bad_spec_is_left_out() -> None:
    bad = pod("bad", 2, containers="none")
    server = Server(
        [page(5, pod("a", 1), bad)], [[event("ADDED", bad), event("ADDED", pod("b", 7))]]
    )

    seen, _ = follow(server)

    assert seen == [("ADDED", "a", "1"), ("ADDED", "b", "7")]


BAD_FIELD = {"nodeName": "n", "tolerations": [{"key": "k", "operator": "Like"}]}


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(Server([page(5, pod("a", 6, **BAD_FIELD))], []), id="in a list"),
        pytest.param(
            Server([page(5)], [[event("ADDED", pod("a", 6, **BAD_FIELD))]]), id="in a watch"
        ),
    ],
)
def test_running_pod_with_a_bad_field_is_kept_without_it(server: Server) -> None:
    seen, reflector = follow(server)

    assert seen == [("ADDED", "a", "6")]
    assert reflector.unreadable > 0


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(
            Server(
                [page(5, pod("a", 1, nodeName="n")), page(9, pod("a", 8, **BAD_FIELD))], [[gone()]]
            ),
            id="in a list",
        ),
        pytest.param(
            Server(
                [page(5, pod("a", 1, nodeName="n"))],
                [[event("MODIFIED", pod("a", 8, **BAD_FIELD))]],
            ),
            id="in a watch",
        ),
    ],
)
def test_object_that_is_changed_into_a_bad_form_is_updated(server: Server) -> None:
    seen, _ = follow(server)

    assert seen == [("ADDED", "a", "1"), ("MODIFIED", "a", "8")]


def test_running_pod_with_a_bad_field_takes_its_room() -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": "3"}}}
    running = pod("a", 6, **{**BAD_FIELD, "containers": [container]})
    seen: list[ObjectEvent] = []
    server = Server([page(5, running)], [])
    asyncio.run(Reflector(RESOURCES["Pod"], server, seen.extend).read_all())
    scenario = Scenario(make_node("n", cpu="4"), *(change.obj for change in seen))
    scenario.add(make_pod("two", cpu="2"), make_pod("one", cpu="1"))

    outcomes = {attempt.pod.name: attempt.outcome for attempt in scenario.run()}

    assert outcomes == {"two": Outcome.UNSCHEDULABLE, "one": Outcome.BOUND}


NO_UID = {"metadata": {"name": "a", "namespace": "default", "uid": 5, "resourceVersion": "8"}}


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(Server([page(5, pod("a", 1)), page(9, NO_UID)], [[gone()]]), id="in a list"),
        pytest.param(
            Server([page(5, pod("a", 1))], [[event("MODIFIED", NO_UID)]]), id="in a watch"
        ),
    ],
)
def test_object_whose_metadata_cannot_be_read_is_removed(server: Server) -> None:
    seen, reflector = follow(server)

    assert seen == [("ADDED", "a", "1"), ("DELETED", "a", "1")]
    assert reflector.unreadable == 1


def test_object_without_a_readable_name_does_not_stop_the_others() -> None:
    nameless = {"metadata": {"name": {}, "resourceVersion": "6"}}
    server = Server([page(5, nameless)], [[event("ADDED", nameless), event("ADDED", pod("b", 7))]])

    seen, _ = follow(server)

    assert seen == [("ADDED", "b", "7")]
    assert server.watched_from == ["5", "7"]


def test_bad_form_that_is_removed_is_deleted() -> None:
    bad = pod("a", 8, **BAD_FIELD)
    server = Server([page(5, pod("a", 1, nodeName="n"))], [[event("DELETED", bad)]])

    seen, _ = follow(server)

    assert seen == [("ADDED", "a", "1"), ("DELETED", "a", "8")]


def test_problem_is_logged_and_counted_once_per_object(caplog: pytest.LogCaptureFixture) -> None:
    lines = [event("MODIFIED", pod(name, version, **BAD_FIELD)) for name, version in VERSIONS]

    _, reflector = follow(Server([page(5)], [[b"".join(lines)]]))

    about = [r.getMessage() for r in caplog.records if "tolerations[0].operator" in r.getMessage()]
    assert len(about) == len({*about}) == 2, "one for each pod"
    assert reflector.unreadable == 2


VERSIONS = [("a", 6), ("b", 7), ("a", 8), ("b", 9), ("a", 10)]


@pytest.mark.parametrize("keep", [True, False])
def test_sources_are_kept_if_they_are_needed(keep: bool) -> None:
    seen: list[ObjectEvent] = []
    named = {"serviceAccountName": "robot"}
    server = Server([page(5, pod("a", 1, **named))], [[event("ADDED", pod("b", 6, **named))]])
    waits = Backoff(first_s=0, limit_s=0)
    reflector = Reflector(RESOURCES["Pod"], server, seen.extend, backoff=waits, keep_sources=keep)
    with pytest.raises(Stop):
        asyncio.run(reflector.run())

    accounts = [whole(change.obj)["spec"].get("serviceAccountName") for change in seen]
    assert accounts == (["robot", "robot"] if keep else [None, None])


def test_watch_that_ends_at_once_is_followed_by_a_delay() -> None:
    waits: list[float] = []

    class Noted(Backoff):
        def next_s(self) -> float:
            waits.append(1)
            return 0

    server = Server([page(5)], [[], []])
    reflector = Reflector(RESOURCES["Pod"], server, lambda batch: None, backoff=Noted())
    with pytest.raises(Stop):
        asyncio.run(reflector.run())

    assert len(waits) == 2
    assert server.watched_from == ["5", "5", "5"]


def test_a_watch_that_delivered_something_ends_the_backoff() -> None:
    server = Server([page(5)], [[], [], [event("ADDED", pod("a", 7)), ApiError("cut")], []])
    backoff = Backoff(first_s=1, limit_s=8, jitter=lambda: 0)
    reflector = Reflector(RESOURCES["Pod"], server, lambda batch: None, backoff=backoff)
    with pytest.raises(Stop):
        asyncio.run(reflector.run())

    assert server.pauses == [1, 2, 1, 2]


def test_an_expired_version_ends_the_backoff_unless_it_was_just_listed() -> None:
    expired = ApiError("too old", 410)
    server = Server([page(5), page(9), page(9)], [[], [], expired, expired, expired])
    backoff = Backoff(first_s=1, limit_s=8, jitter=lambda: 0)
    reflector = Reflector(RESOURCES["Pod"], server, lambda batch: None, backoff=backoff)
    with pytest.raises(Stop):
        asyncio.run(reflector.run())

    assert server.pauses == [1, 2, 1, 2, 4]


def test_next_page_is_requested_before_the_last_is_delivered() -> None:
    server = Server([page(5, pod("a", 1), more="x"), page(5, pod("b", 2))], [])
    requested: list[int] = []

    def deliver(batch: list[ObjectEvent]) -> None:
        requested.append(len(server.list_queries))

    asyncio.run(Reflector(RESOURCES["Pod"], server, deliver).read_all())

    assert [query.get("continue") for query in server.list_queries] == [None, "x"]
    assert requested == [2, 2]


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_permanently_refused_first_list_ends_the_reflector(code: int) -> None:
    server = Server([ApiError("forbidden", code)], [])

    with pytest.raises(ApiError, match="forbidden"):
        asyncio.run(Reflector(RESOURCES["Pod"], server, lambda batch: None).run())


def test_server_error_is_retried_after_a_delay() -> None:
    server = Server([ApiError("busy", 503), page(5, pod("a", 1))], [ApiError("busy", 429)])

    seen, _ = follow(server)

    assert seen == [("ADDED", "a", "1")]
    assert server.watched_from == ["5", "5"]


def test_cluster_wide_kinds_have_no_namespace() -> None:
    node = {"metadata": {"name": "n", "resourceVersion": "1"}}
    server = Server([page(5, node), page(9, node)], [[gone()]])

    seen, _ = follow(server, RESOURCES["Node"])

    assert seen == [("ADDED", "n", "1")]


@pytest.mark.parametrize("name", sorted(RESOURCES))
def test_paths_are_those_of_the_kind(name: str) -> None:
    resource = RESOURCES[name]
    kind = KINDS[name]

    assert resource.path.endswith(f"/{resource.plural}")
    group = "/apis/" if "/" in kind.api_version else "/api/"
    assert resource.path.startswith(group + kind.api_version)
