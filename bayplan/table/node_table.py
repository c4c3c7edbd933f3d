"""NodeTable: the nodes of the cluster as columns, the read side.

A row is a node. The row of a removed node stays, with `live` False, until another node takes it; a row can also exist
before its node, with the pods that name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..api.node import Node
from ..api.pod import EMPTY_STATUS, Pod
from ..api.pod_spec import PodSpec
from ..api.taints import Taint
from ..stamped_cache import StampedCache
from .carried import NONE_HIDDEN, CarriedTerms, Hidden
from .changes import RowLog
from .columns import (
    ALL,
    Bools,
    Column,
    Ints,
    PortColumns,
    PriorityColumns,
    ResourceColumns,
    Rows,
    SetColumn,
    Size,
)
from .images import ImageStates
from .labels import LabelColumns
from .terms import TermCounts
from .volumes import VolumeUse


class NodeTable:
    """All facts about nodes that a plugin may read, with one array entry per row.

    `row_changes` logs every change of a row, `node_changes` only those of the node object itself (labels, taints,
    allocatable, ...), not of the pods on it. `order_changes` logs changes that are in neither: a pod on the row
    started, or the pods on it are in another order. `pods` has for each row its pods by uid, in the order of
    kube-scheduler's list: a new pod is appended, and the last pod takes the place of a removed one.
    """

    def __init__(self) -> None:
        self.size = Size()
        self.nodes: list[Node | None] = []
        self.names: list[str] = []
        self.pods: list[dict[str, Pod]] = []
        self.row_of: dict[str, int] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.namespaces_version = 0
        self.row_changes = RowLog()
        self.node_changes = RowLog()
        self.order_changes = RowLog()

        self.allocatable = ResourceColumns(self.size)
        self.requested = ResourceColumns(self.size)
        self.scoring_usage = ResourceColumns(self.size)
        self.labels = LabelColumns(self.size, self.nodes)
        self.taints: SetColumn[Taint] = SetColumn(self.size)
        self.features: SetColumn[str] = SetColumn(self.size)
        self.ports = PortColumns(self.size)
        self.images = ImageStates(self.size)
        self.priorities = PriorityColumns(self.size)
        self.volumes = VolumeUse(self.size)
        self.terms = TermCounts(self.size, self.labels)
        self.carried = CarriedTerms(self.size)
        self.live_column = Column(self.size, np.bool_, False)
        self.unschedulable_column = Column(self.size, np.bool_, False)
        self.pod_count_column = Column(self.size)
        self.max_pods_column = Column(self.size)
        self._shares: StampedCache[PodSpec, Shares] = StampedCache("amounts of specs")
        self._live_rows: tuple[int, Rows] = (-1, ALL)
        self._numbers: Ints = np.zeros(0, dtype=np.int64)
        self._infos: list[NodeInfo] = []
        """The view of each row, up to a version of `node_changes`."""
        self._infos_at = -1
        self.node_count = 0
        """Number of nodes of the cluster."""

    def __len__(self) -> int:
        """Rows in use, those without a node included."""
        return self.size.rows

    @property
    def live(self) -> Bools:
        """bool per row: the row has a node."""
        return self.live_column.view

    @property
    def unschedulable(self) -> Bools:
        """bool per row: the node is cordoned."""
        return self.unschedulable_column.view

    @property
    def pod_count(self) -> Ints:
        """int64 per row: pods on the node."""
        return self.pod_count_column.view

    @property
    def max_pods(self) -> Ints:
        """int64 per row: pods the node allows."""
        return self.max_pods_column.view

    @property
    def live_rows(self) -> Rows:
        """The rows that have a node: ALL, or their numbers."""
        if self._live_rows[0] != self.node_changes.version:
            everything = self.node_count == len(self)
            rows: Rows = ALL if everything else np.flatnonzero(self.live)
            self._live_rows = (self.node_changes.version, rows)
        return self._live_rows[1]

    def count(self, rows: Rows) -> int:
        """Number of rows that `rows` stands for."""
        if rows is ALL:
            return self.size.rows
        return len(range(*rows.indices(len(self)))) if isinstance(rows, slice) else len(rows)

    def numbers(self, rows: Rows) -> Ints:
        """The row numbers `rows` stands for; read-only for a slice."""
        if len(self._numbers) != len(self):
            self._numbers = np.arange(len(self), dtype=np.int64)
            self._numbers.flags.writeable = False
        return self._numbers[rows]

    def nodes_at(self, rows: Rows) -> Iterator[NodeInfo]:
        """A view of each node in `rows`."""
        log, infos = self.node_changes, self._infos
        if self._infos_at != log.version or len(infos) != len(self):
            changed = log.rows_since(self._infos_at)
            if changed is None:
                infos.clear()
            else:
                for row in changed[changed < len(infos)].tolist():
                    infos[row] = NodeInfo(self, row)
            infos.extend([NodeInfo(self, row) for row in range(len(infos), len(self))])
            self._infos_at = log.version
        if isinstance(rows, slice):
            return iter(infos[rows])
        return map(infos.__getitem__, rows.tolist())

    def node_at(self, row: int) -> NodeInfo:
        """A view of the node at `row`."""
        return NodeInfo(self, row)

    def count_amounts(self, row: int, pod: Pod, change: int) -> None:
        """Count the amounts of a pod at `row`, `change` times (writer only)."""
        status = pod.status
        if status is EMPTY_STATUS or not status.has_resources:
            # Pods of a DaemonSet or a StatefulSet differ in their node or claims, not in amounts.
            spec = pod.spec.template or pod.spec
            shares = self._shares.get(spec, self.size.capacity)
            if shares is None:
                shares = self._shares.put(spec, self._shares_of(pod))
        else:
            shares = self._shares_of(pod)
        for cells, amount in shares:
            cells[row] += change * amount

    def _shares_of(self, pod: Pod) -> Shares:
        priority = self.priorities.column(pod.spec.priority or 0)
        return (*shares_of(self, pod), (priority.cells, 1))

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Labels of `namespace`; empty when it is not known."""
        return self.namespaces.get(namespace, {})

    def fork_row(self, row: int) -> NodeTable:
        """A table of just `row`, for a what-if: its pods can be changed without changing this table.

        Pod terms belong to the whole cluster and are not in it: plugins store the ones they need in the CycleState and
        adjust it in `add_pod` and `remove_pod`.
        """
        return RowFork(self, row)


