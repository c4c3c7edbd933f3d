"""Generator: the manifests of one workload that is drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from ...api.node import ZONE
from ...api.own_documents import API_VERSION
from ...api.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from ..traces.trace_manifests import Manifest, make_node, make_pod, milli_cpu, times
from .model import JobKind, WorkloadModel
from .processes import failure_events

GROUP_VERSION = "scheduling.k8s.io/v1alpha2"


def generate(model: WorkloadModel, seed: int = 0) -> Iterator[Manifest]:
    """Yield the nodes, a Timeline of their failures if there are any, and the jobs in the order of their arrival.

    Arrivals, jobs and failures are drawn independently: with other jobs, arrivals and failures stay the same.
    """
    nodes = list(_nodes(model))
    yield from nodes
    random = _random(seed, "failures")
    if events := failure_events(nodes, model.failures, model.duration_s, random):
        yield {"apiVersion": API_VERSION, "kind": "Timeline", "events": events}
    random, shares = _random(seed, "jobs"), [kind.share for kind in model.jobs]
    arrivals = model.arrivals.times(model.duration_s, _random(seed, "arrivals"))
    for number, at_s in enumerate(arrivals):
        kind = random.choices(model.jobs, shares)[0]
        yield from _job(kind, f"{kind.name}-{number}", at_s, random)


def _random(seed: int, purpose: str) -> Random:
    return Random(f"{purpose} {seed}")


def _nodes(model: WorkloadModel) -> Iterator[Manifest]:
    number = 0
    for shape in model.nodes:
        for i in range(shape.count):
            labels = dict(shape.labels)
            if shape.zones:
                labels[ZONE] = shape.zones[i % len(shape.zones)]
            yield make_node(f"node-{number:04}", shape.resources, labels)
            number += 1


def _job(kind: JobKind, name: str, at_s: float, random: Random) -> Iterator[Manifest]:
    """A Job, with a PodGroup if it is a gang."""
    count = max(round(kind.pods.draw(random)), 1)
    requests = {name: _amount(name, each.draw(random)) for name, each in kind.requests.items()}
    duration_s = None if kind.duration is None else kind.duration.draw(random)
    notes = times(None, duration_s)
    pod = make_pod(name, requests, priority=kind.priority)
    spec: dict[str, Any] = {**pod["spec"], "restartPolicy": "Never"}
    spec["containers"][0]["image"] = kind.name
    if kind.node_selector:
        spec["nodeSelector"] = dict(kind.node_selector)
    metadata: Manifest = {
        "name": name,
        "namespace": kind.namespace,
        "annotations": times(at_s, None),
    }
    if kind.is_gang and count > 1:
        spec["schedulingGroup"] = {"podGroupName": name}
        policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
        yield {
            "apiVersion": GROUP_VERSION,
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": policy,
        }
    template = {"metadata": {"annotations": notes}, "spec": spec}
    counts = {"completions": count, "parallelism": count, "completionMode": "Indexed"}
    yield {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**counts, "template": template},
    }


def _amount(resource: str, amount: float) -> str:
    """An amount as a quantity: cpu in milli, memory in MiB, others in whole units; never nothing."""
    if resource == CPU:
        return milli_cpu(max(amount, 0.001))
    if resource in (MEMORY, EPHEMERAL_STORAGE):
        return f"{max(round(amount / 2**20), 1)}Mi"
    return str(max(round(amount), 1))
