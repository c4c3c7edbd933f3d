"""Up: `bayplan up`, a cluster on this machine that kubectl can talk to."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import signal
import socket
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from ...cluster.private_files import check_owner, write_private
from ...errors import InputError, os_errors_named
from ..options.autoscaler_options import INSTANCE_TYPES
from ..options.cluster_options import page_use
from ..options.config_options import (
    CONFIG,
    FEATURE_GATES,
    KUBERNETES_VERSION,
    PLUGIN_FILES,
    read_gates,
    read_settings,
)
from ..options.input_options import takes_input_limit
from ..options.option_groups import option, option_group, takes_options
from ..options.scheduler_options import (
    KUSTOMIZE,
    RECURSIVE,
    STRICT,
    reading_files,
)
from ..render.consoles import stderr_console
from .clusters import (
    DEFAULT_NAME,
    LOG,
    ClusterEntry,
    StateFolderError,
    check_name,
    claim,
    folder_of,
    remove_entry,
    write_entry,
)
from .detached_server import DetachedServer, fork_server
from .run_server import need_web_server, page_source

if TYPE_CHECKING:
    from ...apiserver.server import ApiServer
    from ...scheduler import Scheduler
    from ...sim.settings import Settings
    from ...web.live import PageServer, ReadUse
    from .up_manifests import UpManifests

DEFAULT_NODES = 3
LOOPBACK = "127.0.0.1"
MOST_SPEED = 1000
INTERRUPT_AGAIN_S = 2.0
"""Seconds until the exception of a signal is raised again, if the process did not end by it."""


class AuthorizationMode(StrEnum):
    """Rules for the permissions of users."""

    ALLOW = "allow"
    RBAC = "rbac"


class ControllerMode(StrEnum):
    """The controllers to run."""

    ALL = "all"
    NONE = "none"


@option_group
class UpOptions:
    """The options of `bayplan up`."""

    port: int = option(
        "--port NUMBER", "Port to listen on; 0: a free one.", default=0, min=0, max=65535
    )
    data_dir: Path | None = option(
        "--data-dir FOLDER", "Folder that keeps the cluster between runs. Default: in memory only."
    )
    nodes: int | None = option(
        "--nodes NUMBER",
        f"How many nodes to begin with; {DEFAULT_NODES} when there are none and no file is given.",
        min=0,
    )
    like: str | None = option(
        "--like TYPE",
        "What these nodes have: a type of the table, as m5.xlarge, or amounts, as cpu=4,memory=16Gi.",
    )
    instance_types: Path | None = INSTANCE_TYPES
    name: str | None = option(
        "--name NAME",
        f"Name of the cluster, for up down and up list. Default: {DEFAULT_NAME}; while that is taken, "
        f"{DEFAULT_NAME}-2 and so on.",
    )
    detach: bool = option(
        "--detach, -d", "End when the cluster serves, and let it go on; bayplan up down ends it."
    )
    kubeconfig: Path | None = option(
        "--kubeconfig FILE",
        "Where to write the kubeconfig. Default: beside the data, or in a folder of the cluster's name.",
    )
    filename: list[Path] | None = option(
        "-f, --filename FILE",
        "File or folder with manifests to begin with; - is standard input. May be given several times.",
        allow_dash=True,
    )
    kustomize: Path | None = KUSTOMIZE
    recursive: bool = RECURSIVE
    strict: bool = STRICT
    config: Path | None = CONFIG
    kubernetes_version: str = KUBERNETES_VERSION
    feature_gates: str = FEATURE_GATES
    plugins: list[Path] | None = PLUGIN_FILES
    scheduler: bool = option(
        "--scheduler/--no-scheduler",
        "Whether pods are scheduled, or wait for a scheduler of yours.",
        default=True,
    )
    controllers: ControllerMode = option(
        "--controllers MODE",
        "all, or none but the fake kubelets: for kube-controller-manager, or others of yours.",
        default=ControllerMode.ALL,
    )
    grace: bool = option(
        "--grace", "Keep deleted pods for their grace period; without it they are gone at once."
    )
    speed: float = option(
        "--speed NUMBER",
        "How many times as fast as on this machine time passes in the cluster; "
        "its timestamps run ahead.",
        default=1.0,
        min=1,
        max=MOST_SPEED,
    )
    https: bool = option(
        "--https/--http",
        "Serve HTTPS and ask clients for a token, which the kubeconfig has; or plain HTTP "
        "on the loopback, for clients that know neither.",
        default=True,
    )
    authorization: AuthorizationMode = option(
        "--authorization MODE",
        "What users with a token may do: allow (everything), or rbac (what RBAC objects say).",
        default=AuthorizationMode.ALLOW,
    )
    bind_address: str = option(
        "--bind-address ADDRESS",
        "Address to listen on; 0.0.0.0: every one of this machine.",
        default=LOOPBACK,
    )
    page: bool = option(
        "--page/--no-page", "Whether to serve a page that shows the cluster as it is.", default=True
    )
    page_port: int = option(
        "--page-port NUMBER",
        "Port of the page on the loopback; 0: a free one.",
        default=0,
        min=0,
        max=65535,
    )
    usage: list[str] | None = option(
        "--usage FILE",
        "Measured use of pods that the page shows beside their requests, as with bayplan capacity.",
        show_default=False,
    )


@takes_input_limit
@takes_options(UpOptions)
def up(options: UpOptions) -> None:
    """Run a cluster on this machine: an API server, controllers, a scheduler, and simulated nodes.

    Prints the line that points kubectl to it. Ctrl-C ends it, or bayplan up down.

    Exit status: 0, or 2 when the input is wrong.

    Example: bayplan up --nodes 5 --plugins my_policy.py
    """
    need_web_server()
    if options.name is not None:
        check_name(options.name)
    signal.signal(signal.SIGTERM, interrupt)
    detached = None
    if options.detach:
        detached = fork_server(Path("-") in (options.filename or ()), announce)
    entry = claim_entry(options)
    try:
        serve(options, entry, detached)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if entry is not None:
            remove_entry(entry)


def interrupt(number: int, frame: FrameType | None) -> None:
    """End as by Ctrl-C, so that nothing stays behind: for signals that come before the cluster serves.

    The exception may be lost, as where a compiled module clears errors of the Python that it calls: it is raised again.
    """
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, INTERRUPT_AGAIN_S)
    raise KeyboardInterrupt


def claim_entry(options: UpOptions) -> ClusterEntry | None:
    """The cluster's name and folder; None when there can be no folder and none is needed."""
    is_needed = options.detach or options.name is not None
    try:
        return claim(options.name or DEFAULT_NAME, next_free=not is_needed)
    except StateFolderError:
        if is_needed:
            raise
        return None


