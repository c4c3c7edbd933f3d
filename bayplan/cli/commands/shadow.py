"""Shadow: `bayplan shadow`, a live cluster watched beside its scheduler, with every decision judged."""

from __future__ import annotations

import asyncio
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...clock import SystemClock
from ...errors import ApiError, InputError
from ..options.cluster_options import CONTEXT, KUBECONFIG, chosen_cluster
from ..options.config_options import EvidenceChoice, SchedulerChoice
from ..options.input_options import seconds_if_given
from ..options.option_groups import option, option_group, takes_options
from ..render.consoles import stderr_console
from ..render.plain_data import ANSWER_FORM, AnswerForm
from .replay import print_account

if TYPE_CHECKING:
    from ...kube.connection import Connection
    from ...shadow.live_shadow import LiveShadow
    from ...shadow.shadow_run import ShadowRun

LINE_S = 1.0
QUIET_LINE_S = 60.0
"""Time between two lines where standard error is not a terminal."""
SAVE_S = 10.0
DEFAULT_ADDRESS = "127.0.0.1"


@option_group
class ShadowOptions(EvidenceChoice, SchedulerChoice):
    """The options of `bayplan shadow`."""

    kubeconfig: Path | None = KUBECONFIG
    context: str | None = CONTEXT
    duration: str | None = option(
        "--for DURATION", "How long, such as 90s or 2h. Default: until Ctrl-C or SIGTERM."
    )
    summary: bool = option(
        "--summary",
        "Print the account in the file of --state, with what the cluster as it is now could gain, and end.",
    )
    state: Path | None = option(
        "--state FILE", "Keep the account in this file, and continue with it after a restart."
    )
    port: int | None = option(
        "--port PORT",
        "Serve the page with the differences, /report.json and /metrics on this port; 0 for a free one.",
        min=0,
        max=65535,
    )
    bind_address: str = option(
        "--bind-address ADDRESS",
        "Address of --port. Beyond the loopback only /metrics, /healthz and /readyz are served.",
        default=DEFAULT_ADDRESS,
    )
    output: AnswerForm = ANSWER_FORM


@takes_options(ShadowOptions)
def shadow(options: ShadowOptions) -> None:
    """Watch a live cluster and judge every decision of its scheduler; nothing is written to the cluster.

    Each pod that another scheduler binds or refuses is judged in the states of the cluster between its arrival and the
    decision: same (a node with the highest total, or the same message), sampled (feasible, but nodes with a higher
    total existed), other state, or different, which names plugin, node and reason. Pods whose schedulerName has no
    profile in --config are judged with the default profile. A line shows the counts; the summary comes at the end.

    Exit status: 0 when no decision differs, 1 when one does, 2 when the input is wrong or access is refused.

    Example: bayplan shadow --for 1h --evidence differences/
    """
    from ...kube.live_cluster import connected
    from ...observe.logs import set_up_logging

    if options.summary and options.state is None:
        raise InputError("--summary: expected --state FILE; got none")
    options.check()
    kubeconfig, context = chosen_cluster(options.kubeconfig, options.context)
    seconds = 0.0 if options.summary else seconds_if_given("--for", options.duration)
    set_up_logging()

    async def watch() -> ShadowRun | None:
        async with connected(kubeconfig, context) as connection:
            return await Watching(connection, options, seconds).watch()

    run = asyncio.run(watch())
    if run is not None:
        print_account(run, options.output)


