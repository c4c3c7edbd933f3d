"""Serving: what `bayplan run` shows about itself while it runs, and the options for that."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError

if TYPE_CHECKING:
    from aiohttp import web

    from ..api.pod import Pod
    from ..cluster.kube.leader import LeaderElector
    from ..drivers.kube_driver import KubeDriver
    from ..web.server import WebServer

SECURE_PORT = 10259
LOOPBACK = "127.0.0.1"
PROBES = "/healthz,/readyz,/livez"
PAGE = "/page"

log = logging.getLogger(__name__)

BindAddressOption = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Address that serves probes, metrics, the configuration and the page. Except on the loopback, "
        "clients need a token, which the API server checks.",
    ),
]
SecurePortOption = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=0, max=65535, help="Port for HTTPS; 0: nothing is served."),
]
CertFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Certificate for HTTPS, PEM. Default: a new self-signed one.",
        show_default=False,
    ),
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The certificate's key, PEM.", show_default=False),
]
AllowPathsOption = Annotated[
    str,
    typer.Option(
        metavar="PATHS",
        help="Paths that need no token, separated by commas; a * at the end matches the rest.",
    ),
]


@dataclass(frozen=True)
class ServingOptions:
    """Where and how to serve; `port` 0 means not at all."""

    address: str = LOOPBACK
    port: int = SECURE_PORT
    cert_file: Path | None = None
    key_file: Path | None = None
    always_allowed: Sequence[str] = tuple(PROBES.split(","))


def serving_options(
    address: str, port: int, cert_file: Path | None, key_file: Path | None, allow_paths: str
) -> ServingOptions:
    """The options as they were given; InputError for what cannot be."""
    allowed = [path.strip() for path in allow_paths.split(",") if path.strip()]
    for path in allowed:
        if not path.startswith("/") or "*" in path[:-1]:
            problem = f'expected paths that begin with / and have * at their end only; got "{path}"'
            raise InputError(f"--authorization-always-allow-paths: {problem}")
    return ServingOptions(address, port, cert_file, key_file, allowed)


def need_web_server() -> None:
    """Raise InputError, with advice, when the package for web servers is not installed."""
    if importlib.util.find_spec("aiohttp") is None:
        raise InputError(
            "aiohttp: expected it to be installed; got nothing. Try: pip install 'bayplan[kube]'"
        )


async def start_serving(
    options: ServingOptions,
    driver: KubeDriver,
    elector: LeaderElector | None,
    is_ending: Callable[[], bool],
) -> WebServer | None:
    """Serve what a scheduler shows; None when that is switched off.

    InputError when the address, the port or the certificate is no good.
    """
    if not options.port:
        return None
    from ..cluster.kube.reviews import ApiReviews
    from ..web.delegated import DelegatedAccess
    from ..web.server import WebServer, is_loopback
    from ..web.tls import ServerCertificate

    access = None
    if not is_loopback(options.address):
        reviews = ApiReviews(driver.connection)
        # The page itself says nothing: what it asks for needs the token that a browser cannot send with an address.
        allowed = [*options.always_allowed, PAGE, f"{PAGE}/"]
        access = DelegatedAccess(reviews, driver.options.clock, allowed)
    server = WebServer(
        [*_routes(driver, elector, is_ending), *_page(driver)],
        host=options.address,
        access=access,
        certificate=ServerCertificate(options.cert_file, options.key_file),
    )
    try:
        await server.start(options.port)
    except InputError as error:
        raise InputError(f"--bind-address, --secure-port: {error}") from None
    log.info("serving %s, the page on %s%s/", server.url, server.url, PAGE)
    return server


def _page(driver: KubeDriver) -> list[web.RouteDef]:
    """The live page; the server checks who may read it."""
    from ..answers import ClusterView
    from ..web.live import PageSource, anyone, page_routes

    cluster, options = driver.cluster, driver.options

    def view() -> ClusterView:
        return ClusterView(
            [obj for kind in cluster.kinds() for obj in cluster.list(kind)],
            driver.config,
            plugins=options.plugins,
            feature_gates=options.feature_gates,
            clock=options.clock,
        )

    source = PageSource(
        cluster,
        options.clock,
        lambda: driver.scheduler,
        run=driver.call,
        make_view=view,
        is_ready=driver.is_ready,
    )
    return page_routes(source, anyone, PAGE)


def _routes(
    driver: KubeDriver, elector: LeaderElector | None, is_ending: Callable[[], bool]
) -> list[web.RouteDef]:
    from ..config import encode_config
    from ..web.health import HealthCheck, named_check
    from ..web.scheduler_routes import scheduler_routes

    checks = [HealthCheck("leaderElection", elector.problem)] if elector is not None else []
    for family in elector.families() if elector is not None else ():
        driver.metrics.add(family)

    async def render_metrics() -> str:
        return await driver.call(lambda: driver.metrics.render(process=True))

    async def list_pods() -> list[Pod]:
        if not driver.is_leader():
            return []
        return await driver.call(lambda: list(driver.cluster.list("Pod")))

    return scheduler_routes(
        healthz=checks,
        readyz=[
            *checks,
            named_check("shutdown", lambda: not is_ending(), "process is shutting down"),
            HealthCheck("sched-handler-sync", driver.problem),
        ],
        render_metrics=render_metrics,
        list_pods=list_pods,
        configz=encode_config(driver.config),
    )
