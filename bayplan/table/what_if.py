"""WhatIf: one node with other pods on it, judged without touching the table."""

from __future__ import annotations

import numpy as np

from ..api.pod import Pod
from .columns import Rows
from .images import ImageStates
from .node_table import NodeInfo, NodeTable
from .writer import TableWriter


class WhatIf:
    """A copy of one row. Plugins see it as `node`."""

    __slots__ = ("_writer", "node")

    def __init__(self, table: NodeTable, row: int) -> None:
        fork = table.fork_row(row)
        self._writer = TableWriter(fork)
        self.node = NodeInfo(fork, 0)

    def add_pod(self, pod: Pod) -> None:
        """Put `pod` on the node."""
        self._writer.add_pod(pod.with_node(self.node.name))

    def remove_pod(self, pod: Pod) -> None:
        """Take `pod` off the node."""
        self._writer.remove_pod(self.node.table.pods[0][pod.uid])


def bare_node(table: NodeTable, row: int) -> NodeInfo:
    """The node without its pods and its images."""
    what_if = WhatIf(table, row)
    for pod in what_if.node.pods:
        what_if.remove_pod(pod)
    bare = what_if.node.table
    bare.images = ImageStates(bare.size)
    return what_if.node


def rows_in(whole: NodeTable, table: NodeTable, rows: Rows) -> Rows:
    """The rows of `whole` that `rows` of `table` stand for, which may be a what-if."""
    if table is whole:
        return rows
    names = [table.names[row] for row in table.numbers(rows)]
    return np.array([whole.row_of[name] for name in names], dtype=np.int64)