class Watching:
    """One run of the command."""

    def __init__(
        self, connection: Connection, options: ShadowOptions, seconds: float | None
    ) -> None:
        self._connection = connection
        self._options = options
        self._seconds = seconds
        self._version = ""
        self._clock = SystemClock()

    async def watch(self) -> ShadowRun | None:
        """Watch until the end; the run, None if it ended before all objects were read."""
        from ...kube.live_cluster import read_version
        from ...shadow.live_shadow import LiveShadow

        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await self._check_access()
        self._version = await read_version(self._connection, ended)
        self._settings = self._options.settings(self._version)
        live = self._live = LiveShadow(self._connection, self._make_run, self._clock)
        server = await self._serve(live)
        beside = [asyncio.ensure_future(work) for work in (self._show(live), self._save(live))]
        following = asyncio.ensure_future(live.follow(ended, self._seconds))
        try:
            await asyncio.wait({following, *beside}, return_when=asyncio.FIRST_COMPLETED)
            for task in beside:
                if task.done():
                    task.result()
            await following
        finally:
            for task in (following, *beside):
                task.cancel()
            await asyncio.gather(following, *beside, return_exceptions=True)
            if server is not None:
                await server.stop()
            if sys.stderr.isatty():
                sys.stderr.write("\n")
        self._write_state(live)
        return live.run

    async def _check_access(self) -> None:
        from ...kube.discovery import find_served
        from ...kube.reviews import missing_permissions
        from ...kube.watched_kinds import RESOURCES
        from ...shadow.live_shadow import START_TRIES

        served = await find_served(self._connection, RESOURCES.values(), START_TRIES)
        missing = await missing_permissions(self._connection, served)
        if missing:
            raise ApiError(
                f"expected to be allowed to read the cluster; got no permission to {', '.join(missing)}."
                " Try: kubectl apply -k deploy/shadow, which has a role with these"
            )

    def _make_run(self, objects: list[Any]) -> ShadowRun:
        from ...shadow.report import read_state
        from ...shadow.shadow_run import ShadowRun

        options, settings = self._options, self._settings
        return ShadowRun(
            objects,
            settings,
            account=read_state(options.state) if options.state is not None else None,
            evidence=options.folder(settings, self._version),
            time_text=self._time_of,
        )

    def _time_of(self, at_s: float) -> str:
        """The wall clock at a time after the start."""
        ago = timedelta(seconds=self._live.now_s - at_s)
        return (self._clock.now() - ago).isoformat(timespec="seconds")

    async def _serve(self, live: LiveShadow) -> Any:
        if self._options.port is None:
            return None
        from .run_server import need_web_server

        need_web_server()
        from .shadow_server import make_server

        server = make_server(live, self._options.bind_address)
        await server.start(self._options.port)
        stderr_console().print(f"serving {server.url}", soft_wrap=True)
        return server

    async def _show(self, live: LiveShadow) -> None:
        """Print a line about the state: one that changes on a terminal, else one a minute."""
        is_terminal = sys.stderr.isatty()
        while True:
            text = line_of(live)
            sys.stderr.write(f"\r\x1b[K{text}" if is_terminal else f"{text}\n")
            sys.stderr.flush()
            await asyncio.sleep(LINE_S if is_terminal else QUIET_LINE_S)

    async def _save(self, live: LiveShadow) -> None:
        while True:
            await asyncio.sleep(SAVE_S)
            self._write_state(live)

    def _write_state(self, live: LiveShadow) -> None:
        from ...shadow.report import write_state

        if self._options.state is not None and live.run is not None:
            write_state(self._options.state, live.run.account)


def line_of(live: LiveShadow) -> str:
    """`312 pods seen, 290 same, 22 sampled, 0 other state, 0 different, lag 0.1s`."""
    from ...answers.judged_decision import Agreement

    if live.run is None:
        return "reading the cluster"
    account = live.run.account
    parts = [f"{live.run.follower.pods:,} pods seen"]
    parts += [f"{account.count_of(one):,} {one}" for one in Agreement]
    if account.skipped_decisions:
        parts.append(f"{account.skipped_decisions:,} not judged")
    parts.append(f"lag {live.lag_s:.1f}s")
    if live.interrupted:
        parts.append(f"interrupted: {', '.join(sorted(live.interrupted))}")
    elif live.is_behind:
        parts.append("behind")
    return ", ".join(parts)
