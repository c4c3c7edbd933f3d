"""NodePreferAvoidPods: avoid nodes whose annotation names the pod's controller.

Mirrors pkg/scheduler/framework/plugins/nodepreferavoidpods/node_prefer_avoid_pods.go of v1.20.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...api.pod import Pod
from ...api.wire.go_json import decode_json, list_member, member, text_member
from ...errors import InputError
from ...framework import MAX_SCORE, NODE_OBJECT, CycleState, NodeInfo, ScorePlugin
from ...table import Ints, NodeTable, Rows

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
CONTROLLERS = ("ReplicationController", "ReplicaSet")


class AvoidedController(NamedTuple):
    """A controller whose pods a node should rather not get."""

    kind: str
    uid: str


class NodePreferAvoidPods(ScorePlugin):
    """All or nothing: 0 where the pod's controller is to be avoided, MAX_SCORE elsewhere.

    Few nodes carry the annotation. It is read when a node changes; for a pod its controller is looked up.
    """

    name = "NodePreferAvoidPods"
    scope = NODE_OBJECT

    def __init__(self) -> None:
        self._table: NodeTable | None = None
        self._version = 0
        self._avoided: dict[int, frozenset[AvoidedController]] = {}
        self._rows_of: dict[AvoidedController, set[int]] = {}

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        scores = np.full(len(table), MAX_SCORE, dtype=np.int64)
        controller = controller_of(pod)
        if controller is not None:
            self._follow(table)
            scores[list(self._rows_of.get(controller, ()))] = 0
        return scores[rows]

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0 if controller_of(pod) in avoided_on(node.annotations) else MAX_SCORE

    def _follow(self, table: NodeTable) -> None:
        """Read the annotations of the nodes that changed."""
        if table is not self._table:
            self._table, self._version = table, 0
            self._avoided.clear()
            self._rows_of.clear()
        if self._version == table.node_changes.version:
            return
        changed = table.node_changes.since(self._version)
        for row in range(len(table)) if changed is None else changed:
            self._read(table, row)
        self._version = table.node_changes.version

    def _read(self, table: NodeTable, row: int) -> None:
        for controller in self._avoided.pop(row, ()):
            self._rows_of[controller].discard(row)
        node = table.nodes[row]
        found = avoided_on(node.annotations) if node is not None else None
        if found:
            self._avoided[row] = found
            for controller in found:
                self._rows_of.setdefault(controller, set()).add(row)


def controller_of(pod: Pod) -> AvoidedController | None:
    """The controller of the pod, which the annotation of a node may list."""
    owner = pod.controller
    if owner is None or owner.kind not in CONTROLLERS:
        return None
    return AvoidedController(owner.kind, owner.uid)


def avoided_on(annotations: Mapping[str, str]) -> frozenset[AvoidedController]:
    """The controllers that the annotations of a node name."""
    text = annotations.get(ANNOTATION)
    return _parse(text) if text else frozenset()


@lru_cache(maxsize=4096)
def _parse(text: str) -> frozenset[AvoidedController]:
    """Controllers in the annotation; nothing when it cannot be read."""
    try:
        entries = list_member(decode_json(text.encode()), "preferAvoidPods")
        owners = [member(member(entry, "podSignature"), "podController") for entry in entries]
        return frozenset(
            AvoidedController(text_member(owner, "kind"), text_member(owner, "uid"))
            for owner in owners
        )
    except InputError:
        return frozenset()
