"""Scheduler routes: the paths that kube-scheduler has: probes, metrics, the configuration.

Mirrors newEndpointsHandler in cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from aiohttp import web

from ..api.pod import Pod
from .health import HealthCheck, HealthMetrics, health_routes
from .pod_resources import render_pod_resources
from .zpages import Component, zpage_routes

METRICS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}

Render = Callable[[], Awaitable[str]]
ListPods = Callable[[], Awaitable[Collection[Pod]]]


def scheduler_routes(
    *,
    healthz: Sequence[HealthCheck] = (),
    readyz: Sequence[HealthCheck] = (),
    render_metrics: Render,
    list_pods: ListPods,
    configz: Mapping[str, Any],
    component: Component | None = None,
    profiling: Sequence[web.RouteDef] = (),
) -> list[web.RouteDef]:
    """The routes. Metrics and pods are awaited, as the scheduler's state may be read on its own thread only.

    `list_pods` returns all pods, none unless this scheduler is the leader; `configz` is the
    effective configuration in file format. With `component` there are /statusz and /flagz.
    """
    health = HealthMetrics()

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(text=await render_metrics(), headers=METRICS)

    async def resources(request: web.Request) -> web.Response:
        # Pods are immutable, so their resources can be summed on another thread.
        text = await asyncio.to_thread(render_pod_resources, await list_pods())
        return web.Response(text=text, headers=METRICS)

    async def slis(request: web.Request) -> web.Response:
        from ..observe.exposition import render

        return web.Response(text=render(health.families), headers=METRICS)

    async def configuration(request: web.Request) -> web.Response:
        return web.json_response({"componentconfig": dict(configz)})

    routes = [
        *health_routes("healthz", healthz, health),
        *health_routes("livez", (), health),
        *health_routes("readyz", readyz, health),
        web.get("/metrics", metrics),
        web.get("/metrics/resources", resources),
        web.get("/metrics/slis", slis),
        web.get("/configz", configuration),
    ]
    if component is not None:
        routes += zpage_routes(component, [route.path for route in routes])
    return [*routes, *profiling]
