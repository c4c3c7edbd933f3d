"""Run server: the endpoints of `bayplan run`, and who may read them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ApiError, InputError
from ..flags.table import BY_NAME

if TYPE_CHECKING:
    from aiohttp import web

    from ...api.pod import Pod
    from ...clock import Clock
    from ...drivers.kube_driver import KubeDriver
    from ...kube.connection import Connection
    from ...kube.leader import LeaderElector
    from ...observe.families import GaugeFamily
    from ...releases.feature_gates import FeatureGates
    from ...scheduler import Scheduler
    from ...sim.settings import Settings
    from ...web.access import Access
    from ...web.delegated import ClientAuthorities, DelegatedAccess
    from ...web.live import PageSource, ReadUse
    from ...web.route_server import WebServer
    from ...web.tls import ServingTls
    from ..flags.command import FlagValues

PAGE = "/page"
COMPONENT = "kube-scheduler"
SHUTTING_DOWN = "process is shutting down"
CLIENT_CA, PROXY_CA = "client-ca-file", "requestheader-client-ca-file"
"""Flags, and keys of the ConfigMap in which an API server publishes its authentication."""
LOOKUP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
LOOKUP_TRIES_S = (0.0, 1.0, 5.0, 30.0)
"""Waits before the tries to read the settings of the cluster."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServingOptions:
    """Address, port and certificates to serve with; `port` 0 turns serving off."""

    address: str
    port: int
    tls: ServingTls
    flags: FlagValues
    """All flags: those about access are read where they count, and /flagz shows their values."""


