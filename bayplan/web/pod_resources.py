"""Pod resources: requests and limits of each pod, in the text format of Prometheus.

Mirrors pkg/scheduler/metrics/resources/resources.go, which is served under /metrics/resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

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

NANO = 1_000_000_000
BYTES = {MEMORY, EPHEMERAL_STORAGE, "storage"}
REQUEST = ("kube_pod_resource_request", "Requests by pod, with the unit if there is one.")
LIMIT = ("kube_pod_resource_limit", "Limits by pod, with the unit if there is one.")


class Amounts(NamedTuple):
    """Of one spec: the labels of each resource and its amount, as formatted in a line."""

    requests: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, str], ...]


def render_pod_resources(pods: Iterable[Pod]) -> str:
    """The text for all pods that have not ended; empty without pods."""
    by_spec: dict[PodSpec, Amounts] = {}
    requests, limits = [], []
    for pod in pods:
        if pod.node_name and pod.is_finished:
            continue
        amounts = by_spec.get(pod.spec)
        if amounts is None:
            amounts = by_spec[pod.spec] = _amounts(pod.spec)
        head = _pod_labels(pod)
        requests += [f"{REQUEST[0]}{{{head},{labels}}} {n}" for labels, n in amounts.requests]
        limits += [f"{LIMIT[0]}{{{head},{labels}}} {n}" for labels, n in amounts.limits]
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


def _amounts(spec: PodSpec) -> Amounts:
    return Amounts(tuple(_lines(pod_amounts(spec))), tuple(_lines(pod_limits(spec))))


def _lines(amounts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for name in sorted(amounts):
        if amounts[name]:
            labels = f'resource="{_escaped(name)}",unit="{_unit(name)}"'
            yield labels, str(amounts[name] / NANO).removesuffix(".0")


def _unit(name: str) -> str:
    if name == CPU:
        return "cores"
    if name in BYTES or is_hugepages(name):
        return "bytes"
    return "integer" if is_attachable_volume(name) else ""


def _escaped(text: str) -> str:
    """A label's value, escaped for the format."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