def serve(
    options: UpOptions, entry: ClusterEntry | None, detached: DetachedServer | None = None
) -> None:
    """Serve until a signal."""
    from .up_manifests import NodeModel, add_nodes, load, read_manifests, read_shape

    version = options.kubernetes_version
    gates = read_gates(options.feature_gates, version)
    settings = (
        read_settings(options.config, None, options.feature_gates, options.plugins, None, version)
        if options.scheduler
        else None
    )
    shape = read_shape(options.like, options.instance_types) if options.like else NodeModel()
    folder = options.data_dir.resolve() if options.data_dir is not None else None
    with reading_files(options.filename, options.kustomize, options.recursive) as paths:
        manifests = read_manifests(paths or [], options.strict)
    use = page_use(options.usage or ())
    server = make_server(options, folder, gates, manifests)

    async def run() -> None:
        shown: PageServer | None = None
        await server.start(options.port)
        try:
            load(server, manifests)
            server.add_default_class()
            has_nodes = manifests.objects or server.store.count("nodes")
            default = 0 if has_nodes else DEFAULT_NODES
            add_nodes(server, default if options.nodes is None else options.nodes, shape)
            running = start_scheduler(server, settings)
            path = write_kubeconfig(server, options.kubeconfig, folder or own_folder)
            if options.page:
                shown = make_page(server, running, settings, use)
                try:
                    await shown.start(options.page_port)
                except InputError as error:
                    raise InputError(f"--page-port: {error}") from None
            say_ready(server, path, shown.url if shown is not None else "", entry, detached)
            told = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, told.set)
            await told.wait()
        finally:
            if shown is not None:
                await shown.stop()
            await server.stop()

    gc.set_threshold(100_000, 20, 20)  # the objects live long: collecting finds nothing
    with ExitStack() as stack:
        own_folder = (
            folder_of(entry.name)
            if entry is not None
            else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bayplan-")))
        )
        asyncio.run(run())


def make_page(
    server: ApiServer, running: Scheduler | None, settings: Settings | None, use: ReadUse | None
) -> PageServer:
    """The page of the cluster, on which its objects can be edited."""
    from ...apiserver.object_editor import ObjectEditor
    from ...sim.settings import DEFAULT_SETTINGS
    from ...web.live import PageServer

    source = page_source(
        server.plane.cluster,
        server.clock,
        lambda: running,
        settings or DEFAULT_SETTINGS,
        edit=ObjectEditor(server.registry).handle,
        read_use=use,
    )
    return PageServer(source)


