"""Pod metrics: the use of pods and nodes, for `kubectl top`.

Nothing runs, so nothing is measured: a running pod uses the requests of its containers, a node the sum of its pods. The
objects are marked with an annotation, and responses with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ...api.node import Node
from ...api.pod import Pod
from ...api.resources import parse_amounts
from ...api.text.quantity import NANO, NANO_PER_MILLI
from ..store.records import Record
from .object_registry import ObjectRegistry
from .resource_table import ApiResource
from .status_errors import not_found

METRICS = "metrics.k8s.io"
METRICS_WARNING = "bayplan up measures nothing: these are the requests of running pods"
SOURCE = {"bayplan.dev/metrics-source": "requests"}
WINDOW = "30s"
Tree = dict[str, Any]


class RequestedUsage:
    """Metrics of a cluster from the requests of its pods."""

    def __init__(self, registry: ObjectRegistry) -> None:
        self._registry = registry

    def read(self, resource: ApiResource, namespace: str, name: str) -> list[Record]:
        """The metrics of all objects, or of one; raises StatusError if that does not exist."""
        lister = self._registry.lister
        if resource.plural == "nodes":
            pods: list[Pod] = [pod for pod in lister.list("Pod") if _runs(pod)]
            found = [self._of_node(node, pods) for node in _chosen(lister.list("Node"), name)]
        else:
            chosen = _chosen(lister.list("Pod", namespace or None), name)
            found = [self._of_pod(pod) for pod in chosen if _runs(pod)]
        if name and not found:
            raise not_found(resource, name)
        return sorted(found, key=lambda record: record.key)

    def _of_node(self, node: Node, pods: Iterable[Pod]) -> Record:
        here = [pod.requests for pod in pods if pod.node_name == node.name]
        milli_cpu = sum(requests.get("cpu", 0) for requests in here)
        memory = sum(requests.get("memory", 0) for requests in here)
        return self._record(("", node.name), node.labels, {"usage": _usage(milli_cpu, memory)})

    def _of_pod(self, pod: Pod) -> Record:
        record = self._registry.store.get("pods", (pod.namespace, pod.name))
        spec = record.decode()["spec"] if record is not None else {}
        containers = []
        for container in spec.get("containers") or ():
            wanted = parse_amounts((container.get("resources") or {}).get("requests"))
            cpu, memory = wanted.get("cpu", 0) // NANO_PER_MILLI, wanted.get("memory", 0) // NANO
            containers.append({"name": container.get("name"), "usage": _usage(cpu, memory)})
        return self._record((pod.namespace, pod.name), pod.labels, {"containers": containers})

    def _record(
        self, key: tuple[str, str], labels: Mapping[str, str], more: Mapping[str, Any]
    ) -> Record:
        now = self._registry.now()
        metadata: Tree = {"name": key[1], "creationTimestamp": now, "annotations": SOURCE}
        if key[0]:
            metadata["namespace"] = key[0]
        if labels:
            metadata["labels"] = dict(labels)
        tree = {"metadata": metadata, "timestamp": now, "window": WINDOW, **more}
        return Record(key, "", 0, msgspec.json.encode(tree), dict(labels))


def _runs(pod: Pod) -> bool:
    return bool(pod.node_name) and pod.status.phase == "Running"


def _chosen(objects: Iterable[Any], name: str) -> list[Any]:
    return [obj for obj in objects if not name or obj.name == name]


def _usage(milli_cpu: int, memory: int) -> Tree:
    return {"cpu": f"{milli_cpu}m", "memory": f"{memory // 1024}Ki"}