class AmountColumns(Protocol):
    """Allocatable amounts of rows, and the use by their pods."""

    @property
    def allocatable(self) -> ResourceColumns: ...
    @property
    def requested(self) -> ResourceColumns: ...
    @property
    def scoring_usage(self) -> ResourceColumns: ...
    @property
    def pod_count_column(self) -> Column: ...

    def count(self, rows: Rows) -> int:
        """Number of rows that `rows` stands for."""


class AmountsCopy:
    """A copy of a table's amounts, to put pods on rows without changing the table."""

    __slots__ = ("_table", "allocatable", "pod_count_column", "requested", "scoring_usage")

    def __init__(self, table: NodeTable) -> None:
        size = Size(table.size.rows, table.size.capacity)
        self._table = table
        self.allocatable = table.allocatable
        self.requested = table.requested.copy(size)
        self.scoring_usage = table.scoring_usage.copy(size)
        self.pod_count_column = table.pod_count_column.copy(size)

    def count(self, rows: Rows) -> int:
        """Number of rows that `rows` stands for."""
        return self._table.count(rows)


Shares = Sequence[tuple[memoryview, int]]
"""(cells of a column, amount) for each column that a pod changes at the row it is put on."""


def shares_of(columns: AmountColumns, pod: Pod) -> Shares:
    """The changes of amounts by a pod, valid until the capacity changes. Missing columns are made."""
    requested, scoring = columns.requested, columns.scoring_usage
    return [
        *[(requested.cells_of(name), amount) for name, amount in pod.usage.items()],
        *[(scoring.cells_of(name), amount) for name, amount in pod.scoring_usage.items()],
        (columns.pod_count_column.cells, 1),
    ]


class RowFork(NodeTable):
    """One row of another table, to be changed and dropped before that table changes.

    Columns are copied on first use, because filters read few of them.
    """

    priorities: OneRowPriorities

    def __init__(self, source: NodeTable, row: int) -> None:
        self._source, self._row = source, row
        self.size = Size(rows=1, capacity=1)
        self.nodes, self.names = [source.nodes[row]], [source.names[row]]
        self.pods = [dict(source.pods[row])]
        self.row_of = {source.names[row]: 0}
        self.namespaces, self.namespaces_version = source.namespaces, source.namespaces_version
        self.row_changes, self.node_changes = RowLog(), RowLog()
        self.order_changes = RowLog()
        self._live_rows = (0, ALL)
        self._numbers = FIRST_NUMBER
        self.node_count = source.node_count  # of the whole cluster, not of this row

    def nodes_at(self, rows: Rows) -> Iterator[NodeInfo]:
        """A view of the node; nothing refers to it, so that it and the copy are freed at once."""
        return (NodeInfo(self, row) for row in self.numbers(rows).tolist())

    def count_amounts(self, row: int, pod: Pod, change: int) -> None:
        """Count the amounts of a pod `change` times."""
        self.requested.add(row, pod.usage, change)
        self.scoring_usage.add(row, pod.scoring_usage, change)
        self.priorities.add(pod.spec.priority or 0, change)

    def __getattr__(self, name: str) -> Any:
        """Called for missing attributes."""
        if name in RESOURCES:
            made: Any = OneRowResources(getattr(self._source, name), self._row)
        elif name == "pod_count_column":
            made = OneRowPodCount(self.pods)
        elif name == "priorities":
            made = OneRowPriorities(self._source.priorities.counts_at(self._row))
        elif name == "terms":
            made = NoTermCounts(self.size, self.labels)
        elif name == "carried":
            made = NoCarriedTerms(self.size)
        elif name in FORKED:
            made = getattr(self._source, name).fork(self.size, self._row)
        else:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        setattr(self, name, made)
        return made


