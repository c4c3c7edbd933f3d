"""Results of a stream: each pod's outcome leaves as a row when the pod ends; the rest are sums."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, cast

import msgspec

from ...api.node import Node
from ...api.pod import Pod
from ...api.wire.decode import UnknownObject, decode, decode_items
from ...clock import Clock
from ...cluster.memory.object_store import MemoryCluster
from ...errors import DecodeError, InputError, os_errors_named
from ...manifests.input_bytes import bounded_lines, open_input
from ...manifests.timeline import InputObject
from ...scheduler import Attempt, Scheduler
from ..measures.waits import slowdown
from ..outcomes import PodResult
from ..pending_pods import group_pending
from ..results import Results
from ..totals import totals_of_uses
from ..use_over_time import UseHistory
from .running_use import RunningUse
from .stream_report import QuantileSketch, StreamReport

PREEMPTED = "preempted"


class PodRow(NamedTuple):
    """The outcome of one pod; times are seconds on the simulation's clock."""

    namespace: str
    name: str
    outcome: str
    """Outcome of the last attempt, as in `bayplan simulate -o json`; `preempted` for a preempted pod."""
    node: str | None
    created: float
    time: float
    """Time when the last attempt ended."""
    finished: float | None
    deleted: float | None
    attempts: int
    message: str


RowSink: TypeAlias = Callable[[PodRow], None]


class StreamedResults(Results):
    """Watches the cluster and receives every attempt. Keeps results of present pods, and passes on the others."""

    def __init__(self, clock: Clock, cluster: MemoryCluster, sink: RowSink) -> None:
        super().__init__(clock, cluster)
        self._sink = sink
        self._use = RunningUse([*cluster.list("Node"), *cluster.list("Pod")])
        self._victims: dict[str, str] = {}
        """The preemptor of each pod that is being evicted, by uid."""
        self._counts: Counter[str] = Counter()
        self._tried = 0
        self._waits, self._slowdowns = QuantileSketch(), QuantileSketch()

    def _first_history(self) -> UseHistory:
        return UseHistory()

    def __len__(self) -> int:
        return self._tried

    def note(self, attempt: Attempt) -> None:
        """Record an attempt, as in an ordinary simulation."""
        self._tried += attempt.pod.uid not in self._pods
        super().note(attempt)

    def on_delete(self, obj: Any) -> None:
        """Delete a pod or a node; nothing is kept of a pod."""
        super().on_delete(obj)
        if isinstance(obj, Pod):
            self._created_s.pop(obj.uid, None)

    def _note_change(self, at_s: float, old: Pod | Node | None, new: Pod | Node | None) -> None:
        self._use.change(at_s, old, new)

    def _note_end(
        self, pod: Pod, finished_s: float | None = None, deleted_s: float | None = None
    ) -> None:
        """Pass on the result of a pod that had a node, unless that was done before."""
        self._note_victims()
        result = self._pods.pop(pod.uid, None)
        self._created_s.pop(pod.uid, None)
        preemptor = self._victims.pop(pod.uid, None)
        if preemptor is not None:
            created_s = result.created_s if result is not None else 0.0
            time_s, attempts = (result.time_s, result.attempts) if result is not None else (0.0, 0)
            end_s = deleted_s if deleted_s is not None else finished_s
            message = f"for {preemptor}"
            self._sink(
                PodRow(
                    *(pod.namespace, pod.name, PREEMPTED, pod.node_name, created_s, time_s),
                    *(None, end_s, attempts, message),
                )
            )
        elif result is not None:
            result.finished_s, result.deleted_s = finished_s, deleted_s
            self._pass_on(result)

    def _note_victims(self) -> None:
        """Record the victims from the cluster's list of evictions."""
        evictions = self._cluster.evictions
        if evictions:
            for victim, preemptor in evictions:
                self._victims[victim.uid] = f"{preemptor.namespace}/{preemptor.name}"
            self._counts["preempted"] += len(evictions)
            evictions.clear()

    def _pass_on(self, result: PodResult) -> None:
        """Count a result, and write it."""
        pod, attempt, counts = result.pod, result.attempt, self._counts
        counts["pods"] += 1
        node = None
        if result.is_placed:
            node = attempt.node_name
            counts["placed"] += 1
            self._waits.add(result.time_s - result.created_s)
            if result.finished_s is not None:
                counts["finished"] += 1
            if (found := slowdown(result)) is not None:
                self._slowdowns.add(found)
        self._sink(
            PodRow(
                *(pod.namespace, pod.name, attempt.outcome.value, node, result.created_s),
                *(result.time_s, result.finished_s, result.deleted_s, result.attempts),
                attempt.message,
            )
        )

    # The end

    def stream_report(self, scheduler: Scheduler, seconds: float) -> StreamReport:
        """The sums after the end of the simulation. The results of pods that are still there are passed on."""
        self._note_held(scheduler)
        self._note_victims()
        left = [result for uid, result in self._pods.items() if uid not in self._victims]
        for result in left:
            self._pass_on(result)
        self._note_final_use(scheduler)
        time_s = self._clock.monotonic()
        pending = [result for result in left if not result.is_placed]
        return StreamReport(
            counts=self._counts,
            running=self._running,
            nodes=len(self._nodes),
            pending_groups=group_pending(pending, Counter(self._workloads()) if pending else {}),
            totals=totals_of_uses(list(self._nodes.values())),
            use=self._use.series(time_s),
            waits=self._waits,
            slowdowns=self._slowdowns,
            time_s=time_s,
            seconds=seconds,
        )


