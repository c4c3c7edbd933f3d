"""Azure packing: requests for virtual machines in one zone over 14 days (AzureTracesForPacking2020).

Schema: AzureTracesForPacking2020.md of Azure/AzurePublicDataset: an SQLite file with the tables vm and vmType, or
these tables as CSV files. Amounts are shares of a machine of one type, times are days from the beginning; a VM with a
negative start was there before, one without an end runs on. Priority 0 is high, 1 low: low ones may be evicted. The
trace does not contain the number of machines.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from .published import PublishedTrace, TraceFormat, TraceTable
from .shapes import NodeShape, shaped_nodes
from .table_rows import Row
from .trace_manifests import TRACE_NAME, Manifest, make_pod, mebibytes, milli_cpu, times

DAY_S = 86400.0
WHOLE = 1_000_000
SHARES = {
    "hdd": "bayplan.dev/hdd-millionths",
    "ssd": "bayplan.dev/ssd-millionths",
    "nic": "bayplan.dev/nic-millionths",
}
"""Resources whose amounts stay shares of a machine, in millionths, by column."""
PRIORITIES = {0: 1, 1: 0}
"""Our priority for each of the trace."""

VMS = TraceTable(
    "vm",
    "vmId,tenantId,vmTypeId,priority,starttime,endtime",
    "requests for virtual machines",
    needed=("vmId", "vmTypeId", "starttime", "endtime"),
)
TYPES = TraceTable(
    "vmType",
    "id,vmTypeId,machineId,core,memory,hdd,ssd,nic",
    "what a type of virtual machine uses of a type of machine",
    needed=("vmTypeId", "machineId", "core", "memory"),
)
FORMAT = TraceFormat(
    "azure-packing",
    "requests for virtual machines in one zone, 2020",
    "Azure/AzurePublicDataset, AzureTracesForPacking2020.md",
    (VMS, TYPES),
)


@dataclass(kw_only=True)
class AzurePacking(PublishedTrace):
    """The trace, an SQLite file or a folder with CSV files, on machines of one type.

    A machine has `cpus` cores and `memory_gib`; without `node_count`, there are as many as the virtual machines need at
    their peak. Without `machine`, it is the type of machine that supports most types of virtual machines. Those that it
    does not support are left out.
    """

    place: Path
    cpus: float = 64.0
    memory_gib: float = 512.0
    node_count: int | None = None
    machine: str | None = None

    def nodes(self) -> Iterator[Manifest]:
        shares = dict.fromkeys(SHARES.values(), str(WHOLE))
        whole = {"cpu": milli_cpu(self.cpus), "memory": mebibytes(self.memory_gib)}
        shape = NodeShape(whole | shares, {}, self.node_count)
        return shaped_nodes([shape], self.pods())

    def all_pods(self) -> Iterator[Manifest]:
        types = self._types()
        self.notes.clear()  # nodes may have been counted before
        skipped = 0
        for row in self._rows(VMS):
            requests = types.get(row.needed("vmTypeId"))
            if requests is None:
                skipped += 1
                continue
            yield _pod(row, requests)
        if skipped:
            self.notes.append(
                f"{skipped:,} virtual machines left out: the type of machine does not support them"
            )

    def _types(self) -> dict[str, dict[str, str]]:
        """Requests of each type of virtual machine on the type of machine."""
        rows = list(self._rows(TYPES))
        counts = Counter(row.needed("machineId") for row in rows)
        if not counts:
            raise InputError(f"{self.place}: expected rows in vmType; got none")
        if self.machine is not None and self.machine not in counts:
            known = ", ".join(sorted(counts, key=lambda each: (len(each), each)))
            raise InputError(f'--machine: expected one of {known}; got "{self.machine}"')
        machine = self.machine if self.machine is not None else counts.most_common(1)[0][0]
        return {
            row.needed("vmTypeId"): self._requests(row)
            for row in rows
            if row.text("machineId") == machine
        }

    def _requests(self, row: Row) -> dict[str, str]:
        requests = {
            "cpu": milli_cpu((row.amount("core") or 0) * self.cpus),
            "memory": mebibytes((row.amount("memory") or 0) * self.memory_gib),
        }
        for column, resource in SHARES.items():
            if share := row.amount(column):
                requests[resource] = str(round(share * WHOLE))
        return requests

    def _rows(self, table: TraceTable) -> Iterator[Row]:
        if self.place.is_dir():
            return table.rows(table.needed_file(self.place))
        return _sqlite_rows(self.place, table)


def _sqlite_rows(file: Path, table: TraceTable) -> Iterator[Row]:
    """The rows of a table in an SQLite file."""
    if not file.is_file():
        raise InputError(f"{file}: expected an SQLite file or a folder; got nothing there")
    where = f"{file}: table {table.name}"
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            cursor = database.execute(f'SELECT * FROM "{table.name}"')
            names = [column[0] for column in cursor.description]
            for column in table.needed:
                if column not in names:
                    found = ", ".join(names)
                    raise InputError(f"{where}: expected a column {column}; got {found}")
            for line, values in enumerate(cursor, 1):
                cells = ("" if value is None else str(value) for value in values)
                yield Row(where, line, dict(zip(names, cells, strict=True)))
    except sqlite3.Error as error:
        raise InputError(f"{where}: expected a table of an SQLite file; got {error}") from None


def _pod(row: Row, requests: dict[str, str]) -> Manifest:
    start, end = row.signed("starttime") or 0.0, row.signed("endtime")
    start_s = max(start, 0.0) * DAY_S
    priority = row.count("priority") if row.text("priority") else None
    if priority is not None and priority not in PRIORITIES:
        raise row.fault("priority", f"expected 0 or 1; got {priority}")
    return make_pod(
        f"vm-{row.line}",
        requests,
        annotations={
            TRACE_NAME: row.needed("vmId"),
            **times(start_s, None if end is None else end * DAY_S - start_s),
        },
        priority=None if priority is None else PRIORITIES[priority],
    )
