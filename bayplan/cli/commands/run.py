"""Run: `bayplan run`, the scheduler of a real cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ...errors import ConfigError, InputError, os_errors_named
from ..command_table import CommandApp
from ..flags.command import FlagCommand, FlagValues
from ..flags.run_settings import (
    RunSettings,
    log_options,
    make_elector,
    read_settings,
    unread_configuration,
)
from ..options.cluster_options import chosen_cluster, page_use
from .run_server import Serving, need_web_server

if TYPE_CHECKING:
    from ...config.types import SchedulerConfiguration
    from ...drivers.kube_driver import KubeDriver
    from ...kube.connection import Connection
    from ...kube.leader import LeaderElector

log = logging.getLogger(__name__)

LOST_LEASE = 1
SECOND_SIGNAL = 1
IMPORTING_SWITCH_S = 0.0005
"""Interval of thread switches while modules are imported; with the usual 5 ms, pods and nodes arrive slowly."""
ENDING_S = 0.5
"""Seconds that idle threads of plugins may take to end."""

app = CommandApp()


@app.command("run", cls=FlagCommand)
def run(ctx: typer.Context) -> None:
    """Schedule the pods of a real cluster, as its default scheduler or as a second one.

    Takes all flags of kube-scheduler v1.36, so that it can take its place, and decides as the release of the API server
    does. Schedules the pods whose spec.schedulerName names a profile. On SIGTERM or Ctrl-C it finishes the bindings
    under way and exits; a second signal ends it at once. When the API server cannot be reached, or refuses something,
    it tries again, and /readyz has the reason why it is not ready.

    Exit status: 0 after a signal, 1 when the lease was lost or after a second signal, 2 when the input is wrong.

    Example: bayplan run --kubeconfig ~/.kube/config --config scheduler.yaml
    """
    from ...kube.http_client import PatientLoop
    from ...observe.logs import set_up_logging

    flags: FlagValues = ctx.obj
    if flags.text("version") != "false":
        is_raw = flags.one_of("version", "true", "raw") == "raw"
        typer.echo(version_text(is_raw, flags.text("kubernetes-version")))
        return
    if flags.number("secure-port", 0, 65535):
        need_web_server()
    set_up_logging(**log_options(flags))
    if target := flags.text("write-config-to"):
        write_config(remarked(read_settings(flags)).config, Path(target))
        return
    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        code = runner.run(serve(flags))
    if has_blocked_plugins():
        log.warning("a plugin still blocks its thread: ending without it")
        end_at_once(code)
    if code:
        raise typer.Exit(code)


def version_text(is_raw: bool, version: str = "") -> str:
    """The version of Kubernetes whose decisions are made, with ours behind it."""
    from ...config.releases import choose_release
    from ...observe.build_info import build_info

    info = build_info(choose_release(version).patch)
    if is_raw:
        return "\n".join(f"{name}: {value}" for name, value in info.items())
    return f"Kubernetes {info['git_version']}"


def remarked(settings: RunSettings) -> RunSettings:
    """The settings, once their remarks are logged."""
    for remark in settings.remarks:
        log.warning("%s", remark)
    return settings


def write_config(config: SchedulerConfiguration, path: Path) -> None:
    """Write the configuration in effect."""
    from ...config.encode import encode_config
    from ...yaml_tree import format_tree

    with os_errors_named(f"--write-config-to: {path}", "a file to write"):
        path.write_text(format_tree(encode_config(config)))
    log.info("the configuration is in %s", path)


def has_blocked_plugins() -> bool:
    """Whether a plugin that blocks keeps its thread, and with it the process, from ending."""
    threads = [one for one in threading.enumerate() if one.name.startswith("plugin")]
    for thread in threads:
        thread.join(ENDING_S)
    return any(thread.is_alive() for thread in threads)


def end_at_once(code: int) -> NoReturn:
    """End the process without waiting for its threads."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def connect(flags: FlagValues) -> Connection:
    """A connection to the cluster that the flags and the configuration name.

    Pods and nodes are requested at once, unless the configuration delays that: they arrive while the scheduler is
    imported.
    """
    from ...kube.connection import Connection
    from ...kube.credentials import load_credentials
    from ...kube.first_streams import LARGE, first_stream

    tree = unread_configuration(flags)
    client = tree.get("clientConnection")
    configured = client.get("kubeconfig") if isinstance(client, dict) else None
    named, context, master = map(flags.text, ("kubeconfig", "context", "master"))
    if configured and named and configured != named:
        log.warning("--kubeconfig has no effect: the configuration names %s", configured)
    given = configured or named
    chosen = chosen_cluster(Path(str(given)) if given else None, context or None)
    credentials = await load_credentials(*chosen)
    if master:
        credentials.server = master.rstrip("/")
    log.info("scheduling the pods of %s, known from %s", credentials.server, credentials.source)
    connection = Connection(credentials)
    if not tree.get("delayCacheUntilActive"):
        for path, selector in LARGE.items():
            connection.stream_ahead(path, first_stream(selector))
    return connection


