"""Pprof: /debug/pprof and /debug/flags/v, where profiling is on.

`/debug/pprof/profile` samples the stacks of all threads and answers with collapsed stacks, one line per stack with the
number of samples, as flame graph tools read them. `/debug/pprof/threads` shows what every thread does at this moment.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from types import FrameType

from aiohttp import web

PREFIX = "/debug/pprof"
DEFAULT_S, LONGEST_S = 30.0, 600.0
INTERVAL_S = 0.01
PLAIN = "text/plain"
HELP = """\
profile?seconds=30  where the time goes: samples of all threads as collapsed stacks
threads             the stack of every thread at this moment
cmdline             the command line

There is no heap, block, mutex or trace profile: Python has no counterpart.
"""


class Sampler(threading.Thread):
    """Counts the stacks of all other threads, every `INTERVAL_S`, until `stop`."""

    def __init__(self) -> None:
        super().__init__(name="profiler", daemon=True)
        self.stacks: Counter[str] = Counter()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            self.sample()

    def sample(self) -> None:
        """Count the stacks of the threads."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != self.ident:
                self.stacks[";".join([names.get(ident, str(ident)), *_stack(frame)])] += 1

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def collapsed(self) -> str:
        """A line per stack: its frames, outermost first, and its number of samples."""
        return "".join(f"{stack} {count}\n" for stack, count in self.stacks.most_common())


def _stack(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{frame.f_globals.get('__name__', '?')}.{code.co_qualname}")
        frame = frame.f_back
    return names[::-1]


def profiling_routes(
    arguments: list[str], set_verbosity: Callable[[int], None]
) -> list[web.RouteDef]:
    """The routes; `arguments` is the command line."""
    at_work = asyncio.Lock()

    async def index(request: web.Request) -> web.Response:
        return web.Response(text=HELP, content_type=PLAIN)

    async def profile(request: web.Request) -> web.Response:
        try:
            seconds = float(request.query.get("seconds", DEFAULT_S))
        except ValueError:
            seconds = -1.0
        if not 0 < seconds <= LONGEST_S:
            text = (
                f"seconds: expected a number up to {LONGEST_S:g}; got {request.query['seconds']}\n"
            )
            return web.Response(status=400, text=text, content_type=PLAIN)
        if at_work.locked():
            text = "a profile is being taken\n"
            return web.Response(status=500, text=text, content_type=PLAIN)
        async with at_work:
            sampler = Sampler()
            sampler.start()
            try:
                await asyncio.sleep(seconds)
            finally:
                sampler.stop()
        return web.Response(text=sampler.collapsed(), content_type=PLAIN)

    async def threads(request: web.Request) -> web.Response:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        parts = [
            f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
            for ident, frame in sys._current_frames().items()
        ]
        return web.Response(text="\n".join(parts), content_type=PLAIN)

    async def command_line(request: web.Request) -> web.Response:
        return web.Response(text="\0".join(arguments), content_type=PLAIN)

    async def verbosity(request: web.Request) -> web.Response:
        text = (await request.text()).strip()
        if not text.isdigit():
            problem = f'v: expected a whole number; got "{text}"\n'
            return web.Response(status=400, text=problem, content_type=PLAIN)
        set_verbosity(int(text))
        return web.Response(text=f"successfully set v to {text}\n", content_type=PLAIN)

    return [
        web.get(PREFIX, index),
        web.get(f"{PREFIX}/", index),
        web.get(f"{PREFIX}/profile", profile),
        web.get(f"{PREFIX}/threads", threads),
        web.get(f"{PREFIX}/goroutine", threads),
        web.get(f"{PREFIX}/cmdline", command_line),
        web.put("/debug/flags/v", verbosity),
    ]
