"""Shadow server: the page with the differences, and the metrics of `bayplan shadow`."""

from __future__ import annotations

from aiohttp import web

from ...observe.exposition import render
from ...shadow.decision_account import DecisionAccount
from ...shadow.live_shadow import LiveShadow
from ...shadow.report import POLICY, differences_page, report_tree
from ...shadow.shadow_metrics import account_families
from ...web.access import status_response
from ...web.route_server import WebServer, is_loopback

METRICS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
WITHOUT_NAMES = frozenset({"/metrics", "/healthz", "/readyz"})
"""Paths whose content names no pod and no node."""


class CountsAccess:
    """For a server beyond the loopback: only paths without names of pods and nodes, for reading."""

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return 403 for other paths."""
        if request.path in WITHOUT_NAMES and request.method in ("GET", "HEAD"):
            return None
        return status_response(403, "Forbidden", f"{request.path} is served on the loopback only")


def make_server(live: LiveShadow, host: str) -> WebServer:
    """The server; it is to be started."""

    def account() -> DecisionAccount:
        return live.run.account if live.run is not None else DecisionAccount()

    def open_decisions() -> int:
        return live.run.follower.open_decisions if live.run is not None else 0

    families = account_families(account, lambda: live.lag_s, open_decisions)

    async def page(request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": POLICY}
        text = differences_page(account(), state_text(live))
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def report(request: web.Request) -> web.Response:
        return web.json_response(report_tree(account(), None))

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