FAST = 1
"""The compression level of gzip."""


@contextmanager
def write_rows(file: Path | None) -> Iterator[RowSink]:
    """A writer of rows to the file: JSON lines if its name ends with .jsonl, else CSV; gzipped if it ends with .gz.

    Without a file rows are dropped. Raises InputError when it cannot be written.
    """
    if file is None:
        yield lambda row: None
        return
    is_lines = file.name.removesuffix(".gz").endswith(".jsonl")
    with os_errors_named(file, "a file to write to"), _open(file) as stream:
        yield _json_sink(stream) if is_lines else _csv_sink(stream)


def _open(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        packed = gzip.open(file, "wb", compresslevel=FAST)  # noqa: SIM115 - closed with the text
        return io.TextIOWrapper(packed, encoding="utf-8", newline="", write_through=False)
    return open(file, "w", encoding="utf-8", newline="")


def _csv_sink(stream: IO[str]) -> RowSink:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(PodRow._fields)
    return writer.writerow


def _json_sink(stream: IO[str]) -> RowSink:
    encode = msgspec.json.Encoder().encode

    def write(row: PodRow) -> None:
        stream.write(encode(row._asdict()).decode() + "\n")

    return write


BATCH = 500
"""Lines that are decoded together."""
BUFFER = 1 << 18


def read_lines(file: Path) -> Iterator[InputObject]:
    """Yield the objects of a file, gzipped or not; raises InputError, with file and line, for another text."""
    with (
        os_errors_named(file, "a readable file of JSON lines"),
        io.BufferedReader(open_input(file), BUFFER) as stream,
    ):
        first, each = 1, bounded_lines(stream, lambda number, text: _fault(file, number, text))
        while lines := list(islice(each, BATCH)):
            yield from _decode(file, first, lines)
            first += len(lines)


def _fault(file: Path, number: int, problem: str) -> InputError:
    return InputError(f"{file}: line {number}: {problem}")


def _decode(file: Path, first: int, lines: list[bytes]) -> Iterator[InputObject]:
    with suppress(DecodeError, RecursionError):  # a problem is reported with its line
        objects = decode_items(b"[%s]" % b",".join(lines), "List")
        if objects is not None:
            yield from cast("list[InputObject]", objects)
            return
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            obj = decode(line)
        except DecodeError as error:
            raise _fault(file, number, str(error)) from None
        except RecursionError:
            raise _fault(file, number, "expected less deep nesting") from None
        if isinstance(obj, UnknownObject):
            problem = f"expected an object that affects scheduling; got a {obj.kind}"
            raise _fault(file, number, problem)
        yield cast(InputObject, obj)
