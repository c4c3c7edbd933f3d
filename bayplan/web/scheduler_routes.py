"""Scheduler routes: the paths that kube-scheduler has: probes, metrics, the configuration.

Mirrors newEndpointsHandler in cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from ..api.pod import Pod
from ..api.pod_spec import PodSpec
from ..api.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_attachable_volume,
    is_hugepages,
    pod_amounts,
    pod_limits,
)
from .health import HealthCheck, HealthMetrics, health_routes
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


NANO = 1_000_000_000
BYTES = {MEMORY, EPHEMERAL_STORAGE, "storage"}
REQUEST = ("kube_pod_resource_request", "Requests by pod, with the unit if there is one.")
LIMIT = ("kube_pod_resource_limit", "Limits by pod, with the unit if there is one.")


def render_pod_resources(pods: Iterable[Pod]) -> str:
    """The text for all pods that have not ended; empty without pods."""
    by_spec: dict[PodSpec, tuple[list[str], ...]] = {}
    """By spec: the labels and the amount of each request and of each limit, as printed in a line."""
    requests, limits = [], []
    for pod in pods:
        if pod.node_name and pod.is_finished:
            continue
        lines = by_spec.get(pod.spec)
        if lines is None:
            amounts = pod_amounts(pod.spec), pod_limits(pod.spec)
            lines = by_spec[pod.spec] = tuple(list(_lines(each)) for each in amounts)
        head = _pod_labels(pod)
        requests += [f"{REQUEST[0]}{{{head},{line}" for line in lines[0]]
        limits += [f"{LIMIT[0]}{{{head},{line}" for line in lines[1]]
    return "".join([*_section(LIMIT, limits), *_section(REQUEST, requests)])


def _section(metric: tuple[str, str], lines: list[str]) -> Iterator[str]:
    """One metric with its head."""
    name, meaning = metric
    if lines:
        yield f"# HELP {name} {meaning}\n# TYPE {name} gauge\n"
        yield "\n".join(lines) + "\n"


def _pod_labels(pod: Pod) -> str:
    priority = "" if pod.spec.priority is None else str(pod.spec.priority)
    labels = {
        "namespace": pod.namespace,
        "pod": pod.name,
        "node": pod.node_name,
        "scheduler": pod.scheduler_name,
        "priority": priority,
    }
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _lines(amounts: Mapping[str, int]) -> Iterator[str]:
    for name in sorted(amounts):
        if amounts[name]:
            number = str(amounts[name] / NANO).removesuffix(".0")
            yield f'resource="{_escaped(name)}",unit="{_unit(name)}"}} {number}'


def _unit(name: str) -> str:
    if name == CPU:
        return "cores"
    if name in BYTES or is_hugepages(name):
        return "bytes"
    return "integer" if is_attachable_volume(name) else ""


def _escaped(text: str) -> str:
    """A label's value, escaped for the format."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