RESOURCES = frozenset({"allocatable", "requested", "scoring_usage"})
FORKED = frozenset(
    {
        "labels",
        "taints",
        "features",
        "ports",
        "images",
        "volumes",
        "live_column",
        "unschedulable_column",
        "max_pods_column",
    }
)


FIRST_NUMBER = np.zeros(1, dtype=np.int64)
FIRST_NUMBER.flags.writeable = False
NO_LABELS: dict[str, str] = {}


class NodeInfo:
    """One node with its pods, as plugins that judge one node at a time see it."""

    __slots__ = ("labels", "row", "table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self.table = table
        self.row = row
        node = table.nodes[row]
        self.labels: Mapping[str, str] = NO_LABELS if node is None else node.labels

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r})"

    @property
    def name(self) -> str:
        return self.table.names[self.row]

    @property
    def node(self) -> Node:
        node = self.table.nodes[self.row]
        assert node is not None, f"row {self.row} ({self.name}) has no node"
        return node

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.node.annotations

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.unschedulable

    @property
    def allocatable(self) -> Mapping[str, int]:
        """Amounts that the node offers: cpu in millicores, every other resource in its own unit."""
        return self.table.allocatable.at(self.row)

    @property
    def requested(self) -> Mapping[str, int]:
        """Amounts that the pods on the node request."""
        return self.table.requested.at(self.row)

    @property
    def scoring_usage(self) -> Mapping[str, int]:
        """`requested`, with default amounts for pods without requests for cpu or memory, for scoring."""
        return self.table.scoring_usage.at(self.row)

    @property
    def pods(self) -> list[Pod]:
        """The pods on the node, assumed ones included."""
        return list(self.table.pods[self.row].values())

    def as_table(self) -> NodeTable:
        """A one-row table of this node."""
        return self.table if len(self.table) == 1 else self.table.fork_row(self.row)


class OneRowResources(ResourceColumns):
    """Amounts of one row as a dict; arrays are made on demand."""

    __slots__ = ("_amounts", "_names")

    def __init__(self, source: ResourceColumns, row: int) -> None:
        self._names = source
        self._amounts = source.at(row)

    def __getitem__(self, resource: str) -> Ints:
        amounts = np.array([self._amounts.get(resource, 0)], dtype=np.int64)
        amounts.flags.writeable = False
        return amounts

    def __contains__(self, resource: object) -> bool:
        return resource in self._amounts or resource in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._names, *self._amounts)))

    def __len__(self) -> int:
        return len(dict.fromkeys((*self._names, *self._amounts)))

    def amount(self, resource: str, row: int) -> int:
        return self._amounts.get(resource, 0)

    def at(self, row: int) -> dict[str, int]:
        return {name: amount for name, amount in self._amounts.items() if amount}

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        here = self._amounts
        for resource, amount in amounts.items():
            here[resource] = here.get(resource, 0) + sign * amount

    def set(self, row: int, amounts: Mapping[str, int]) -> None:
        self._amounts = dict(amounts)


class OneRowPodCount(Column):
    """Number of pods on one row."""

    __slots__ = ("_pods",)

    def __init__(self, pods: Sequence[Mapping[str, Pod]]) -> None:
        super().__init__(Size(rows=1, capacity=1))
        self._pods = pods

    @property
    def view(self) -> Ints:
        return np.array([len(self._pods[0])], dtype=np.int64)


class OneRowPriorities(PriorityColumns):
    """Number of pods of each priority on one row."""

    def __init__(self, counts: dict[int, int]) -> None:
        self._counts = counts

    def add(self, priority: int, change: int) -> None:
        """Count a pod `change` times."""
        self._counts[priority] = self._counts.get(priority, 0) + change

    def below(self, priority: int) -> Ints:
        found = sum(count for known, count in self._counts.items() if known < priority)
        return np.array([found], dtype=np.int64)

    def has_below(self, row: int, priority: int) -> bool:
        return any(known < priority and count > 0 for known, count in self._counts.items())

    def counts_at(self, row: int) -> dict[int, int]:
        return dict(self._counts)


class NoTermCounts(TermCounts):
    """Terms of pods belong to the whole cluster: a what-if does not count them."""

    def add_pod(self, row: int, pod: Pod, change: int) -> None:
        pass


class NoCarriedTerms(CarriedTerms):
    """Terms that pods carry belong to the whole cluster: a what-if does not count them."""

    def add_pod(self, row: int, pod: Pod, change: int, hidden: Hidden = NONE_HIDDEN) -> None:
        pass
