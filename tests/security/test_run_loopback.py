"""The loopback of `run`: every local user reads, and changes need a token that the API server accepts."""

import asyncio
from typing import Any

import aiohttp
import pytest

from bayplan.clock import ManualClock
from bayplan.errors import ApiError
from bayplan.web.access import LocalAccess
from bayplan.web.delegated import DelegatedAccess
from bayplan.web.pprof import profiling_routes
from bayplan.web.route_server import WebServer

Tree = dict[str, Any]


class FakeReviews:
    """An API server with an administrator and a reader."""

    def __init__(self, is_down: bool = False) -> None:
        self._is_down = is_down

    async def review_token(self, review: Tree) -> Tree:
        if self._is_down:
            raise ApiError("it is down")
        token = review["spec"]["token"]
        is_known = token in ("admin", "reader")
        return {"status": {"authenticated": is_known, "user": {"username": token}}}

    async def review_access(self, review: Tree) -> Tree:
        spec = review["spec"]
        assert spec["nonResourceAttributes"] == {"path": "/debug/flags/v", "verb": "put"}
        return {"status": {"allowed": spec["user"] == "admin"}}


def put(
    headers: dict[str, str], *, is_down: bool = False, writers: bool = True
) -> tuple[int, list[int]]:
    """The status of a PUT to the level of the log, and the levels that were set."""
    levels: list[int] = []

    async def run() -> int:
        reviewed = DelegatedAccess(FakeReviews(is_down), ManualClock(), ())
        access = LocalAccess(reviewed if writers else None)
        server = WebServer(profiling_routes(["run"], levels.append), access=access)
        await server.start()
        try:
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{server.url}/debug/pprof/") as answer:
                    assert answer.status == 200  # reading needs no token
                path = f"{server.url}/debug/flags/v"
                async with session.put(path, data="9", headers=headers) as answer:
                    return answer.status
        finally:
            await server.stop()

    return asyncio.run(run()), levels


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 403, id="without a token"),
        pytest.param({"Authorization": "Bearer unknown"}, 401, id="an unknown token"),
        pytest.param({"Authorization": "Bearer reader"}, 403, id="a user without the right"),
        pytest.param(
            {"Authorization": "Bearer admin", "Host": "evil.example"}, 403, id="a web page"
        ),
    ],
)
def test_the_level_of_the_log_is_not_changed(headers: dict[str, str], status: int) -> None:
    assert put(headers) == (status, [])


def test_a_user_with_the_right_changes_it() -> None:
    assert put({"Authorization": "Bearer admin"}) == (200, [9])


def test_no_change_while_the_api_server_is_down() -> None:
    assert put({"Authorization": "Bearer admin"}, is_down=True) == (401, [])


def test_a_server_without_writers_takes_no_changes() -> None:
    assert put({"Authorization": "Bearer admin"}, writers=False) == (403, [])
