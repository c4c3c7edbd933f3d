"""CustomReflector: a resource that is missing, refused, found later or lost does not stop the scheduler."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from bayplan.api.custom import CustomResource
from bayplan.errors import ApiError, NotFoundError
from bayplan.kube.custom_reflector import CustomReflector
from bayplan.kube.reflector import ObjectEvent
from bayplan.kube.retry_backoff import Backoff

FOOS = CustomResource("foos.v1.example.com", "Foo")
GROUP = "/apis/example.com/v1"
Tree = dict[str, Any]


class Stop(Exception):  # noqa: N818
    """The prepared responses are used up."""


def served(kind: str = "Foo", is_namespaced: bool = True) -> Tree:
    return {"resources": [{"name": "foos", "kind": kind, "namespaced": is_namespaced}]}


def foo(name: str, version: int, **metadata: Any) -> Tree:
    own = {"name": name, "namespace": "default", "resourceVersion": str(version), **metadata}
    return {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": own, "spec": {"size": 1}}


def page(*items: Tree) -> Tree:
    return {"kind": "FooList", "metadata": {"resourceVersion": "5"}, "items": list(items)}


def line(kind: str, obj: Tree) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


class Body:
    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


class Connection:
    """Responds with prepared data, each kind of request from its own list; the last pause ends the test."""

    def __init__(
        self,
        discoveries: list[Tree | ApiError],
        lists: list[Tree | ApiError] | None = None,
        watches: list[list[bytes] | ApiError] | None = None,
    ) -> None:
        self._answers: dict[str, list[Any]] = {
            "get": discoveries,
            "list": lists or [],
            "watch": watches or [],
        }
        self.paths: list[str] = []

    def _next(self, what: str) -> Any:
        if not self._answers[what]:
            raise Stop
        answer = self._answers[what].pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def get(self, path: str) -> Tree:
        assert path == GROUP
        found: Tree = self._next("get")
        return found

    async def request(self, method: str, path: str, *, query: Mapping[str, str | int]) -> bytes:
        self.paths.append(path)
        return msgspec.json.encode(self._next("list"))

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str | int], silence_s: float
    ) -> AsyncIterator[Body]:
        yield Body(self._next("watch"))

    async def pause(self, seconds: float) -> None:
        pass


class Followed:
    """Result of following FOOS until the prepared responses are used up."""

    def __init__(self, connection: Connection) -> None:
        self.events: list[ObjectEvent] = []
        self.settled = 0
        made: Any = connection
        no_wait = Backoff(first_s=0, limit_s=0)
        self.reflector = CustomReflector(FOOS, made, self.events.extend, self._settle, no_wait)
        with pytest.raises(Stop):
            asyncio.run(self.reflector.run())

    def _settle(self) -> None:
        self.settled += 1

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(kind, obj.key) for kind, obj in self.events]


def test_objects_are_listed_and_watched() -> None:
    lines = [
        line("ADDED", foo("b", 6)),
        line("MODIFIED", foo("a", 7)),
        line("DELETED", foo("b", 8)),
    ]
    connection = Connection([served()], [page(foo("a", 1))], [lines])

    found = Followed(connection)

    assert found.changes == [
        ("ADDED", "default/a"),
        ("ADDED", "default/b"),
        ("MODIFIED", "default/a"),
        ("DELETED", "default/b"),
    ]
    assert found.events[0].obj.raw["spec"] == {"size": 1}
    assert found.events[0].obj.kind == FOOS.name
    assert connection.paths == [f"{GROUP}/foos"]
    assert found.settled == 1


@pytest.mark.parametrize(
    ("discoveries", "lists", "said"),
    [
        pytest.param(
            [NotFoundError("x"), {"resources": []}, NotFoundError("x"), served()],
            [page(foo("a", 1))],
            "foos.v1.example.com: the server does not have this resource; plugins that read it "
            "find no object until it can be read",
            id="there is no such definition yet",
        ),
        pytest.param(
            [served(), served(), served()],
            [ApiError("forbidden", 403), ApiError("forbidden", 403), page(foo("a", 1))],
            "foos.v1.example.com: forbidden; is there a role with get, list and watch?; plugins that "
            "read it find no object until it can be read",
            id="it may not be read",
        ),
    ],
)
def test_what_cannot_be_read_is_said_once_and_not_waited_for(
    discoveries: list[Any], lists: list[Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bayplan.kube.custom_reflector")

    found = Followed(Connection(discoveries, lists))

    assert caplog.messages == [said, "foos.v1.example.com: can be read now"]
    assert found.settled == 1
    assert found.changes == [("ADDED", "default/a")]
    assert found.reflector.problem == ""


def test_it_is_not_waited_for_before_the_server_said_that_it_is_missing() -> None:
    failing = [ApiError("try later", 503), ApiError("try later", 503)]

    found = Followed(Connection([*failing]))
    assert found.settled == 0
    assert found.reflector.problem == "try later"

    found = Followed(Connection([*failing, NotFoundError("x")]))
    assert found.settled == 1


def test_a_definition_that_is_deleted_takes_its_objects_along() -> None:
    connection = Connection(
        [served(), NotFoundError("x"), served()],
        [page(foo("a", 1), foo("b", 2)), page(foo("c", 9))],
        [NotFoundError("the server could not find the requested resource")],
    )

    found = Followed(connection)

    assert found.changes == [
        ("ADDED", "default/a"),
        ("ADDED", "default/b"),
        ("DELETED", "default/a"),
        ("DELETED", "default/b"),
        ("ADDED", "default/c"),
    ]
    assert found.settled == 1


def test_a_role_that_is_taken_away_leaves_the_objects() -> None:
    watches: list[Any] = [ApiError("forbidden", 403), ApiError("forbidden", 403)]
    connection = Connection([served()], [page(foo("a", 1))], watches)

    assert Followed(connection).changes == [("ADDED", "default/a")]


def test_the_scope_is_that_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    found = Followed(Connection([served("Foo", is_namespaced=False)], [page(foo("a", 1))]))

    assert found.changes == [("ADDED", "a")]
    said = (
        "foos.v1.example.com: a plugin declares kind Foo, namespaced; "
        "the server has kind Foo, cluster-scoped, which is used"
    )
    assert said in caplog.messages


def test_a_field_that_cannot_be_read_is_left_out_and_counted() -> None:
    found = Followed(Connection([served()], [page(foo("a", 1, labels=7))]))

    assert found.changes == [("ADDED", "default/a")]
    assert found.reflector.unreadable == 1
