"""Shadow server: the page with the differences, and the metrics of `bayplan shadow`, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from ...observe.exposition import render
from ...observe.families import Family, ReadCounter, ReadGauge
from ...shadow.decision_account import DecisionAccount
from ...shadow.live_shadow import LiveShadow
from ...shadow.report import POLICY, differences_page, report_tree
from ...web.access import status_response
from ...web.route_server import WebServer, is_loopback
from ...web.scheduler_routes import METRICS

WITHOUT_NAMES = frozenset({"/metrics", "/healthz", "/readyz"})
"""Paths whose content names no pod and no node."""
Values = Mapping[tuple[str, ...], float]
PREFIX = "bayplan_shadow_"
COUNTERS: dict[str, tuple[str, Callable[[DecisionAccount], Values]]] = {
    "decisions_total{scheduler,verdict}": (
        "Decisions of other schedulers, by verdict.",
        lambda account: {
            (one.name, verdict): number
            for one in account.schedulers.values()
            for verdict, number in one.agreements.items()
        },
    ),
    "different_decisions_total{scheduler,plugin}": (
        "Decisions that differ, by the plugins that are the reason.",
        lambda account: {
            (one.name, plugin): number
            for one in account.schedulers.values()
            for plugin, number in one.different_by_plugin.items()
        },
    ),
    "points_lost_total{scheduler}": (
        "Points between the best node and the chosen one, in sampled decisions.",
        lambda account: {(one.name,): one.points_lost for one in account.schedulers.values()},
    ),
    "skipped_decisions_total{cause}": (
        "Decisions that were not judged, by cause.",
        lambda account: {(cause,): number for cause, number in account.skipped.items()},
    ),
    "waited_seconds_total": (
        "Time that pods waited beside a node with room.",
        lambda account: {(): account.waits.seconds},
    ),
}


def account_of(live: LiveShadow) -> DecisionAccount:
    """The decisions that were judged until now."""
    return live.run.account if live.run is not None else DecisionAccount()


def account_families(live: LiveShadow) -> list[Family]:
    """The account as metrics for Prometheus, read when they are exposed."""
    counters = [
        ReadCounter(f"{PREFIX}{name}", text, source=lambda read=read: read(account_of(live)))  # type: ignore[misc]  # mypy: default of a lambda
        for name, (text, read) in COUNTERS.items()
    ]
    lag = "Age of the oldest change that was not followed yet."
    return [
        *counters,
        ReadGauge(f"{PREFIX}lag_seconds", lag, source=lambda: {(): live.lag_s}),
        ReadGauge(
            f"{PREFIX}open_decisions",
            "Decisions whose verdict is open.",
            source=lambda: {(): live.run.follower.open_decisions if live.run is not None else 0},
        ),
    ]


class CountsAccess:
    """For a server beyond the loopback: only paths without names of pods and nodes, for reading."""

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return 403 for other paths."""
        if request.path in WITHOUT_NAMES and request.method in ("GET", "HEAD"):
            return None
        return status_response(403, "Forbidden", f"{request.path} is served on the loopback only")


def make_server(live: LiveShadow, host: str) -> WebServer:
    """Make the server, which the caller starts."""

    families = account_families(live)

    async def page(request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": POLICY}
        text = differences_page(account_of(live), state_text(live))
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def report(request: web.Request) -> web.Response:
        return web.json_response(report_tree(account_of(live), None))

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(text=render(families, process=True), headers=METRICS)

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        is_ready = live.is_ready and not live.interrupted
        return web.Response(text=f"{state_text(live)}\n", status=200 if is_ready else 503)

    routes = [
        web.get("/", page),
        web.get("/report.json", report),
        web.get("/metrics", metrics),
        web.get("/healthz", healthz),
        web.get("/readyz", readyz),
    ]
    return WebServer(routes, host=host, access=None if is_loopback(host) else CountsAccess())


def state_text(live: LiveShadow) -> str:
    """`watching`, or why decisions are not judged now."""
    if not live.is_ready:
        return "reading the cluster"
    if live.interrupted:
        return f"interrupted: {', '.join(sorted(live.interrupted))}"
    return "behind: decisions are skipped" if live.is_behind else "watching"
