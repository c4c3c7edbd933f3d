"""Trace manifests: manifests of nodes and pods from the rows of a trace."""

from __future__ import annotations

import heapq
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import msgspec

from ...api.pod_stages import DURATION
from ...api.text.durations import format_duration, parse_duration
from ...manifests.timeline import CREATED_AT

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

Manifest: TypeAlias = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
TRACE_NAME = "bayplan.dev/trace-name"
"""An annotation: the pod's name in the trace. Names in a cluster are stricter than those of traces."""
MAX_PODS = 110
"""Pod limit of a node, the kubelet's default, where the trace does not state one."""
MORE_DOMAINS_THAN_NODES = 2**31 - 1

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")


def dns_name(text: str) -> str:
    """The text as a name of a node: lower case, with `-` for characters that a name must not have."""
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-.")


def make_node(
    name: str,
    resources: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    created_s: float = 0.0,
) -> Manifest:
    """A node with these resources, which is there from `created_s` on."""
    metadata: Manifest = {"name": name, "labels": {HOSTNAME: name, **(labels or {})}}
    if created_s:
        metadata["annotations"] = {CREATED_AT: format_duration(created_s)}
    amounts = {"pods": str(MAX_PODS), **resources}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def with_pod_limit(manifests: Iterable[Manifest], limit: int | None) -> Iterator[Manifest]:
    """The manifests with a limit on the pods of each node, including the nodes of a Timeline; None leaves them
    unchanged.
    """
    for manifest in manifests:
        if limit is not None and manifest["kind"] in ("Node", "Timeline"):
            _limit_pods(manifest, str(limit))
        yield manifest


def _limit_pods(tree: Any, limit: str) -> None:
    """Set the number of pods in each node of a tree."""
    if isinstance(tree, dict) and tree.get("kind") == "Node":
        status = tree["status"]
        for name in ("allocatable", "capacity"):
            status[name] = {**status[name], "pods": limit}
    elif isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            _limit_pods(part, limit)


def make_pod(
    name: str,
    requests: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
    on: Sequence[Manifest] = (),
    spread: Sequence[Manifest] = (),
) -> Manifest:
    """A pod with these requests. `on` are expressions about the labels of nodes, `spread` constraints on domains."""
    resources: Manifest = {"requests": requests}
    # An extended resource is never overcommitted: the API server requires an equal limit.
    if limits := {name: amount for name, amount in requests.items() if "/" in name}:
        resources["limits"] = limits
    spec: Manifest = {"containers": [{"name": "main", "resources": resources}]}
    if priority is not None:
        spec["priority"] = priority
    if on:
        required = {"nodeSelectorTerms": [{"matchExpressions": list(on)}]}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        spec["affinity"] = {"nodeAffinity": affinity}
    if spread:
        spec["topologySpreadConstraints"] = list(spread)
    metadata: Manifest = {"name": name}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def times(created_s: float | None, duration_s: float | None) -> dict[str, str]:
    """Annotations with the time when the pod is created, None for the start, and the time that it runs on its node,
    None if it does not end.

    A pod runs for a second at least.
    """
    found = {}
    if created_s:
        found[CREATED_AT] = format_duration(created_s)
    if duration_s is not None:
        found[DURATION] = format_duration(max(duration_s, 1.0))
    return found


def milli_cpu(cpus: float) -> str:
    """A number of cores as a quantity."""
    return f"{round(cpus * 1000)}m"


def mebibytes(gibibytes: float) -> str:
    """A number of GiB as a quantity."""
    return f"{round(gibibytes * 1024)}Mi"


def in_values(key: str, values: Sequence[str]) -> Manifest:
    """The expression for nodes whose label has one of these values."""
    return {"key": key, "operator": "In", "values": list(values)}


def at_most(number: int, topology_key: str, labels: Mapping[str, str]) -> Manifest:
    """The constraint that at most `number` pods with these labels are in a domain.

    With fewer domains than minDomains the smallest count of a domain counts as 0, so maxSkew is a limit of pods.
    """
    return {
        "maxSkew": number,
        "minDomains": MORE_DOMAINS_THAN_NODES,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": dict(labels)},
    }


def evenly(topology_key: str, labels: Mapping[str, str]) -> Manifest:
    """The preference that pods with these labels are spread over the domains."""
    return {
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
    }


def write_list(stream: SupportsWrite[str], objects: Iterable[Manifest]) -> int:
    """Write the objects to `stream`; return their number."""
    count = 0
    stream.write('{"apiVersion":"v1","kind":"List","items":[')
    for obj in objects:
        stream.write("\n" if count == 0 else ",\n")
        stream.write(msgspec.json.encode(obj).decode())
        count += 1
    stream.write("\n]}\n")
    return count


def write_lines(stream: SupportsWrite[str], objects: Iterable[Manifest]) -> int:
    """Write the objects to `stream`, one per line, sorted by the time at which they are created; return their number.

    Objects created at the same time keep their order, with pods after everything else. Only a part of the objects is in
    memory at a time.
    """
    count = 0
    for *_, line in sorted_on_disk(_timed(objects)):
        stream.write(f"{line}\n")
        count += 1
    return count


def _timed(objects: Iterable[Manifest]) -> Iterator[tuple[Any, ...]]:
    for number, obj in enumerate(objects):
        notes = obj.get("metadata", {}).get("annotations") or {}
        created_s = parse_duration(notes.get(CREATED_AT, "0")) or 0.0
        yield created_s, obj["kind"] == "Pod", number, msgspec.json.encode(obj).decode()


RUN_LENGTH = 200_000
"""Records that are sorted in memory at a time."""
BLOCK_LENGTH = 500
"""Records that are read back at a time, of each sorted run."""


def sorted_on_disk(
    records: Iterable[tuple[Any, ...]], run_length: int = RUN_LENGTH
) -> Iterator[tuple[Any, ...]]:
    """Yield the records, tuples of numbers and texts, in ascending order.

    Up to `run_length` records are sorted in memory. More of them are sorted in runs, which are written to temporary
    files and merged.
    """
    run: list[tuple[Any, ...]] = []
    files: list[IO[bytes]] = []
    try:
        for record in records:
            run.append(record)
            if len(run) >= run_length:
                files.append(_spilled(run))
                run = []
        run.sort()
        yield from heapq.merge(*map(_read, files), run) if files else run
    finally:
        for file in files:
            file.close()


def _spilled(run: list[tuple[Any, ...]]) -> IO[bytes]:
    """A temporary file with the sorted records, in blocks after their length."""
    run.sort()
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    for start in range(0, len(run), BLOCK_LENGTH):
        block = msgspec.msgpack.encode(run[start : start + BLOCK_LENGTH])
        file.write(len(block).to_bytes(4))
        file.write(block)
    return file


def _read(file: IO[bytes]) -> Iterator[tuple[Any, ...]]:
    decode = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode
    file.seek(0)
    while length := file.read(4):
        yield from decode(file.read(int.from_bytes(length)))
