"""Scheduler routes: the paths that kube-scheduler has: probes with their checks, metrics, the configuration.

Mirrors newEndpointsHandler in cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from ..observe.families import CounterFamily, Family, GaugeFamily
from .zpages import Component, zpage_routes

METRICS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}

Render = Callable[[], Awaitable[str]]
ListPods = Callable[[], Awaitable[Collection[Pod]]]
PLAIN = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}

log = logging.getLogger(__name__)


class HealthCheck(NamedTuple):
    """A check with an immediate result: the problem, None if there is none."""

    name: str
    problem: Callable[[], str | None]


PING = HealthCheck("ping", lambda: None)


class HealthMetrics:
    """The results of checks, as kube-scheduler serves them under /metrics/slis."""

    def __init__(self) -> None:
        self.latest = GaugeFamily(
            "kubernetes_healthcheck{name,type}", "The result of the latest check: 1 is good."
        )
        self.total = CounterFamily(
            "kubernetes_healthchecks_total{name,type,status}",
            "How often checks were made, by result.",
        )

    @property
    def families(self) -> list[Family]:
        """All families."""
        return [self.latest, self.total]

    def observe(self, kind: str, name: str, is_well: bool) -> None:
        """Record a check for the path `kind`."""
        self.latest.labels(name, kind).value = int(is_well)
        self.total.labels(name, kind, "success" if is_well else "error").count += 1


def health_routes(
    kind: str, checks: Sequence[HealthCheck], metrics: HealthMetrics
) -> list[web.RouteDef]:
    """The path /`kind` that runs all checks, and one below it for each."""
    made = tuple(checks) or (PING,)

    async def all_checks(request: web.Request) -> web.Response:
        return answer_all(kind, made, metrics, request)

    def one_check(check: HealthCheck) -> web.RouteDef:
        async def answer(request: web.Request) -> web.Response:
            problem = check.problem()
            if problem is None:
                return web.Response(text="ok", headers=PLAIN)
            text = f"internal server error: {problem}\n"
            return web.Response(status=500, text=text, headers=PLAIN)

        return web.get(f"/{kind}/{check.name}", answer)

    return [web.get(f"/{kind}", all_checks), *map(one_check, made)]


def answer_all(
    kind: str, checks: Sequence[HealthCheck], metrics: HealthMetrics, request: web.Request
) -> web.Response:
    """Run all checks that are not excluded. The reason of a failure is only logged, since the path
    is public."""
    excluded = set(request.query.getall("exclude", []))
    unknown = excluded - {check.name for check in checks}
    lines, failed = [], []
    for check in checks:
        if check.name in excluded:
            lines.append(f"[+]{check.name} excluded: ok")
            continue
        problem = check.problem()
        metrics.observe(kind, check.name, problem is None)
        if problem is None:
            lines.append(f"[+]{check.name} ok")
        else:
            lines.append(f"[-]{check.name} failed: reason withheld")
            failed.append(f"{check.name}: {problem}")
    if unknown:
        names = ",".join(f'"{name}"' for name in sorted(unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if failed:
        log.info("%s check failed: %s", kind, "; ".join(failed))
        text = "\n".join([*lines, f"{kind} check failed", ""])
        return web.Response(status=500, text=text, headers=PLAIN)
    if "verbose" not in request.query:
        return web.Response(text="ok", headers=PLAIN)
    return web.Response(text="\n".join([*lines, f"{kind} check passed", ""]), headers=PLAIN)


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
