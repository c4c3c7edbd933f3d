"""Metrics server: a fake that answers as metrics-server v0.8 does, in its own words and quantities.

Discovery, lists and single objects of `metrics.k8s.io/v1beta1`, over HTTPS, for use behind the aggregator of a real
kube-apiserver. cpu is in nano-cores and memory in Ki, as metrics-server writes them; a container that uses nothing
has cpu `0`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .json_server import JsonServer

Tree = dict[str, Any]
Use = Mapping[tuple[str, str], Mapping[str, tuple[int, int]]]
"""By namespace and name of a pod, and by container: nano-cores and Ki."""
GROUP = "metrics.k8s.io"
ROOT = f"/apis/{GROUP}/v1beta1"
HEAD = {"apiVersion": f"{GROUP}/v1beta1"}
VERBS = ["get", "list"]
RESOURCES = [
    {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics"},
    {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics"},
]
NOW = "2026-01-01T00:00:15Z"


class FakeMetricsServer(JsonServer):
    """Serves the use that `read` gives."""

    def __init__(self, folder: Path, read: Callable[[], Use]) -> None:
        super().__init__(lambda path, given: answer(path, read()), folder)

    def registration(self) -> list[tuple[str, Tree]]:
        """Paths and objects that register it with an API server: a Service by name, and the APIService."""
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "metrics-server"},
            "spec": {
                "type": "ExternalName",
                "externalName": "localhost",
                "ports": [{"port": self.port}],
            },
        }
        registered = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1beta1.{GROUP}"},
            "spec": {
                "service": {
                    "name": "metrics-server",
                    "namespace": "kube-system",
                    "port": self.port,
                },
                "group": GROUP,
                "version": "v1beta1",
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        }
        return [
            ("/api/v1/namespaces/kube-system/services", service),
            ("/apis/apiregistration.k8s.io/v1/apiservices", registered),
        ]


def answer(path: str, use: Use) -> tuple[int, Tree]:
    """Status and body for a path."""
    if path == "/apis":
        return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}
    if path == f"/apis/{GROUP}":
        return 200, {"kind": "APIGroup", "apiVersion": "v1", **_group()}
    if path == ROOT:
        resources = [{**one, "verbs": VERBS} for one in RESOURCES]
        head = {"kind": "APIResourceList", "apiVersion": "v1"}
        return 200, {**head, "groupVersion": f"{GROUP}/v1beta1", "resources": resources}
    words = path.removeprefix(ROOT).strip("/").split("/")
    namespace = words[1] if words[0] == "namespaces" and len(words) > 2 else ""
    rest = words[2:] if namespace else words
    if rest == ["pods"]:
        items = [_metrics(pod, found) for pod, found in use.items() if namespace in ("", pod[0])]
        return 200, {"kind": "PodMetricsList", **HEAD, "metadata": {}, "items": items}
    if rest[0] == "pods" and len(rest) == 2 and (namespace, rest[1]) in use:
        pod = namespace, rest[1]
        return 200, {"kind": "PodMetrics", **HEAD, **_metrics(pod, use[pod])}
    name = rest[-1]
    return 404, {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'podmetrics.{GROUP} "{namespace}/{name}" not found',
        "reason": "NotFound",
        "details": {"name": f"{namespace}/{name}", "group": GROUP, "kind": "podmetrics"},
        "code": 404,
    }


def _group() -> Tree:
    version = {"groupVersion": f"{GROUP}/v1beta1", "version": "v1beta1"}
    return {"name": GROUP, "versions": [version], "preferredVersion": version}


def _metrics(pod: tuple[str, str], found: Mapping[str, tuple[int, int]]) -> Tree:
    return {
        "metadata": {
            "name": pod[1],
            "namespace": pod[0],
            "creationTimestamp": NOW,
            "labels": {"app": pod[1].partition("-")[0]},
        },
        "timestamp": "2026-01-01T00:00:03Z",
        "window": "15.27s",
        "containers": [
            {
                "name": name,
                "usage": {"cpu": f"{nano}n" if nano else "0", "memory": f"{kibi}Ki"},
            }
            for name, (nano, kibi) in found.items()
        ],
    }
