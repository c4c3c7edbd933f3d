"""Evidence: the objects that reproduce a difference, in a file that `explain` reads."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..answers.judged_decision import Agreement, JudgedDecision, reason_of
from ..api.node import Node
from ..api.pod import EMPTY_STATUS, Pod
from ..api.wire.placement_fields import clipped_tree
from ..config.releases import as_recorded
from ..errors import OutputError, os_errors_named
from ..scheduler.assessment import assess
from ..sim.settings import Settings
from ..trials import TrialCluster

MOST_FILES = 50
MOST_SAMPLED = 50
COMPRESSION = 4
"""Fast: decisions wait while a file is written."""
INDEX = "differences.jsonl"
KINDS_OF_NODES = frozenset({"CSINode", "ResourceSlice", "VolumeAttachment"})
"""Kinds with an object or more per node."""
_UNSAFE = re.compile(r"[^a-zA-Z0-9.-]+")


class EvidenceFolder:
    """Writes at most `MOST_FILES` files, and an index with a line for each. With `takes_sampled` at most `MOST_SAMPLED`
    files of sampled decisions come on top.

    A file has the objects that make the difference: the pod, its node and the pods there, if these lead to the same
    refusals; else all objects of the cluster. Fields are left out as in snapshots.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        version: str = "",
        most: int = MOST_FILES,
        takes_sampled: bool = False,
    ) -> None:
        self.takes_sampled = takes_sampled
        self._sampled = 0
        self._folder = folder
        self._settings = settings
        self._version = version
        self._most = most
        with os_errors_named(f"--evidence: {folder}", "a folder to write to"):
            folder.mkdir(parents=True, exist_ok=True)
            self._written = self._differing = len(list(folder.glob("*.json.gz")))

    def keep(self, decision: JudgedDecision, view: TrialCluster, time: str) -> str:
        """Write the state that `view` shows; returns the name of the file, "" if there are enough."""
        is_sampled = decision.agreement is Agreement.SAMPLED
        is_full = self._sampled >= MOST_SAMPLED if is_sampled else self._differing >= self._most
        if is_full:
            return ""
        self._written += 1
        self._sampled += is_sampled
        self._differing += not is_sampled
        objects = self._needed(decision, view)
        name = _UNSAFE.sub("-", f"{self._written:03}-{decision.pod.namespace}-{decision.pod.name}")
        path = self._folder / f"{name}.json.gz"
        trees = [as_recorded(clipped_tree(obj), self._version) for obj in objects]
        line = {
            "file": path.name,
            "time": time,
            "pod": decision.pod.key,
            "node": decision.node_name or decision.nominated_node,
            "result": str(decision.verdict),
            "reason": reason_of(decision),
            "objects": len(trees),
            "command": f"bayplan explain pod/{decision.pod.key} -f {path} --as-is",
        }
        with os_errors_named(f"--evidence: {path}", "room to write", OutputError):
            _write(path, {"apiVersion": "v1", "kind": "List", "items": trees})
            with (self._folder / INDEX).open("a", encoding="utf-8") as index:
                index.write(json.dumps(line) + "\n")
        return path.name

    def remove(self, name: str) -> None:
        """Remove a file, and its line in the index."""
        (self._folder / name).unlink(missing_ok=True)
        index = self._folder / INDEX
        lines = index.read_text("utf-8").splitlines(keepends=True)
        index.write_text("".join(one for one in lines if json.loads(one)["file"] != name), "utf-8")

    def _needed(self, decision: JudgedDecision, view: TrialCluster) -> list[Any]:
        every = list(_state_of(decision, view))
        found = decision.assessment
        if found is None or not found.refusals:
            return every  # totals and messages depend on all nodes
        few = list(_around(decision.node_name, decision.pod, every))
        alone = TrialCluster(few, self._settings)
        if decision.pod.scheduler_name not in alone.scheduler.profiles:
            return every
        pod = next(obj for obj in few if isinstance(obj, Pod) and obj.uid == decision.pod.uid)
        again = assess(alone.ask(pod), decision.node_name)
        return few if again.refusals == found.refusals else every


def _state_of(decision: JudgedDecision, view: TrialCluster) -> Iterator[Any]:
    """All objects of the state, with the pod as it was before the decision."""
    for obj in view.cluster.objects():
        if not isinstance(obj, Pod) or obj.uid != decision.pod.uid:
            yield obj
    yield decision.pod.replace(node_name="", status=EMPTY_STATUS)


def _around(node_name: str, pod: Pod, objects: Iterable[Any]) -> Iterator[Any]:
    """The pod, the node and the pods there, and the objects that are not of other nodes or namespaces."""
    for obj in objects:
        if isinstance(obj, Pod):
            if obj.uid == pod.uid or node_name in (obj.node_name, obj.nominated_node_name):
                yield obj
        elif isinstance(obj, Node):
            if obj.name == node_name:
                yield obj
        elif obj.kind in KINDS_OF_NODES:
            if node_name in (obj.name, getattr(getattr(obj, "spec", obj), "node_name", None)):
                yield obj
        elif not obj.namespace or obj.namespace == pod.namespace:
            yield obj


def _write(path: Path, tree: Any) -> None:
    """Write a temporary file beside `path`, then rename it."""
    beside = path.with_suffix(".part")
    beside.write_bytes(gzip.compress(msgspec.json.encode(tree), COMPRESSION, mtime=0))
    os.replace(beside, path)
