"""Health: named checks, and their paths.

Mirrors staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go: the response texts are the same,
as probes and people read them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from aiohttp import web

from ..observe.families import CounterFamily, Family, GaugeFamily

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