class Serving:
    """The server of a running scheduler."""

    def __init__(
        self,
        options: ServingOptions,
        driver: KubeDriver,
        elector: LeaderElector | None,
        is_ending: Callable[[], bool],
        read_use: ReadUse | None = None,
    ) -> None:
        self._read_use = read_use
        self._options = options
        self._flags = options.flags
        self._driver = driver
        self._elector = elector
        self._is_ending = is_ending
        self._server: WebServer | None = None
        self._lookup: asyncio.Task[None] | None = None
        self._connections = AsyncExitStack()
        from ...web.tls import WorkQueues

        self._work = WorkQueues()

    async def start(self) -> None:
        """Serve, unless that is switched off. InputError when the address, the port or a file is no good."""
        options = self._options
        if not options.port:
            return
        from ...web.access import LocalAccess
        from ...web.route_server import WebServer, is_loopback
        from ...web.tls import ServerCertificate

        certificate = ServerCertificate(options.tls, work=self._work)
        if is_loopback(options.address):
            access: Access = LocalAccess(await self._delegated(()))
        else:
            access = await self._access(certificate.context)
        self._server = WebServer(
            [*self._routes(), *_page(self._driver, self._read_use)],
            host=options.address,
            access=access,
            certificate=certificate,
            reuses_port=self._flags.is_on("permit-port-sharing"),
            reuses_address=self._flags.is_on("permit-address-sharing") or None,
        )
        try:
            await self._server.start(options.port)
        except InputError as error:
            raise InputError(f"--bind-address, --secure-port: {error}") from None
        url = self._server.url
        log.info("serving %s, the page on %s%s/", url, url, PAGE)

    async def stop(self) -> None:
        """Stop serving."""
        if self._lookup is not None:
            self._lookup.cancel()
        if self._server is not None:
            await self._server.stop()
        await self._connections.aclose()

    # Access

    async def _access(self, context: ssl.SSLContext) -> DelegatedAccess:
        flags = self._flags
        # The page itself is public: its requests need the token that a browser cannot send with an address.
        allowed = [*flags.parts("authorization-always-allow-paths"), PAGE, f"{PAGE}/"]
        authorities = self._authorities(context)
        looks_up = not flags.is_on("authentication-skip-lookup")
        if looks_up and not all(map(flags.text, (CLIENT_CA, PROXY_CA))):
            if not flags.is_on("authentication-tolerate-lookup-failure"):
                await self._look_up(authorities)
            else:
                self._lookup = asyncio.ensure_future(self._look_up(authorities))
        return await self._delegated(allowed, authorities)

    async def _delegated(
        self, allowed: Sequence[str], authorities: ClientAuthorities | None = None
    ) -> DelegatedAccess:
        """Access by reviews of the API server, one for each request."""
        from ...kube.reviews import ApiReviews
        from ...web.delegated import DelegatedAccess, ReviewTimes

        flags = self._flags
        reviews = ApiReviews(
            await self._connection(flags.text("authentication-kubeconfig")),
            await self._connection(flags.text("authorization-kubeconfig")),
        )
        times = ReviewTimes(
            flags.seconds("authentication-token-webhook-cache-ttl"),
            flags.seconds("authorization-webhook-cache-authorized-ttl"),
            flags.seconds("authorization-webhook-cache-unauthorized-ttl"),
        )
        return DelegatedAccess(reviews, self._driver.options.clock, allowed, authorities, times)

    async def _connection(self, kubeconfig: str) -> Connection:
        """The connection for reviews: that of the scheduler, unless a flag names another kubeconfig."""
        if not kubeconfig:
            return self._driver.connection
        from ...kube.connection import Connection
        from ...kube.credentials import load_credentials

        metrics = self._driver.connection.metrics
        connection = Connection(await load_credentials(kubeconfig), metrics=metrics)
        self._connections.push_async_callback(connection.close)
        return connection

    def _authorities(self, context: ssl.SSLContext) -> ClientAuthorities:
        from ...web.delegated import ClientAuthorities

        flags = self._flags
        authorities = ClientAuthorities(
            context,
            names=flags.parts("requestheader-allowed-names"),
            user_headers=flags.parts("requestheader-username-headers"),
            uid_headers=flags.parts("requestheader-uid-headers"),
            group_headers=flags.parts("requestheader-group-headers"),
            extra_prefixes=flags.parts("requestheader-extra-headers-prefix"),
        )
        if path := flags.text(CLIENT_CA):
            _trust(authorities.trust_clients, Path(path), f"--{CLIENT_CA}")
        if path := flags.text(PROXY_CA):
            _trust(authorities.trust_proxies, Path(path), f"--{PROXY_CA}")
        return authorities

    async def _look_up(self, authorities: ClientAuthorities) -> None:
        """Take values without a flag from the ConfigMap in which an API server publishes its authentication."""
        problem = ""
        from ...web.tls import CLIENT_AUTHORITIES, REQUEST_HEADERS

        work = self._work
        for wait_s in LOOKUP_TRIES_S:
            await asyncio.sleep(wait_s)
            try:
                with work.working(CLIENT_AUTHORITIES), work.working(REQUEST_HEADERS):
                    found = await self._driver.connection.get(LOOKUP)
                break
            except ApiError as error:
                problem = str(error)
                work.retried(CLIENT_AUTHORITIES)
                work.retried(REQUEST_HEADERS)
        else:
            if not self._flags.is_on("authentication-tolerate-lookup-failure"):
                raise InputError(f"--authentication-tolerate-lookup-failure=false: {problem}")
            log.warning("client certificates are not accepted: %s", problem)
            return
        data: dict[str, str] = found.get("data") or {}
        if not self._flags.text(CLIENT_CA) and data.get(CLIENT_CA):
            authorities.trust_clients(data[CLIENT_CA])
        if not self._flags.text(PROXY_CA) and data.get(PROXY_CA):
            authorities.trust_proxies(data[PROXY_CA])
            authorities.names = _listed(data, "requestheader-allowed-names")
            authorities.user_headers = _listed(data, "requestheader-username-headers")
            authorities.uid_headers = _listed(data, "requestheader-uid-headers")
            authorities.group_headers = _listed(data, "requestheader-group-headers")
            authorities.extra_prefixes = _listed(data, "requestheader-extra-headers-prefix")

    # Routes

    def _routes(self) -> list[web.RouteDef]:
        from ...config.encode import encode_config
        from ...observe.build_info import build_info_family, full_version, release_family
        from ...observe.logs import set_verbosity
        from ...releases.feature_gates import FeatureGates
        from ...web.pprof import profiling_routes
        from ...web.scheduler_routes import HealthCheck, scheduler_routes
        from ...web.zpages import Component

        driver, elector = self._driver, self._elector
        checks = [HealthCheck("leaderElection", elector.problem)] if elector is not None else []
        for family in elector.families() if elector is not None else ():
            driver.metrics.add(family)
        is_on = driver.config.enable_profiling
        gates = FeatureGates.of(driver.options.feature_gates)
        requests, work = driver.connection.metrics.families, self._work.families
        release = gates.release
        shown_flags = {name: self._flags.text(name) for name in BY_NAME}
        infos = build_info_family(release.patch), release_family(release.version, release.patch)
        for shown in (*infos, feature_family(gates), *requests, *work):
            driver.metrics.add(shown)
        return scheduler_routes(
            healthz=checks,
            readyz=[
                *checks,
                HealthCheck("shutdown", lambda: SHUTTING_DOWN if self._is_ending() else None),
                HealthCheck("sched-handler-sync", driver.problem),
            ],
            render_metrics=self._render_metrics,
            list_pods=self._list_pods,
            configz=encode_config(driver.config),
            component=Component(
                COMPONENT,
                full_version(release.patch),
                gates.version,
                shown_flags if gates.enabled("ComponentFlagz") else None,
                has_status=gates.enabled("ComponentStatusz"),
                has_cbor=gates.enabled("CBORServingAndStorage"),
            ),
            profiling=profiling_routes(sys.argv, set_verbosity) if is_on else (),
        )

    async def _render_metrics(self) -> str:
        driver = self._driver
        return await driver.call(lambda: driver.metrics.render(process=True))

    async def _list_pods(self) -> list[Pod]:
        driver = self._driver
        if not driver.is_leader():
            return []
        return await driver.call(lambda: list(driver.cluster.list("Pod")))


