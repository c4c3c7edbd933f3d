"""Own tables: nodes and pods from custom CSV files, by column names.

A column is a field when it has the field's name; `--column` maps another column and adds a unit:
`cpu=cpu_milli:m` makes 250 in the column cpu_milli a cpu of 250m. docs/traces.md lists the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...api.pod_stages import DURATION
from ...api.text.durations import EXPECTED, parse_duration
from ...api.text.name_faults import is_label_value, is_qualified_name
from ...api.text.quantity import is_amount
from ...errors import InputError
from ...manifests.timeline import CREATED_AT
from .table_rows import Row, read_rows
from .trace_manifests import MAX_PODS, in_values, make_pod

PLAIN_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
PREFIXES = ("label", "annotation", "selector")
"""Prefixes of columns such as `label:app`, whose rest is a key."""
NODE_FIELDS = frozenset({"name", "count"})
POD_FIELDS = frozenset(
    {"name", "namespace", "count", "priority", "scheduler", "created-at", "duration"}
)


class TraceColumn(msgspec.Struct, frozen=True):
    """The column of a field, and the unit appended to its values."""

    name: str
    unit: str = ""


class TraceColumns(msgspec.Struct):
    """The mapping of columns to fields. Columns that are no field are listed in `unused`."""

    given: Mapping[str, TraceColumn] = msgspec.field(default_factory=dict)
    unused: set[str] = msgspec.field(default_factory=set)
    used: set[str] = msgspec.field(default_factory=set)
    """The fields of `given` that some file has."""

    def of(self, row: Row, fields: frozenset[str]) -> dict[str, str]:
        """The fields of a row: the values of its cells, with units; empty cells are left out."""
        named = {column.name: (name, column.unit) for name, column in self.given.items()}
        found = {}
        for column in row.cells:
            name, unit = named.get(column, (column, ""))
            if name not in fields and not _is_free(name):
                self.unused.add(column)
                continue
            if column in named:
                self.used.add(name)
            if text := row.text(column):
                found[name] = text + unit
        return found

    def place(self, name: str) -> str:
        """The column of a field."""
        return self.given[name].name if name in self.given else name


def parse_columns(texts: Iterable[str]) -> TraceColumns:
    """Parse texts such as `cpu=cpu_milli:m`; raises InputError when one is not FIELD=COLUMN or
    FIELD=COLUMN:UNIT."""
    given = {}
    for text in texts:
        name, _, rest = text.partition("=")
        column, _, unit = rest.rpartition(":") if ":" in rest else (rest, "", "")
        if not name or not column:
            raise InputError(f'--column: expected FIELD=COLUMN or FIELD=COLUMN:UNIT; got "{text}"')
        if name not in NODE_FIELDS | POD_FIELDS and not _is_free(name):
            fields = ", ".join(sorted(NODE_FIELDS | POD_FIELDS | PLAIN_RESOURCES))
            more = "a resource such as nvidia.com/gpu, label:KEY, annotation:KEY or selector:KEY"
            raise InputError(f'--column: expected one of {fields}, {more}; got "{name}"')
        given[name] = TraceColumn(column, unit)
    return TraceColumns(given)


def read_own_tables(
    nodes: Path | None,
    pods: Path | None,
    columns: TraceColumns,
    pods_per_node: int = MAX_PODS,
) -> Iterator[dict[str, Any]]:
    """Yield the manifests of both files; raises InputError for an invalid cell or an unknown column
    of `--column`. Nodes without a number of pods take `pods_per_node`."""
    make_node = partial(_node, max_pods=pods_per_node)
    for file, fields, make in ((nodes, NODE_FIELDS, make_node), (pods, POD_FIELDS, _pod)):
        if file is not None:
            yield from _read(file, fields, make, columns)
    for name, column in columns.given.items():
        if name not in columns.used:
            raise InputError(f"--column: expected a column of the files; got {column.name}")


_Make = Callable[["_Cells"], dict[str, Any]]


def _read(
    file: Path, fields: frozenset[str], make: _Make, columns: TraceColumns
) -> Iterator[dict[str, Any]]:
    needed = columns.place("name")
    for row in read_rows(file, [needed]):
        cells = _Cells(row, columns, columns.of(row, fields))
        name = cells.values.get("name", "")
        if not name:
            raise row.fault(needed, "expected a name; got an empty cell")
        manifest = make(cells)
        count = cells.count()
        if count is None:
            manifest["metadata"]["name"] = name
            yield manifest
            continue
        for number in range(count):
            metadata = {**manifest["metadata"], "name": f"{name}-{number}"}
            yield {**manifest, "metadata": metadata}


class _Cells(msgspec.Struct, frozen=True):
    """The fields of one row, decoded one by one."""

    row: Row
    columns: TraceColumns
    values: Mapping[str, str]

    def count(self) -> int | None:
        """The number of copies; None for one, with its name unchanged."""
        return None if "count" not in self.values else self.row.number(self.columns.place("count"))

    def resources(self) -> dict[str, str]:
        """The fields that are resources."""
        expected = "a quantity such as 250m or 1.5Gi"
        names = filter(_is_resource, self.values)
        return {name: self._checked(name, is_amount, expected) for name in names}

    def keyed(self, prefix: str) -> dict[str, str]:
        """The values of the columns with this prefix, by their keys."""
        start = f"{prefix}:"
        keys = (name for name in self.values if name.startswith(start))
        return {name.removeprefix(start): self.values[name] for name in keys}

    def labels(self) -> dict[str, str]:
        """The labels; raises InputError for an invalid one."""
        for key in self.keyed("label"):
            self._checked(f"label:{key}", is_label_value, "a value that a label may have")
        return self.keyed("label")

    def duration(self, name: str) -> str | None:
        """A field that is a time; None when the cell is empty."""
        if name not in self.values:
            return None
        expected = EXPECTED.removeprefix("expected ")
        return self._checked(name, lambda text: parse_duration(text) is not None, expected)

    def _checked(self, name: str, is_right: Callable[[str], bool], expected: str) -> str:
        text = self.values[name]
        if not is_right(text):
            raise self.row.fault(self.columns.place(name), f'expected {expected}; got "{text}"')
        return text


def _node(cells: _Cells, max_pods: int) -> dict[str, Any]:
    resources = {"pods": str(max_pods), **cells.resources()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"labels": cells.labels(), "annotations": cells.keyed("annotation")},
        "status": {"allocatable": resources, "capacity": resources},
    }


def _pod(cells: _Cells) -> dict[str, Any]:
    annotations = cells.keyed("annotation")
    for name, key in (("created-at", CREATED_AT), ("duration", DURATION)):
        if (time := cells.duration(name)) is not None:
            annotations[key] = time
    places = cells.keyed("selector").items()
    pod = make_pod(
        "",
        cells.resources(),
        annotations=annotations,
        labels=cells.labels(),
        priority=cells.row.number(cells.columns.place("priority"))
        if "priority" in cells.values
        else None,
        on=[in_values(key, text.split("|")) for key, text in places],
    )
    if "scheduler" in cells.values:
        pod["spec"]["schedulerName"] = cells.values["scheduler"]
    if "namespace" in cells.values:
        pod["metadata"]["namespace"] = cells.values["namespace"]
    return pod


def _is_free(name: str) -> bool:
    """Whether a name is a valid field besides the fixed ones."""
    prefix, _, key = name.partition(":")
    return _is_resource(name) or (prefix in PREFIXES and is_qualified_name(key))


def _is_resource(name: str) -> bool:
    return name in PLAIN_RESOURCES or ("/" in name and is_qualified_name(name))
