"""Google machines: the machines of a Borg cell, their attributes, and the constraints of tasks on them.

Schema: clusterdata_trace_format_v3.proto of google/cluster-data: MachineEvent, MachineAttribute, MachineConstraint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ...api.own_documents import API_VERSION
from ...api.text.durations import format_duration
from ...api.text.name_faults import is_label_value, is_qualified_name
from ...errors import InputError
from .published import TraceTable, TraceWindow
from .table_rows import Row, read_json_lines, read_rows
from .trace_manifests import Manifest, make_node, mebibytes, milli_cpu

SWITCH = "bayplan.dev/switch"
PLATFORM = "bayplan.dev/platform"
ATTRIBUTE = "attribute.bayplan.dev"
"""The prefix of labels for attributes."""
EVENTS = ("EVENT_TYPE_UNKNOWN", "ADD", "REMOVE", "UPDATE")
REMOVE, UPDATE = 2, 3
RELATIONS = {
    "EQUAL": "In",
    "NOT_EQUAL": "NotIn",
    "LESS_THAN": "Lt",
    "GREATER_THAN": "Gt",
    "LESS_THAN_EQUAL": "Lt",
    "GREATER_THAN_EQUAL": "Gt",
    "PRESENT": "Exists",
    "NOT_PRESENT": "DoesNotExist",
}
"""The operator on labels for each relation, in the order of their numbers."""

MACHINES = TraceTable(
    "machine_events",
    "time,machine_id,type",
    "machines: their capacity, switch and platform",
)
ATTRIBUTES = TraceTable(
    "machine_attributes",
    "time,machine_id,name",
    "attributes of machines; without it, constraints of tasks are left out",
    is_optional=True,
)


class GoogleMachines:
    """The machines of a cell. The largest one has `cpus` cores and `memory_gib`."""

    def __init__(self, folder: Path, cpus: float, memory_gib: float) -> None:
        self._folder = folder
        self._cpus = cpus
        self._memory_gib = memory_gib
        self._attributes: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for row in shards(folder, ATTRIBUTES):
            # The value at the beginning: later ones are not simulated.
            key = _label_key(row.needed("name"))
            if row.text("deleted") not in ("true", "True"):
                self._attributes[row.needed("machine_id")].setdefault(
                    key, _value(row.text("value"))
                )

    @property
    def has_attributes(self) -> bool:
        """Whether attributes of machines are given."""
        return bool(self._attributes)

    def manifests(self, window: TraceWindow, with_changes: bool) -> Iterator[Manifest]:
        """Yield the nodes and, `with_changes`, a Timeline of their later changes."""
        rows = sorted(shards(self._folder, MACHINES), key=lambda row: row.amount("time") or 0.0)
        present: dict[str, Manifest] = {}
        later: list[Manifest] = []
        known: set[str] = set()
        alive: set[str] = set()
        for row in rows:
            at_s = (row.amount("time") or 0.0) / 1e6 - window.from_s
            if at_s >= window.until_s - window.from_s:
                break
            machine, kind = row.needed("machine_id"), code_of(row, "type", EVENTS)
            name = f"machine-{machine}"
            if kind == REMOVE:
                if with_changes and name in alive:
                    alive.remove(name)
                    _remove(name, at_s, present, later)
                continue
            if name in known and (not with_changes or (kind == UPDATE and name not in alive)):
                continue
            node = self._node(name, machine, row)
            if node is None:
                continue
            is_change = name in alive
            known.add(name)
            alive.add(name)
            if at_s <= 0:
                present[name] = node
            else:
                later.append(_added(name, node, at_s, is_change))
        yield from present.values()
        if later:
            yield {"apiVersion": API_VERSION, "kind": "Timeline", "events": later}

    def _node(self, name: str, machine: str, row: Row) -> Manifest | None:
        """The node; None when its capacity is not given."""
        cpus = row.amount(nested(row, "capacity", "cpus"))
        memory = row.amount(nested(row, "capacity", "memory"))
        if cpus is None or memory is None:
            return None
        texts = {SWITCH: row.text("switch_id"), PLATFORM: row.text("platform_id")}
        labels = {key: _value(text) for key, text in texts.items() if text}
        resources = {
            "cpu": milli_cpu(cpus * self._cpus),
            "memory": mebibytes(memory * self._memory_gib),
        }
        return make_node(name, resources, labels | self._attributes.get(machine, {}))


def _remove(name: str, at_s: float, present: dict[str, Manifest], later: list[Manifest]) -> None:
    if at_s <= 0:
        present.pop(name, None)
    else:
        later.append({"at": format_duration(at_s), "remove": [f"node/{name}"]})


def _added(name: str, node: Manifest, at_s: float, is_update: bool) -> Manifest:
    """The event of a node that comes, or changes."""
    if not is_update:
        return {"at": format_duration(at_s), "add": [node]}
    change = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": node["status"],
    }
    return {"at": format_duration(at_s), "change": [change]}


@lru_cache(maxsize=65536)
def constraint_expressions(text: str) -> tuple[Manifest, ...]:
    """Expressions about labels of nodes for constraints in JSON, without those that labels cannot express."""
    return tuple(each for each in _expressions(text) if each is not None)


def count_inexpressible(text: str) -> int:
    """The number of constraints that labels cannot express: labels are compared as whole numbers only."""
    return sum(each is None for each in _expressions(text))


@lru_cache(maxsize=65536)
def _expressions(text: str) -> tuple[Manifest | None, ...]:
    if not text:
        return ()
    return tuple(map(_expression, msgspec.json.decode(text, type=list[dict[str, Any]])))


def _expression(constraint: dict[str, Any]) -> Manifest | None:
    relations = tuple(RELATIONS)
    given = str(constraint.get("relation", "EQUAL"))
    relation = relations[int(given)] if given.isdigit() and int(given) < len(relations) else given
    operator = RELATIONS.get(relation)
    if operator is None or not constraint.get("name"):
        return None
    key, value = _label_key(str(constraint["name"])), str(constraint.get("value") or "")
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Lt", "Gt"):
        if not value.lstrip("-").isdecimal():
            return None  # labels are compared as whole numbers only
        reach = {"LESS_THAN_EQUAL": 1, "GREATER_THAN_EQUAL": -1}.get(relation, 0)
        return {"key": key, "operator": operator, "values": [str(int(value) + reach)]}
    return {"key": key, "operator": operator, "values": [_value(value)]}


@lru_cache(maxsize=65536)
def _label_key(name: str) -> str:
    """A valid key for the name of an attribute."""
    key = f"{ATTRIBUTE}/{name}"
    return key if is_qualified_name(key) and "/" not in name else f"{ATTRIBUTE}/{_digest(name)}"


@lru_cache(maxsize=65536)
def _value(text: str) -> str:
    """A valid label value for a text, which may have any characters."""
    return text if is_label_value(text) else _digest(text)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
CSV_ENDINGS = (".csv",)


def shards(folder: Path, table: TraceTable) -> Iterator[Row]:
    """The rows of all files of a table: those in `folder` whose names begin with it, and those in a folder of its name.

    Raises InputError when there is none, unless the table is optional.
    """
    files = [
        file
        for file in (*folder.glob(f"{table.name}*"), *folder.glob(f"{table.name}/*"))
        if _is_table(file)
    ]
    if not files and not table.is_optional:
        example = f"{table.name}-000000000000.json.gz, .json or .csv"
        raise InputError(f"{folder}: expected files such as {example}; got none")
    for file in sorted(files):
        if _plain(file).endswith(CSV_ENDINGS):
            yield from read_rows(file, table.columns)
        else:
            yield from read_json_lines(file)


def nested(row: Row, field: str, name: str) -> str:
    """The column of a field's field: `capacity.cpus`, or `capacity_cpus` as tables without nesting have it."""
    flat = f"{field}_{name}"
    return flat if flat in row.cells else f"{field}.{name}"


def code_of(row: Row, column: str, names: Sequence[str]) -> int:
    """The number of a value that is written as a number or a name; raises InputError when it is neither."""
    text = row.text(column)
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and int(text) < len(names):
        return int(text)
    listed = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
    raise row.fault(column, f'expected one of {listed}; got "{text}"')


def _plain(file: Path) -> str:
    return file.name.removesuffix(".gz")


def _is_table(file: Path) -> bool:
    return file.is_file() and _plain(file).endswith((*JSON_ENDINGS, *CSV_ENDINGS))
