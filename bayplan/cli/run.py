"""Run: `bayplan run`, the scheduler of a real cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from .clusters import ContextOption, chosen_cluster
from .config_options import (
    ConfigOption,
    FeatureGatesOption,
    PluginFilesOption,
    read_configuration,
)
from .electing import (
    LeaderElectOption,
    LeaseDurationOption,
    RenewDeadlineOption,
    ResourceNameOption,
    ResourceNamespaceOption,
    RetryPeriodOption,
    make_elector,
    with_election,
)
from .failures import reports_failures
from .option_groups import takes_options
from .serving import (
    LOOPBACK,
    PROBES,
    SECURE_PORT,
    AllowPathsOption,
    BindAddressOption,
    CertFileOption,
    KeyFileOption,
    SecurePortOption,
    ServingOptions,
    need_web_server,
    serving_options,
    start_serving,
)

if TYPE_CHECKING:
    from ..cluster.kube.leader import LeaderElector
    from ..config import SchedulerConfiguration
    from ..drivers.kube_driver import DriverOptions, KubeDriver
    from ..web.server import WebServer

log = logging.getLogger(__name__)

LOST_LEASE = 1
SECOND_SIGNAL = 1
ENDING_S = 0.5
"""How long idle threads of plugins may take to end."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `bayplan run`."""

    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How to reach the cluster. Default: clientConnection.kubeconfig of the configuration, "
            "KUBECONFIG, ~/.kube/config, or the service account of the pod it runs in.",
            show_default=False,
        ),
    ] = None
    context: ContextOption = None
    config: ConfigOption = None
    plugins: PluginFilesOption = None
    feature_gates: FeatureGatesOption = ""
    leader_elect: LeaderElectOption = None
    leader_elect_lease_duration: LeaseDurationOption = None
    leader_elect_renew_deadline: RenewDeadlineOption = None
    leader_elect_retry_period: RetryPeriodOption = None
    leader_elect_resource_name: ResourceNameOption = None
    leader_elect_resource_namespace: ResourceNamespaceOption = None
    bind_address: BindAddressOption = LOOPBACK
    secure_port: SecurePortOption = SECURE_PORT
    tls_cert_file: CertFileOption = None
    tls_private_key_file: KeyFileOption = None
    authorization_always_allow_paths: AllowPathsOption = PROBES
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            help="Log more; -vv logs everything.",
            show_default=False,
        ),
    ] = 0


@reports_failures
@takes_options(RunOptions)
def run(options: RunOptions) -> None:
    """Schedule the pods of a real cluster, as its default scheduler or beside it.

    Schedules the pods whose spec.schedulerName is that of a profile. On SIGTERM or Ctrl-C it finishes the bindings
    under way and exits; a second signal ends it at once. When the API server cannot be reached, or refuses something,
    it tries again, and /readyz says why it is not ready.

    Exit status: 0 after a signal, 1 when the lease was lost or after a second signal, 2 when the input is wrong.

    Example: bayplan run --kubeconfig ~/.kube/config --config scheduler.yaml
    """
    from ..cluster.kube.patience import make_loop
    from ..config import parse_feature_gates
    from ..drivers.kube_driver import DriverOptions
    from ..observe.logs import set_up_logging

    if options.secure_port:
        need_web_server()
    set_up_logging({0: 0, 1: 4}.get(options.verbose, 10))
    serving = serving_options(
        options.bind_address,
        options.secure_port,
        options.tls_cert_file,
        options.tls_private_key_file,
        options.authorization_always_allow_paths,
    )
    gates = parse_feature_gates(options.feature_gates)
    settings = with_election(
        read_configuration(options.config, None, gates).config,
        options.leader_elect,
        lease_duration=options.leader_elect_lease_duration,
        renew_deadline=options.leader_elect_renew_deadline,
        retry_period=options.leader_elect_retry_period,
        resource_name=options.leader_elect_resource_name,
        resource_namespace=options.leader_elect_resource_namespace,
    )
    driving = DriverOptions(
        plugins=[str(path) for path in options.plugins or ()], feature_gates=gates
    )
    kubeconfig, context = chosen_cluster(options.kubeconfig, options.context)
    source = kubeconfig or settings.client_connection.kubeconfig or None
    place = ClusterPlace(source, context)
    with asyncio.Runner(loop_factory=make_loop) as runner:
        code = runner.run(serve(settings, driving, place, serving))
    if has_blocked_plugins():
        log.warning("a plugin still blocks its thread: ending without it")
        end_at_once(code)
    if code:
        raise typer.Exit(code)


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


class ClusterPlace(NamedTuple):
    """Where the cluster is: a kubeconfig and a context of it; None for the usual ones."""

    kubeconfig: Path | str | None = None
    context: str | None = None


async def serve(
    config: SchedulerConfiguration,
    options: DriverOptions,
    place: ClusterPlace,
    serving: ServingOptions,
) -> int:
    """Schedule until a signal comes; returns the exit status."""
    from ..cluster.kube.connection import Connection
    from ..cluster.kube.credentials import load_credentials
    from ..drivers.kube_driver import KubeDriver

    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if told.is_set():
            log.warning("second signal: ending at once")
            end_at_once(SECOND_SIGNAL)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    credentials = await load_credentials(place.kubeconfig, place.context)
    connection = Connection(credentials)
    log.info("scheduling the pods of %s, known from %s", connection.server, credentials.source)
    elector = (
        make_elector(connection, config, options.clock)
        if config.leader_election.leader_elect
        else None
    )
    if elector is not None:
        options.is_leading = lambda: elector.is_leading
    driver = KubeDriver(connection, config, options)
    server: WebServer | None = None
    try:
        server = await start_serving(serving, driver, elector, told.is_set)
        working = asyncio.ensure_future(schedule(driver, elector))
        ending = asyncio.ensure_future(told.wait())
        both: set[asyncio.Future[Any]] = {working, ending}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not told.is_set():
            return working.result()
        log.info("ending: waiting for what is under way")
        await driver.stop()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return 0
    finally:
        await driver.stop()
        if elector is not None:
            await elector.release()
        if server is not None:
            await server.stop()
        await connection.close()


async def schedule(driver: KubeDriver, elector: LeaderElector | None) -> int:
    """Schedule as long as the lease is ours; returns the exit status."""
    await driver.start()
    if elector is None:
        driver.lead()
        await driver.failure
        return 0
    await driver.unless_it_fails(elector.acquire())
    driver.lead()
    await driver.unless_it_fails(elector.hold())
    driver.follow()
    log.error("the lease is lost: exiting, so that a new process starts with fresh state")
    return LOST_LEASE
