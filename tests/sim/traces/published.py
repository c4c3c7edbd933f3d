"""Published traces for tests: files in a folder, and the parts of the nodes and pods read from them."""

import json
from pathlib import Path
from typing import Any

from bayplan.sim.traces import Alibaba2018, Google2019, PublishedTrace

CREATED_AT, DURATION = "bayplan.dev/created-at", "bayplan.dev/duration"
NAME = "bayplan.dev/trace-name"


def split(trace: PublishedTrace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The nodes and the pods by name."""
    found: dict[str, dict[str, Any]] = {"Node": {}, "Pod": {}, "Timeline": {}}
    for item in trace.objects():
        found[item["kind"]][item.get("metadata", {}).get("name")] = item
    return found["Node"], found["Pod"]


def requests(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["spec"]["containers"][0]["resources"]["requests"]
    return found


def allocatable(node: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = node["status"]["allocatable"]
    return found


def notes(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"]["annotations"]
    return found


def selector(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """The expressions about labels of nodes."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [
        each for term in required.get("nodeSelectorTerms", []) for each in term["matchExpressions"]
    ]


def fill(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


ALIBABA_2018 = {
    "machine_meta.csv": "m_1,0,2,27,96,100,USING\nm_1,600,2,27,96,50,USING\nm_2,0,3,31,96,50,USING\n",
    "container_meta.csv": "c_1,m_1,0,app_9,started,400,400,3.13\nc_1,m_1,900,app_9,stopped,400,400,3.13\n"
    "c_2,m_2,60,app_9,started,800,800,101\n",
    "batch_task.csv": "M1,2,j_1,1,Terminated,100,160,50,0.5\n"
    "task_Nzg3==,1,j_2,1,Running,200,,100.0,\n",
    "batch_instance.csv": "ins_1,M1,j_1,1,Terminated,100,130,m_1,1,1,10,20,0.1,0.2\n",
}


def alibaba_2018(folder: Path, **more: Any) -> Alibaba2018:
    return Alibaba2018(folder=folder, memory_gib=512.0, **more)


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def event(time: int, kind: Any, index: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "time": str(time),
        "type": kind,
        "collection_id": "77",
        "instance_index": str(index),
        **more,
    }


HALF: dict[str, Any] = {"resource_request": {"cpus": 0.5, "memory": 0.25}}
GOOGLE = {
    "machine_events-000000000000.json": lines(
        {
            "time": "0",
            "machine_id": "5",
            "type": "1",
            "switch_id": "s+/=",
            "capacity": {"cpus": 1, "memory": 0.5},
        },
        {"time": "0", "machine_id": "6", "type": "ADD"},
        {"time": "9000000", "machine_id": "5", "type": "2"},
    ),
    "machine_events-000000000001.json": lines(
        {
            "time": "20000000",
            "machine_id": "5",
            "type": "1",
            "capacity": {"cpus": 1, "memory": 0.5},
        },
        {
            "time": "30000000",
            "machine_id": "5",
            "type": "3",
            "capacity": {"cpus": 0.5, "memory": 0.5},
        },
    ),
    "instance_events-000000000000.json": lines(
        event(70_000_000, "3"),
        event(60_000_000, 0, priority="200", scheduling_class="2", **HALF),
        event(100_000_000, "EVICT"),
        event(100_000_000, "SUBMIT"),
        event(100_000_000, "3", index=1),
        event(90_000_000, "0", index=1, alloc_collection_id="0", **HALF),
        event(100_000_000, "6", index=1),
        event(0, "0", index=2, alloc_collection_id="55", **HALF),
        event(2**63 - 1, "7"),
    ),
    "collection_events-000000000000.json": lines(
        {
            "time": "0",
            "type": "0",
            "collection_id": "77",
            "max_per_machine": "2",
            "max_per_switch": 0,
        }
    ),
}


def google(folder: Path, **more: Any) -> Google2019:
    return Google2019(folder=folder, cpus=64, memory_gib=256, **more)
