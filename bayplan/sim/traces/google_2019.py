"""Google 2019: one of eight Borg cells for a month (clusterdata-2019, "Google cluster-usage traces v3").

Schema: clusterdata_trace_format_v3.proto of google/cluster-data. Tables are exported by BigQuery, or downloaded, as
JSON lines or CSV in any number of files. CPUs and memory are shares of the largest machine, from 0 to 1. Times are
microseconds; 0 is before the trace begins, at 600 s, and the largest number is after its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from .google_machines import (
    ATTRIBUTES,
    MACHINES,
    SWITCH,
    GoogleMachines,
    code_of,
    constraint_expressions,
    count_inexpressible,
    nested,
    shards,
)
from .published import PublishedTrace, TraceFormat, TraceTable
from .table_rows import Row
from .trace_manifests import (
    HOSTNAME,
    Manifest,
    at_most,
    make_pod,
    mebibytes,
    milli_cpu,
    sorted_on_disk,
    times,
)

COLLECTION = "bayplan.dev/collection"
SCHEDULING_CLASS = "bayplan.dev/scheduling-class"
NEVER_US = 2**63 - 1
"""The time of events after the end of the trace."""

EVENTS = (
    "SUBMIT",
    "QUEUE",
    "ENABLE",
    "SCHEDULE",
    "EVICT",
    "FAIL",
    "FINISH",
    "KILL",
    "LOST",
    "UPDATE_PENDING",
    "UPDATE_RUNNING",
)
SUBMIT, SCHEDULE, UPDATE_PENDING = 0, 3, 9
ENDS = frozenset({4, 5, 6, 7, 8})

INSTANCES = TraceTable(
    "instance_events",
    "time,type,collection_id,instance_index",
    "what happened to tasks and alloc instances",
)
COLLECTIONS = TraceTable(
    "collection_events",
    "time,type,collection_id",
    "jobs and alloc sets, with limits of instances per machine and per switch",
    is_optional=True,
)
FORMAT = TraceFormat(
    "google-2019",
    "a Borg cell for a month, 2019",
    "google/cluster-data, clusterdata_trace_format_v3.proto",
    (MACHINES, INSTANCES, COLLECTIONS, ATTRIBUTES),
)

Event: TypeAlias = tuple[int, int, int, int, int, float, float, int, int, str]
"""Collection, index, time in microseconds, order, type, cpus, memory, priority, class (-1 if it has none),
constraints; sorted in this order.
"""


@dataclass(kw_only=True)
class Google2019(PublishedTrace):
    """The files of a cell in a folder. The largest machine has `cpus` cores and `memory_gib`.

    Each submission of a task is a pod: created when it was submitted, it runs as long as there from scheduling to its
    end. Alloc instances are pods, too; tasks within them are left out, for they use the reservation of these. A machine
    is there from its first event on; with `machine_events`, it goes, comes back and changes as in the trace.
    """

    folder: Path
    cpus: float = 64.0
    memory_gib: float = 256.0
    machine_events: bool = False
    _limits: dict[int, tuple[int, int]] | None = field(default=None, init=False)
    _machines: GoogleMachines | None = field(default=None, init=False)
    _inexpressible: int = field(default=0, init=False)
    """Pods with constraints that are left out."""

    def nodes(self) -> Iterator[Manifest]:
        return self._read_machines().manifests(self.window, self.machine_events)

    def all_pods(self) -> Iterator[Manifest]:
        machines = self._read_machines()
        self._limits, self._inexpressible = _read_limits(self.folder), 0
        if not machines.has_attributes:
            self.notes.append(f"{self.folder}: no {ATTRIBUTES.name}: constraints are left out")
        sort = sorted_on_disk(_events(self.folder))
        for (collection, index), events in groupby(sort, key=lambda event: event[:2]):
            yield from self._instance_pods(f"{collection}-{index}", collection, events)
        if self._inexpressible:
            self.notes.append(
                f"{self.folder}: {self._inexpressible} pods have constraints that labels cannot express: left out"
            )

    def _read_machines(self) -> GoogleMachines:
        if self._machines is None:
            self._machines = GoogleMachines(self.folder, self.cpus, self.memory_gib)
        return self._machines

    def _instance_pods(
        self, name: str, collection: int, events: Iterator[Any]
    ) -> Iterator[Manifest]:
        """A pod for each submission of an instance, from its events."""
        run, number = _Submission(), 0
        for _, at_same_time in groupby(events, key=lambda event: event[2]):
            for event in _in_order(list(at_same_time), run.is_open):
                if run.add(event):
                    yield self._pod(f"instance-{name}-{number}", collection, run)
                    number += 1
        if run.is_open:
            run.end_us = None
            yield self._pod(f"instance-{name}-{number}", collection, run)

    def _pod(self, name: str, collection: int, run: _Submission) -> Manifest:
        requests = {}
        if run.cpus > 0:
            requests["cpu"] = milli_cpu(run.cpus * self.cpus)
        if run.memory > 0:
            requests["memory"] = mebibytes(run.memory * self.memory_gib)
        labels = {SCHEDULING_CLASS: str(run.scheduling_class)} if run.scheduling_class >= 0 else {}
        limits = (self._limits or {}).get(collection, (0, 0))
        own = {COLLECTION: str(collection)}
        has_attributes = self._machines is not None and self._machines.has_attributes
        self._inexpressible += bool(has_attributes and count_inexpressible(run.constraints))
        return make_pod(
            name,
            requests,
            annotations=times(run.submitted_us / 1e6, run.duration_s),
            labels=labels | own if any(limits) else labels,
            priority=run.priority if run.priority >= 0 else None,
            on=constraint_expressions(run.constraints) if has_attributes else (),
            spread=[
                at_most(limit, key, own)
                for limit, key in zip(limits, (HOSTNAME, SWITCH), strict=True)
                if limit
            ],
        )


@dataclass(slots=True)
class _Submission:
    """One submission of an instance, from its events in order. Requests stay for the next one."""

    is_open: bool = False
    submitted_us: int = 0
    scheduled_us: int | None = None
    end_us: int | None = None
    cpus: float = -1.0
    memory: float = -1.0
    priority: int = -1
    scheduling_class: int = -1
    constraints: str = ""

    def add(self, event: Event) -> bool:
        """Take an event; True when it is the end of a submission."""
        _, _, at_us, _, kind, *_ = event
        if kind in ENDS:
            was_open, self.is_open, self.end_us = self.is_open, False, at_us
            return was_open
        if kind in (SUBMIT, SCHEDULE) and not self.is_open:
            self.is_open, self.submitted_us, self.scheduled_us = True, at_us, None
        if kind == SCHEDULE and self.scheduled_us is None:
            self.scheduled_us = at_us
        if kind in (SUBMIT, SCHEDULE, UPDATE_PENDING):
            self._take_requests(event)
        return False

    def _take_requests(self, event: Event) -> None:
        _, _, _, _, _, cpus, memory, priority, scheduling_class, constraints = event
        self.cpus = cpus if cpus >= 0 else self.cpus
        self.memory = memory if memory >= 0 else self.memory
        self.priority = priority if priority >= 0 else self.priority
        self.scheduling_class = scheduling_class if scheduling_class >= 0 else self.scheduling_class
        self.constraints = constraints or self.constraints

    @property
    def duration_s(self) -> float | None:
        """Duration of its run, or the expected one if it never ran; None if it ended after the end of the trace."""
        if self.end_us is None:
            return None
        start_us = self.submitted_us if self.scheduled_us is None else self.scheduled_us
        return max(self.end_us - start_us, 0) / 1e6


def _in_order(events: list[Event], is_open: bool) -> list[Event]:
    """Order of the events of an instance at one time: an existing instance ends first if it is also submitted again,
    else last.
    """
    ends_first = is_open and any(event[4] == SUBMIT for event in events)
    ranks = {SUBMIT: 1, SCHEDULE: 2, **dict.fromkeys(ENDS, 0 if ends_first else 4)}
    return sorted(events, key=lambda event: ranks.get(event[4], 3))


def _events(folder: Path) -> Iterator[Event]:
    """The events of all instances that use resources of machines themselves."""
    order = 0
    for row in shards(folder, INSTANCES):
        if _whole(row, "alloc_collection_id", 0) > 0:
            continue  # it runs within the reservation of an alloc instance
        at_us = _whole(row, "time", 0)
        if at_us >= NEVER_US:
            continue
        yield (
            _whole(row, "collection_id"),
            _whole(row, "instance_index"),
            at_us,
            order,
            code_of(row, "type", EVENTS),
            _amount(row, "cpus"),
            _amount(row, "memory"),
            _whole(row, "priority", -1),
            _whole(row, "scheduling_class", -1),
            _constraints(row),
        )
        order += 1


def _constraints(row: Row) -> str:
    """The constraints in JSON; raises InputError when they are no list."""
    text = row.text("constraint")
    try:
        constraint_expressions(text)
    except msgspec.MsgspecError:
        raise row.fault("constraint", f'expected a list in JSON; got "{text}"') from None
    return text


def _amount(row: Row, name: str) -> float:
    amount = row.amount(nested(row, "resource_request", name))
    return -1.0 if amount is None else amount


def _whole(row: Row, column: str, default: int | None = None) -> int:
    """A cell with a whole number, or the default if it is empty; raises InputError for another text."""
    text = row.text(column)
    if not text and default is not None:
        return default
    try:
        return int(text)
    except ValueError:
        raise row.fault(column, f'expected a whole number; got "{text}"') from None


def _read_limits(folder: Path) -> dict[int, tuple[int, int]]:
    """Limits of instances per machine and per switch, by collection, where there are any."""
    limits: dict[int, tuple[int, int]] = {}
    for row in shards(folder, COLLECTIONS):
        found = _whole(row, "max_per_machine", 0), _whole(row, "max_per_switch", 0)
        if any(limit > 0 for limit in found):
            limits[_whole(row, "collection_id")] = max(found[0], 0), max(found[1], 0)
    return limits
