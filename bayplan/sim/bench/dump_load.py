"""Dump load: time from the first byte of a dump to the first decision.

The dump is the output of `kubectl get nodes,pods -A -o json` for a cluster in use: most pods run, a
few are pending.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ...manifests.loader import read_manifests
from ..simulation import Simulation
from .cases import OWN
from .measurement import in_own_process, peak_mib
from .measurements import LoadRun
from .templates import Template, parse_marked
from .workload import CLOCKS, ClockName

NAME: Final = "load"
SUMMARY: Final = "from the first byte of a dump to the first decision"
NODES: Final = 5000
PODS: Final = 50_000
WAITING: Final = 100
"""Number of pods without a node."""

_HEAD = b'{\n    "apiVersion": "v1",\n    "items": [\n'
_TAIL = (
    b'\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'
)
_INDENT = b"\n        "


class _FirstDecisionError(Exception):
    """Raised at the first decision to stop the run."""


def run_load(nodes: int, pods: int, clock: ClockName = "wall") -> LoadRun:
    """Measure in a separate process, on a dump that another one writes."""
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        dump = Path(folder) / "dump.json"
        in_own_process(write_dump, dump, nodes, pods)
        return in_own_process(measure_load, dump, nodes, pods, clock)


def measure_load(dump: Path, nodes: int, pods: int, clock: ClockName = "wall") -> LoadRun:
    """Measure in this process."""
    now = CLOCKS[clock]
    start = now()
    manifests = read_manifests([dump])
    read = now()
    simulation = Simulation(manifests.objects, seed=0, place_of=manifests.place_of)
    filled = now()
    try:
        simulation.run(on_progress=_stop)
    except _FirstDecisionError:
        decided = now()
    else:
        raise AssertionError("some pods of the dump are pending, so there is a decision")
    return LoadRun(
        workload=NAME,
        nodes=nodes,
        pods=pods,
        mib=round(os.path.getsize(dump) / (1 << 20), 1),
        read_s=round((read - start) / 1e9, 3),
        cluster_s=round((filled - read) / 1e9, 3),
        decision_s=round((decided - filled) / 1e9, 3),
        seconds=round((decided - start) / 1e9, 3),
        peak_mib=round(peak_mib(), 1),
    )


def write_dump(path: Path, nodes: int, pods: int) -> None:
    """Write a dump in kubectl's format."""
    with path.open("wb") as file:
        separator = _HEAD + _INDENT[1:]
        for item in _items(nodes, pods):
            file.write(separator)
            file.write(msgspec.json.format(item, indent=4).replace(b"\n", _INDENT))
            separator = b"," + _INDENT
        file.write(_TAIL)


def _items(nodes: int, pods: int) -> Iterator[bytes]:
    """The objects, as JSON."""
    node, pod = _template("dump-node.yaml"), _template("dump-pod.yaml")
    for index in range(nodes):
        yield node.text({"Index": index, "Count": nodes})
    waiting_from = pods - min(WAITING, max(pods // 10, 1))
    for index in range(pods):
        text = pod.text({"Index": index, "Count": pods, "nodes": nodes})
        yield text if index < waiting_from else _waiting(text)


def _waiting(text: bytes) -> bytes:
    """The pod before it had a node."""
    pod: dict[str, Any] = msgspec.json.decode(text)
    del pod["spec"]["nodeName"]
    pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    return msgspec.json.encode(pod)


def _template(name: str) -> Template:
    source = OWN / "templates" / name
    marked = parse_marked(source.read_text("utf-8"), str(source))
    return Template(marked.documents[0], marked, str(source))


def _stop(done: int, total: int) -> None:
    raise _FirstDecisionError