def feature_family(gates: FeatureGates) -> GaugeFamily:
    """`kubernetes_feature_enabled`: 1 for each feature gate that is on, 0 for the others."""
    from ...observe.families import GaugeFamily
    from ...releases.feature_gates import GATES

    family = GaugeFamily(
        "kubernetes_feature_enabled{name,stage}", "Feature gates: 1 is on, 0 is off."
    )
    for name, is_on in gates.items():
        stage = GATES[name].at(gates.version).stage
        shown = {"ga": "", "deprecated": "DEPRECATED"}.get(stage.lower(), stage.upper())
        family.labels(name, shown).value = int(is_on)
    return family


def need_web_server() -> None:
    """Raise InputError, with advice, when a package for web servers is not installed."""
    modules = {"aiohttp": "aiohttp", "cryptography": "cryptography", "google-re2": "re2"}
    for package, module in {**modules, "httptools": "httptools"}.items():
        if importlib.util.find_spec(module) is None:
            raise InputError(
                f"{package}: expected it to be installed; got nothing. Try: pip install 'bayplan[kube]'"
            )


def _trust(trust: Callable[[str], None], path: Path, flag: str) -> None:
    try:
        trust(path.read_text())
    except (ssl.SSLError, ValueError) as error:  # the former is an OSError, too
        problem = getattr(error, "reason", None) or str(error)
        raise InputError(f"{flag}: {path}: expected certificates, PEM; got {problem}") from None
    except OSError as error:
        raise InputError(f"{flag}: {path}: expected a file to read; got {error.strerror}") from None


def _listed(data: Mapping[str, str], key: str) -> list[str]:
    """A list that is written as JSON in a ConfigMap."""
    try:
        found = json.loads(data.get(key) or "[]")
    except ValueError:
        log.warning(
            "extension-apiserver-authentication: %s: expected a list; got %s", key, data[key]
        )
        return []
    return [str(one) for one in found]


def page_source(
    cluster: Any,
    clock: Clock,
    scheduler: Callable[[], Scheduler | None],
    settings: Settings,
    **more: Any,
) -> PageSource:
    """The data of the page of a cluster in this process, and the answers to its questions."""
    from ...answers.questions import answer_question
    from ...trials import TrialCluster
    from ...web.live import AnswerBody, PageSource

    def begin_question() -> AnswerBody:
        present = cluster.objects()
        return lambda body: answer_question(present, settings, body)

    def view() -> TrialCluster:
        return TrialCluster(cluster.objects(), settings, clock)

    return PageSource(
        cluster, clock, scheduler, make_view=view, begin_question=begin_question, **more
    )


def _page(driver: KubeDriver, read_use: ReadUse | None) -> list[web.RouteDef]:
    """The live page; the server checks who may read it."""
    from ...sim.settings import Settings
    from ...web.live import anyone, page_routes

    options = driver.options
    source = page_source(
        driver.cluster,
        options.clock,
        lambda: driver.scheduler,
        Settings(driver.config, options.feature_gates or {}, tuple(options.plugins)),
        run=driver.call,
        is_ready=driver.is_ready,
        read_use=read_use,
    )
    return page_routes(source, anyone, PAGE)
