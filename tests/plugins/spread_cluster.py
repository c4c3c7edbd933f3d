"""Nodes in zones, pods with spread constraints, and the plugin's answers for them."""

from collections.abc import Iterable
from typing import Any

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.framework import Status, unresolvable, unschedulable
from bayplan.plugins.pod_topology_spread.plugin import REASON, REASON_MISSING_LABEL
from bayplan.table import NodeTable
from bayplan.table.writer import TableWriter

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FITS, UNEVEN, LACKING = Status(), unschedulable(REASON), unresolvable(REASON_MISSING_LABEL)
APP_WEB = {"matchLabels": {"app": "web"}}
SOFT = "ScheduleAnyway"


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, "uid": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def zone_node(name: str, zone: str | None = None, **spec: Any) -> Node:
    labels = {HOSTNAME: name, **({} if zone is None else {ZONE: zone})}
    node: Node = make("Node", name, metadata={"labels": labels | spec.pop("labels", {})}, spec=spec)
    return node


def web_pod(name: str, node: str = "", *constraints: dict[str, Any], **more: Any) -> Pod:
    """A pod labelled app=web; `more` are its metadata and further fields of its spec."""
    metadata = {"labels": {"app": "web"}} | more.pop("metadata", {})
    spec = {"nodeName": node, "topologySpreadConstraints": list(constraints)} | more
    pod: Pod = make("Pod", name, metadata=metadata, spec=spec)
    return pod


def constraint(max_skew: int = 1, key: str = ZONE, **fields: Any) -> dict[str, Any]:
    defaults = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP_WEB}
    return {"maxSkew": max_skew, "topologyKey": key} | defaults | fields


def make_writer(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> TableWriter:
    writer = TableWriter(NodeTable())
    for node in nodes:
        writer.set_node(node)
    for pod in pods:
        writer.add_pod(pod)
    return writer


def webs(counts: dict[str, int], **more: Any) -> list[Pod]:
    """Pods on each node, by number."""
    return [web_pod(f"{n}-{i}", n, **more) for n, count in counts.items() for i in range(count)]


ABC = [zone_node("a", "a"), zone_node("b", "b"), zone_node("c", "c")]
