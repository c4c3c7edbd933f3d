"""/debug/pprof and /debug/flags/v."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from bayplan.web.access import LocalAccess
from bayplan.web.pprof import Sampler, profiling_routes
from bayplan.web.route_server import WebServer

Ask = Callable[[str, str, str], Awaitable[tuple[int, str]]]


class EveryWriter:
    """Allows every change."""

    async def refusal(self, request: web.Request) -> web.Response | None:
        return None


def ask(*requests: tuple[str, str, str]) -> tuple[list[tuple[int, str]], list[int]]:
    """The answers to requests (method, path, body), and the verbosity that was set."""
    levels: list[int] = []

    async def run() -> list[tuple[int, str]]:
        access = LocalAccess(writers=EveryWriter())
        routes = profiling_routes(["bayplan", "run", "--v=2"], levels.append)
        server = WebServer(routes, access=access)
        await server.start()
        found = []
        try:
            async with aiohttp.ClientSession() as session:
                for method, path, body in requests:
                    async with session.request(method, server.url + path, data=body) as answer:
                        found.append((answer.status, await answer.text()))
        finally:
            await server.stop()
        return found

    return asyncio.run(run()), levels


def test_a_profile_has_the_stacks_of_all_threads() -> None:
    go_on = threading.Event()

    def waits_in_a_thread() -> None:
        go_on.wait()

    thread = threading.Thread(target=waits_in_a_thread, name="worker")
    thread.start()
    try:
        sampler = Sampler()
        sampler.sample()
        sampler.sample()
    finally:
        go_on.set()
        thread.join()

    (line,) = [line for line in sampler.collapsed().splitlines() if line.startswith("worker;")]
    frames, _, count = line.rpartition(" ")
    assert count == "2"
    assert "waits_in_a_thread" in frames.split(";")[-3] + frames.split(";")[-2]


def test_the_paths_answer() -> None:
    answers, _ = ask(
        ("GET", "/debug/pprof/", ""),
        ("GET", "/debug/pprof/cmdline", ""),
        ("GET", "/debug/pprof/threads", ""),
        ("GET", "/debug/pprof/profile?seconds=0.05", ""),
    )

    assert [code for code, _ in answers] == [200] * 4
    assert "collapsed stacks" in answers[0][1]
    assert answers[1][1] == "bayplan\0run\0--v=2"
    assert "thread MainThread:" in answers[2][1]
    assert "\nMainThread;" in f"\n{answers[3][1]}"


@pytest.mark.parametrize("seconds", ["no", "0", "-1", "601", "nan"])
def test_a_duration_that_cannot_be_is_refused(seconds: str) -> None:
    ((code, text),), _ = ask(("GET", f"/debug/pprof/profile?seconds={seconds}", ""))

    assert code == 400
    assert text == f"seconds: expected a number up to 600; got {seconds}\n"


def test_the_verbosity_is_set() -> None:
    answers, levels = ask(("PUT", "/debug/flags/v", "4"), ("PUT", "/debug/flags/v", "much"))

    assert answers == [
        (200, "successfully set v to 4\n"),
        (400, 'v: expected a whole number; got "much"\n'),
    ]
    assert levels == [4]
