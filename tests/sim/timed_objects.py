"""Objects with times, and their simulation."""

from typing import Any

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.sim import Simulation, SimulationReport, TraceEntry
from tests.rig.trees import pod_of


def timed_pod(name: str, cpu: str = "1", *, annotations: Any = None, **spec: Any) -> Pod:
    return pod_of(name, cpu, metadata={"annotations": annotations or {}}, **spec)


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def container(cpu: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}}


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
