"""Shared by the tests of autoscaling: node types, workloads, and a run of a simulation."""

from collections import Counter
from typing import Any

from bayplan.api.wire.decode import decode_object
from bayplan.autoscaling import AutoscalerOptions, autoscaled
from bayplan.planning import NodePool, NodeType
from bayplan.sim import SimulationReport
from bayplan.sim.autoscaling_record import ScalingReport
from bayplan.sim.settings import Settings

GI = 1 << 30
KARPENTER = AutoscalerOptions()
GROUPS = AutoscalerOptions(autoscaler="cluster-autoscaler")


def make_type(name: str, cpu: int, price: float | None, pool: str = "p", **more: Any) -> NodeType:
    """A type with 4 GiB per core."""
    amounts = {"cpu": cpu * 1000, "memory": 4 * cpu * GI, "pods": 110}
    labels = {"bayplan.dev/pool": pool} | more.pop("labels", {})
    return NodeType(name, amounts, amounts, labels, price=price, **more)


def make_pool(*types: NodeType, name: str = "p", **more: Any) -> NodePool:
    return NodePool(name, types, **more)


def make_workload(
    name: str, replicas: int, cpu: str = "1", kind: str = "Deployment", **more: Any
) -> Any:
    """A Deployment, or another workload; `annotations` are those of its pods, the rest is their spec."""
    labels = {"app": name}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    metadata = {"labels": labels, "annotations": more.pop("annotations", {})}
    template = {"metadata": metadata, "spec": {"containers": [container]} | more}
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
    if kind != "DaemonSet":
        spec["replicas"] = replicas
    return decode_object(
        {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )


def make_timeline(*events: tuple[str, Any]) -> Any:
    """Changes of the replicas of Deployments: a time, and the replicas by name."""
    return decode_object(
        {
            "apiVersion": "bayplan.dev/v1",
            "kind": "Timeline",
            "events": [
                {
                    "at": at,
                    "change": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": "Deployment",
                            "metadata": {"name": name},
                            "spec": {"replicas": replicas},
                        }
                        for name, replicas in changes.items()
                    ],
                }
                for at, changes in events
            ],
        }
    )


def run_scaled(
    objects: list[Any],
    pools: list[NodePool],
    options: AutoscalerOptions = KARPENTER,
    until_s: float | None = None,
    **more: Any,
) -> SimulationReport:
    simulation = autoscaled(Settings(seed=0, **more), objects, pools, options)
    return simulation.run(until_s=until_s)


def scaling_of(report: SimulationReport) -> ScalingReport:
    assert report.scaling is not None
    return report.scaling


def launched_types(report: SimulationReport) -> dict[str, int]:
    """Number of nodes of each type that the autoscaler launched."""
    return dict(Counter(node.type for node in scaling_of(report).nodes if not node.is_given))
