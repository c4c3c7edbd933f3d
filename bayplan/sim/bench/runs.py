"""Runs: select workloads and sizes, and run them.

One workload is not a list of ops, but measures the time from the first byte of a dump to the first decision. The dump
is the output of `kubectl get nodes,pods -A -o json` for a cluster in use: most pods run, a few are pending.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from ...errors import ConfigError, InputError
from ...manifests.loader import read_manifests
from ..simulation import Simulation
from .cases import (
    FIXED_SIZE,
    ON_REQUEST,
    OWN,
    SEVERAL_SIZES,
    Case,
    find_cases,
    own_cases,
    read_cases,
)
from .measurement import in_own_process, peak_mib
from .measurements import LoadRun, Run, best_of
from .op_executor import execute
from .templates import Template, parse_marked
from .workload import CLOCKS, ClockName, Request, find_workload, make_workload

GROWTH_NODES = (1000, 5000, 15_000)
LOAD: Final = "load"
LOAD_SUMMARY: Final = "from the first byte of a dump to the first decision"
LOAD_NODES: Final = 5000
LOAD_PODS: Final = 50_000
WAITING: Final = 100
"""Number of pods without a node."""


@dataclass(frozen=True)
class Suite:
    """The workloads of a file, or the bundled ones."""

    cases: Sequence[Case]
    file: str | None = None

    @property
    def summaries(self) -> dict[str, str]:
        """The description of each workload."""
        known = {case.name: case.summary for case in self.cases}
        return known if self.file is not None else known | {LOAD: LOAD_SUMMARY}

    def requests(
        self,
        names: Sequence[str],
        nodes: Sequence[int] = (),
        pods: int | None = None,
        clock: ClockName = "wall",
        plugins: tuple[str, ...] = (),
        kubernetes_version: str = "",
    ) -> list[Request]:
        """The workloads to run: `names` or all, at the given numbers of nodes or at their own.

        Raises InputError for an unknown one, or an impossible size.
        """
        chosen = names or tuple(self.summaries)
        given = "--plugins" if plugins else "--kubernetes-version" if kubernetes_version else ""
        if given and LOAD in names and self.file is None:
            raise InputError(f"{given}: expected it without --workload {LOAD}; got both")
        requests: list[Request] = []
        for name in chosen:
            if name == LOAD and self.file is None:
                if names or not (nodes or given):
                    requests += self._at_sizes(Request(LOAD, pods=pods, clock=clock), nodes)
                continue
            for case, size in find_cases(self.cases, [name], tuple(self.summaries)):
                labels = (*size.labels, *case.file.labels)
                left_out = FIXED_SIZE if nodes else SEVERAL_SIZES
                if not names and (ON_REQUEST in labels or left_out in labels):
                    continue
                one = Request(
                    case.name, size.name, self.file, None, pods, clock, plugins, kubernetes_version
                )
                if kubernetes_version and not names and not _is_in_release(case, one):
                    continue
                asked = self._at_sizes(one, nodes)
                for request in asked:
                    make_workload(case, request)  # report errors before the first run
                requests += asked
        return requests

    @staticmethod
    def _at_sizes(request: Request, nodes: Iterable[int]) -> list[Request]:
        return [replace(request, nodes=count) for count in nodes] or [request]


def _is_in_release(case: Case, request: Request) -> bool:
    """Whether the workload can be run with the rules of the release: it has the feature gates, too."""
    if not case.is_by_release:
        return False
    try:
        make_workload(case, request).feature_gates  # noqa: B018
    except ConfigError:
        return False
    return True


def read_suite(file: Path | None) -> Suite:
    """The workloads of a file; the bundled ones without a file. Raises InputError if the file is
    invalid."""
    return Suite(own_cases()) if file is None else Suite(read_cases(file), str(file))


def run_request(request: Request, repeat: int = 1) -> list[Run]:
    """Run a workload, each time in a separate process, and return the best."""
    return [
        structs.replace(run, clock=request.clock)
        for run in best_of([_run(request) for _ in range(repeat)])
    ]


def _run(request: Request) -> list[Run]:
    if request.case == LOAD and request.file is None:
        nodes, pods = request.nodes or LOAD_NODES, request.pods or LOAD_PODS
        with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
            dump = Path(folder) / "dump.json"
            in_own_process(write_dump, dump, nodes, pods)
            return [in_own_process(measure_load, dump, nodes, pods, request.clock)]
    return in_own_process(_execute, request)


def _execute(request: Request) -> list[Run]:
    return execute(find_workload(request), CLOCKS[request.clock])


_HEAD = b'{\n    "apiVersion": "v1",\n    "items": [\n'
_TAIL = (
    b'\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'
)
_INDENT = b"\n        "


class _FirstDecisionError(Exception):
    """Raised at the first decision to stop the run."""


def measure_load(dump: Path, nodes: int, pods: int, clock: ClockName) -> LoadRun:
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
        workload=LOAD,
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
    """The pod as it was before it had a node."""
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
