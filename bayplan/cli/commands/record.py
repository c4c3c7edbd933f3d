"""Record: `bayplan record`, the changes of a live cluster as a file that `bayplan replay` plays."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...clock import Clock, SystemClock
from ...errors import InputError, counted, os_errors_named
from ..options.cluster_options import CONTEXT, KUBECONFIG, chosen_cluster
from ..options.input_options import seconds_if_given
from ..options.option_groups import option
from ..render.consoles import stderr_console
from .snapshot import ANNOTATIONS

if TYPE_CHECKING:
    from ...kube.connection import Connection
    from ...kube.reflector import Batch
    from ...sim.recording_file import RecordingWriter

FLUSH_S = 1.0
"""Seconds of a recording that are lost at most if it is killed."""


def record(
    kubeconfig: Path | None = KUBECONFIG,
    context: str | None = CONTEXT,
    to: Path | None = option("--to FILE", "Where to write it. Default: standard output."),
    duration: str | None = option(
        "--for DURATION", "How long, such as 90s or 2h. Default: until Ctrl-C or SIGTERM."
    ),
    annotation: list[str] | None = ANNOTATIONS,
) -> None:
    """Record the objects of a live cluster, and then each change with its time.

    Reads only, and leaves out the same fields as `bayplan snapshot`. The file is JSON lines, gzipped. When the cluster
    cannot be reached for a while, what changed meanwhile is recorded when it is back.

    Example: bayplan record --for 1h > run.jsonl.gz
    """
    from ...api.wire.placement_fields import KEPT_ANNOTATIONS
    from ...kube.live_cluster import connected
    from ...observe.logs import set_up_logging

    kubeconfig, context = chosen_cluster(kubeconfig, context)
    seconds = seconds_if_given("--for", duration)
    set_up_logging()
    kept = KEPT_ANNOTATIONS | frozenset(annotation or ())

    if to is None and sys.stdout.isatty():
        problem = "expected a file or a pipe; got a terminal. Try: bayplan record > run.jsonl.gz"
        raise InputError(f"standard output: {problem}")
    try:
        with ExitStack() as files:
            recorder = Recorder(lambda: _open(to, files), SystemClock(), kept)
            asyncio.run(_record_until_told(recorder, connected(kubeconfig, context), seconds))
    except BrokenPipeError:
        raise
    except OSError as error:
        where = to or "standard output"
        raise InputError(f"{where}: expected room to write; got {error.strerror}") from None
    text = f"recorded {counted(recorder.objects, 'object')} and {counted(recorder.events, 'event')}"
    stderr_console().print(text, highlight=False)


async def _record_until_told(
    recorder: Recorder, opening: AbstractAsyncContextManager[Connection], seconds: float | None
) -> None:
    """Record until a signal is received, or for a number of seconds."""
    async with opening as connection:
        told = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        await recorder.record(connection, told, seconds)


class Recorder:
    """Writes the input of a follower: first all objects, then the changes.

    The file is opened when there is something to write: whatever fails before leaves an old one alone.
    """

    def __init__(
        self, open_stream: Callable[[], IO[bytes]], clock: Clock, annotations: Collection[str]
    ) -> None:
        self._open_stream = open_stream
        self._clock = clock
        self._annotations = annotations
        self._version = ""
        self._writer: RecordingWriter | None = None
        self._started_s = 0.0
        self._present: dict[tuple[str, str, str], Any] = {}
        self._noted: list[tuple[float, str, Any]] = []
        self.objects = self.events = 0

    async def record(
        self, connection: Connection, told: asyncio.Event, seconds: float | None = None
    ) -> None:
        """Record until `told` is set, or for `seconds`; raises ApiError if the cluster cannot be read."""
        from ...kube.cluster_reader import ClusterFollower
        from ...kube.live_cluster import read_version

        self._version = await read_version(connection)
        loop = asyncio.get_running_loop()
        follower = ClusterFollower(connection, self.take)
        following = asyncio.ensure_future(follower.run())
        ending = asyncio.ensure_future(told.wait())
        try:
            await self._either(following, ending, follower.synced.wait())
            if not told.is_set():
                self._begin()
                end = None if seconds is None else loop.time() + seconds
                while not told.is_set() and (end is None or loop.time() < end):
                    left_s = FLUSH_S if end is None else min(FLUSH_S, max(end - loop.time(), 0))
                    await self._either(following, ending, asyncio.sleep(left_s))
                    self._write()
        finally:
            for task in (following, ending):
                task.cancel()
            await asyncio.gather(following, ending, return_exceptions=True)
        self._end()

    @staticmethod
    async def _either(following: Any, ending: Any, work: Any) -> None:
        """Wait for `work`, unless it is to end, or the cluster is lost for good, which is raised."""
        task = asyncio.ensure_future(work)
        await asyncio.wait({following, ending, task}, return_when=asyncio.FIRST_COMPLETED)
        task.cancel()
        if following.done():
            following.result()

    def take(self, batch: Batch) -> None:
        """Record the changes of a batch."""
        from ...sim.recording_file import DELETED

        at_s = self._clock.monotonic() - self._started_s
        for type, obj in batch:
            if self._writer is not None:
                self._noted.append((at_s, type, obj))
                self.events += 1
            elif type == DELETED:
                self._present.pop((obj.kind, obj.namespace, obj.name), None)
            else:
                self._present[obj.kind, obj.namespace, obj.name] = obj

    def _begin(self) -> None:
        """All that is there is known: write it down."""
        from ...api.wire.placement_fields import clipped_tree
        from ...config.releases import as_recorded
        from ...sim.recording_file import ADDED, RecordingWriter

        self._started_s = self._clock.monotonic()
        self._writer = RecordingWriter(self._open_stream(), self._clock.now())
        for obj in self._present.values():
            tree = as_recorded(clipped_tree(obj, self._annotations), self._version)
            self._writer.add(0.0, ADDED, tree)
        self._writer.synced()
        self.objects = len(self._present)
        self._present = {}
        text = f"recording, beginning with {counted(self.objects, 'object')}; Ctrl-C ends it"
        stderr_console().print(text, highlight=False)

    def _write(self) -> None:
        """Write the noted lines. Not when they are read: a full disk must not look like a lost connection."""
        from ...api.wire.placement_fields import clipped_tree
        from ...config.releases import as_recorded

        assert self._writer is not None
        noted, self._noted = self._noted, []
        for at_s, type, obj in noted:
            tree = as_recorded(clipped_tree(obj, self._annotations), self._version)
            self._writer.add(at_s, type, tree)
        self._writer.flush()

    def _end(self) -> None:
        if self._writer is not None:
            self._write()
            self._writer.end(self._clock.monotonic() - self._started_s)


def _open(to: Path | None, files: ExitStack) -> IO[bytes]:
    """The file of the recording; raises InputError if it cannot be written."""
    if to is None:
        return sys.stdout.buffer
    with os_errors_named(f"--to: {to}", "a file to write to"):
        return files.enter_context(to.open("wb"))