def prepare(flags: FlagValues) -> RunSettings:
    """The settings, once the modules of the scheduler are imported."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(IMPORTING_SWITCH_S)
    try:
        settings = read_settings(flags)
        import_module("...drivers.kube_driver", __package__)
    finally:
        sys.setswitchinterval(usual_s)
    return settings


async def of_release(
    preparing: asyncio.Future[RunSettings], flags: FlagValues, connection: Connection
) -> RunSettings:
    """The settings for the release of the API server, if it answers now, unless a flag names one."""
    from ...kube.live_cluster import read_version

    asking = asyncio.ensure_future(read_version(connection))
    try:
        settings = await preparing  # first: its faults do not wait for the server
        version = flags.text("kubernetes-version") or await asking
    finally:
        asking.cancel()
    from ...config.releases import choose_release

    if choose_release(version) is not settings.gates.release:
        settings = read_settings(flags, version)
    remarked(settings)
    source = "--kubernetes-version" if flags.text("kubernetes-version") else "the API server"
    release = settings.gates.release
    told_by = f"{source} has {version}" if version else "the API server does not tell its version"
    log.info("deciding as kube-scheduler %s: %s", release.patch, told_by)
    return settings


async def other_release(settings: RunSettings, connection: Connection, told: asyncio.Event) -> str:
    """The version of an API server that answers only later, once it is of another release than the settings."""
    from ...config.releases import choose_release
    from ...kube.live_cluster import read_version

    version = await read_version(connection, told)
    if not version or choose_release(version) is settings.gates.release:
        await asyncio.Event().wait()
    return version


async def first_of(
    working: asyncio.Future[int], told: asyncio.Event, asking: asyncio.Future[str] | None
) -> None:
    """Wait until the work ends, a signal comes, or the API server turns out to be of another release."""
    ending = asyncio.ensure_future(told.wait())
    awaited: set[asyncio.Future[Any]] = {working, ending}
    if asking is not None:
        awaited.add(asking)
    await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()


def on_signals(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    """An event that the first SIGINT or SIGTERM sets; the second one ends the process."""
    told = asyncio.Event()

    def on_signal() -> None:
        if told.is_set():
            log.warning("second signal: ending at once")
            end_at_once(SECOND_SIGNAL)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    return told


async def serve(flags: FlagValues) -> int:
    """Schedule until a signal comes; returns the exit status."""
    loop = asyncio.get_running_loop()
    told = on_signals(loop)
    try:
        connection = await connect(flags)
    except InputError:
        read_settings(flags)  # faults of the configuration come first
        raise
    try:
        # The scheduler is imported while the API server answers.
        preparing = loop.run_in_executor(None, prepare, flags)
        settings = await of_release(preparing, flags, connection)
        config = await with_policy(settings, connection)
        return await serve_cluster(connection, settings, config, flags, told)
    finally:
        await connection.close()


async def serve_cluster(
    connection: Connection,
    settings: RunSettings,
    config: SchedulerConfiguration,
    flags: FlagValues,
    told: asyncio.Event,
) -> int:
    """Schedule the pods of one cluster until a signal comes; returns the exit status."""
    from ...drivers.decision_log import DecisionLog
    from ...drivers.kube_driver import DriverOptions, KubeDriver

    plugins = tuple(flags.parts("plugins"))
    options = DriverOptions(plugins=plugins, feature_gates=settings.gates)
    if file := flags.text("decisions"):
        options.decisions = DecisionLog(file, options.clock)
    elector, standing = None, None
    if config.leader_election.leader_elect:
        elector, candidate = make_elector(connection, config, settings.gates, options.clock)
        options.is_leading = lambda: elector.is_leading
        if candidate is not None:
            standing = asyncio.ensure_future(candidate.run())
    driver = KubeDriver(connection, config, options)
    driver.metrics.hide(flags.parts("disabled-metrics"))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR2, lambda: loop.create_task(show_state(driver)))
    use = page_use(flags.parts("usage"), connection)
    serving = Serving(settings.serving, driver, elector, told.is_set, use)
    try:
        await serving.start()
        working = asyncio.ensure_future(schedule(driver, elector))
        asking = asyncio.ensure_future(other_release(settings, connection, told))
        is_asked = not flags.text("kubernetes-version")
        await first_of(working, told, asking if is_asked else None)
        asking.cancel()
        if is_asked and asking.done() and not asking.cancelled() and not told.is_set():
            version = asking.result()
            log.error("the API server has %s: ending, to be started with its release", version)
            return 1
        if not told.is_set():
            return working.result()
        log.info("ending: waiting for what is under way")
        await driver.stop()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return 0
    finally:
        await driver.stop()
        if standing is not None:
            standing.cancel()
        if elector is not None:
            await elector.release()
        await serving.stop()
        if options.decisions is not None:
            options.decisions.close()


async def show_state(driver: KubeDriver) -> None:
    """Log the contents of cache and queue, and where they differ from the cluster."""
    from ...scheduler.debugger import differences, dump

    scheduler = driver.scheduler
    if scheduler is None or not driver.is_ready():
        log.info("SIGUSR2: the cluster is not known yet")
        return
    shown, problems = await driver.call(
        lambda: (list(dump(scheduler)), list(differences(scheduler)))
    )
    for line in shown:
        log.info("SIGUSR2: %s", line)
    for problem in problems:
        log.warning("SIGUSR2: %s", problem)
    log.info("SIGUSR2: cache and queue differ from the cluster in %d places", len(problems))


async def with_policy(settings: RunSettings, connection: Connection) -> SchedulerConfiguration:
    """The configuration; the Policy in a ConfigMap of the cluster takes its place, if a flag names one."""
    if settings.policy is None:
        return settings.config
    from msgspec.structs import replace

    from ...config.load import parse_reading

    namespace, name = settings.policy
    tree = await connection.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    source = f"ConfigMap {namespace}/{name}"
    found = parse_reading({"apiVersion": "v1", "kind": "ConfigMap", **tree}, source, settings.gates)
    if found.config.profiles == ():
        raise ConfigError(f"{source}: expected a Policy; got none")
    old = settings.config
    return replace(
        found.config,
        leader_election=old.leader_election,
        client_connection=old.client_connection,
        pod_max_in_unschedulable_pods_s=old.pod_max_in_unschedulable_pods_s,
    )


async def schedule(driver: KubeDriver, elector: LeaderElector | None) -> int:
    """Schedule as long as the lease is ours; returns the exit status.

    A standby follows the cluster, so that it can take over at once, unless delayCacheUntilActive is set.
    """
    if elector is None:
        await driver.start()
        driver.lead()
        await driver.failure
        return 0
    waits = driver.config.delay_cache_until_active
    if not waits:
        await driver.start()
    await driver.unless_it_fails(elector.acquire())
    holding = asyncio.ensure_future(elector.hold())
    starting = asyncio.ensure_future(driver.start()) if waits else None
    if starting is not None:
        await asyncio.wait({starting, holding}, return_when=asyncio.FIRST_COMPLETED)
    if not holding.done():
        if starting is not None:
            await starting
        driver.lead()
        await driver.unless_it_fails(_result(holding))
    elif starting is not None:
        starting.cancel()
    driver.follow()
    log.error("the lease is lost: exiting, so that a new process starts with fresh state")
    return LOST_LEASE


async def _result(future: asyncio.Future[None]) -> None:
    await future
