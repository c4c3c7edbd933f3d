"""Objects with times, and their simulation."""

from typing import Any

from bayplan.api.wire.decode import decode_object
from bayplan.sim import Simulation, SimulationReport, TraceEntry


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def node_tree(name: str, cpu: str = "4", **metadata: Any) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"allocatable": allocatable},
    }


def make_node(name: str, cpu: str = "4", **metadata: Any) -> Any:
    return decode_object(node_tree(name, cpu, **metadata))


def container(cpu: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}}


def make_pod(name: str, cpu: str = "1", *, annotations: Any = None, **spec: Any) -> Any:
    metadata = {"annotations": annotations or {}}
    return make("Pod", name, metadata=metadata, spec={"containers": [container(cpu)], **spec})


def template(cpu: str, duration: str | None = None, **spec: Any) -> dict[str, Any]:
    annotations = {"bayplan.dev/duration": duration} if duration else {}
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [container(cpu)], **spec},
    }


def make_timeline(*events: Any) -> Any:
    return decode_object(
        {"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "events": list(events)}
    )


def run(*objects: Any, until_s: float | None = None, **options: Any) -> SimulationReport:
    return Simulation(objects, **options).run(until_s=until_s)


def trace(*objects: Any, until_s: float | None = None, **options: Any) -> list[tuple[Any, ...]]:
    entries: list[TraceEntry] = []
    Simulation(objects, trace=entries.append, **options).run(until_s=until_s)
    return [(e.time_s, e.what, e.subject, e.details) for e in entries]


def times(entries: list[tuple[Any, ...]], what: str, subject: str) -> list[float]:
    return [e[0] for e in entries if e[1] == what and e[2] == subject]