def make_server(
    options: UpOptions, folder: Path | None, gates: Mapping[str, bool], manifests: UpManifests
) -> ApiServer:
    """The API server that the options describe; raises InputError when they contradict each other."""
    from ...apiserver.server import ApiServer, make_credentials
    from ...clock import FastClock, SystemClock

    life: dict[str, Any] = {
        "clock": FastClock(options.speed) if options.speed != 1 else SystemClock(),
        "grace": options.grace,
        "stages": manifests.stages,
        "controllers": options.controllers is ControllerMode.ALL,
    }
    address, hosts = options.bind_address, ["localhost", LOOPBACK, "::1"]
    try:
        is_local = ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise InputError(f"--bind-address: expected an IP address; got {address!r}") from None
    if not is_local:
        hosts += [address, socket.gethostname()]
    if not options.https:
        if options.authorization is AuthorizationMode.RBAC:
            raise InputError(
                "--authorization: expected allow with --http, which has no users; got rbac"
            )
        if not is_local:
            expected = "expected an address of the loopback with --http, which asks for no token"
            raise InputError(f"--bind-address: {expected}; got {address}")
        return ApiServer(folder, gates=gates, address=address, **life)
    made = make_credentials(folder, hosts)
    return ApiServer(
        folder,
        token=made.token,
        certificate=made.certificate,
        gates=gates,
        address=address,
        hosts=hosts,
        rbac=options.authorization is AuthorizationMode.RBAC,
        **life,
    )


def start_scheduler(server: ApiServer, settings: Settings | None) -> Scheduler | None:
    """Start a scheduler besides the controllers; None without settings."""
    if settings is None:
        return None
    from ...drivers.loop_driver import LoopDriver

    plane = server.plane
    driver = LoopDriver(
        settings.effective_config,
        plane.cluster,
        server.clock,
        plane.timers,
        plane.wake,
        plugins=settings.plugins,
        feature_gates=settings.feature_gates,
        take_first=plane.workloads.take_first_daemons if plane.workloads is not None else tuple,
    )
    custom = (
        profile.handle.custom_resources or {} for profile in driver.scheduler.profiles.values()
    )
    server.follow_custom({name: one for some in custom for name, one in some.items()}.values())
    plane.also_run(driver.run)
    plane.wake()
    return driver.scheduler


def write_kubeconfig(server: ApiServer, path: Path | None, folder: Path) -> Path:
    """Write the kubeconfig, for its owner only, and return where it is."""
    from ...apiserver.server import make_kubeconfig
    from ...yaml_tree import format_tree

    if path is None:
        path = folder / "kubeconfig"
    check_owner(path)
    if not is_ours(path):
        expected = "expected a new file, or one that bayplan up wrote"
        raise InputError(f"--kubeconfig: {path}: {expected}; got one that holds something else")
    certificate = server.certificate.cert if server.certificate is not None else None
    text = format_tree(make_kubeconfig(server.url, certificate, server.token))
    with os_errors_named(path, "a file to write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, text.encode())  # a client never reads half a file
    return path.absolute()


def is_ours(path: Path) -> bool:
    """Whether the file may be overwritten: it does not exist, or `bayplan up` wrote it."""
    from ...apiserver.server import make_kubeconfig
    from ...yaml_tree import YamlError, iter_trees

    try:
        found = next(iter_trees(path.read_bytes()), None)
    except OSError:
        return True  # unreadable: let the write report the error
    except YamlError:
        return False
    ours = make_kubeconfig("")
    return found is None or (
        isinstance(found, dict)
        and all(_names(found, key) == _names(ours, key) for key in ("clusters", "contexts"))
    )


def _names(kubeconfig: dict[str, Any], key: str) -> list[Any]:
    entries = kubeconfig.get(key)
    known = entries if isinstance(entries, list) else []
    return [entry.get("name") if isinstance(entry, dict) else entry for entry in known]


def say_ready(
    server: ApiServer,
    kubeconfig: Path,
    page: str,
    entry: ClusterEntry | None,
    detached: DetachedServer | None,
) -> None:
    """Write the description of the cluster to its entry, and print it."""
    known = replace(
        entry or ClusterEntry("", os.getpid(), ""),
        server=server.url,
        page=page,
        kubeconfig=str(kubeconfig),
        nodes=server.store.count("nodes"),
        release=server.registry.release.patch,
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    if entry is not None:
        write_entry(known)
    if detached is not None:
        detached.be_ready({**asdict(known), "is_detached": True}, folder_of(known.name) / LOG)
    else:
        announce(asdict(known))


def announce(known: Mapping[str, Any]) -> None:
    """Print how to reach the cluster: the line to paste on standard output, the rest on standard error."""
    console = stderr_console()
    ending = f"bayplan up down {known['name']}" if known.get("is_detached") else "Ctrl-C"
    release = f", Kubernetes {known['release']}" if known.get("release") else ""
    serving = f"Serving {known['server']} with {known['nodes']} nodes{release}. {ending} ends it."
    console.print(serving, highlight=False)
    if known["page"]:
        console.print(f"Page {known['page']}", highlight=False, soft_wrap=True)
    typer.echo(f"export KUBECONFIG={known['kubeconfig']}")
