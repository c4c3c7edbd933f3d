"""Value numbers: equal values get one number, so that a page receives each of them once.

Numbered lists are append-only: a client requests the entries after an offset.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from ..api.node import Node
from ..api.pod import Pod
from ..api.text.refusal_message import refusals_of
from ..api.workloads import BARE, workload_of

Thing = TypeVar("Thing", bound=Hashable)

FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
NONE = -1

Tree = dict[str, Any]


class Numbers(Generic[Thing]):
    """Gives each distinct value a number, from 0 on."""

    __slots__ = ("_numbers", "things")

    def __init__(self, things: Iterable[Thing] = ()) -> None:
        self.things: list[Thing] = []
        self._numbers: dict[Thing, int] = {}
        for thing in things:
            self.of(thing)

    def of(self, thing: Thing) -> int:
        """The number of `thing`; a new one on first use."""
        number = self._numbers.get(thing)
        if number is None:
            number = self._numbers[thing] = len(self.things)
            self.things.append(thing)
        return number

    def known(self, thing: Thing) -> int:
        """The number of `thing`; NONE when it has none."""
        return self._numbers.get(thing, NONE)

    def __len__(self) -> int:
        return len(self.things)


PodKind = tuple[tuple[int, ...], tuple[int, ...], int, int, int, tuple[int, ...], int]
"""Requests, labels, priority, owner, scheduler, node selector and workload: all as numbers."""
NodeRow = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]
"""Number of the node, labels, taints, allocatable (resource, amount, ...) and whether it is cordoned or not ready."""

CORDONED, NOT_READY = 1, 2
COLUMNS = {
    "rows": ("node", "labels", "taints", "allocatable", "flags"),
    "pods": ("namespace", "name", "kind"),
}


class Numbering:
    """All data of pods and nodes, in numbers: texts, resources, pod classes, node states."""

    def __init__(self) -> None:
        self.texts: Numbers[str] = Numbers([""])
        self.resources: Numbers[str] = Numbers(FIRST_RESOURCES)
        self.nodes: Numbers[str] = Numbers()
        self.kinds: Numbers[PodKind] = Numbers()
        self.rows: Numbers[NodeRow] = Numbers()
        self.refusals: list[tuple[int, tuple[int, ...]]] = []
        """Messages about pods that fit nowhere: the text, and reason, nodes, reason, nodes, ..."""
        self.pod_names: list[tuple[int, str, int]] = []
        """Namespace, name and first class of each pod."""

    def pod(self, pod: Pod, kind: int) -> int:
        """Number a new pod."""
        self.pod_names.append((self.texts.of(pod.namespace), pod.name, kind))
        return len(self.pod_names) - 1

    def kind(self, pod: Pod) -> int:
        """The number of the pod's class: its data besides its name."""
        owner, workload = pod.controller, workload_of(pod)
        owned_by = f"{owner.kind}/{owner.name}" if owner is not None else ""
        return self.kinds.of(
            (
                self._amounts(pod.usage),
                self._pairs(pod.labels),
                pod.priority,
                self.texts.of(owned_by),
                self.texts.of(pod.scheduler_name),
                self._pairs(pod.spec.node_selector or {}),
                self.texts.of("" if workload[0] == BARE else "/".join(workload)),
            )
        )

    def message(self, text: str) -> int:
        """The number of the text why a pod waits; its reasons are noted on first use."""
        is_known = self.texts.known(text) != NONE
        number = self.texts.of(text)
        reasons = {} if is_known else refusals_of(text)
        if reasons:
            flat = (n for reason, nodes in reasons.items() for n in (self.texts.of(reason), nodes))
            self.refusals.append((number, tuple(flat)))
        return number

    def row(self, node: Node) -> int:
        """The number of the node's state."""
        flags = CORDONED if node.unschedulable else 0
        ready = node.condition("Ready")
        if ready is not None and ready.status != "True":
            flags |= NOT_READY
        return self.rows.of(
            (
                self.nodes.of(node.name),
                self._pairs(node.labels),
                tuple(self.texts.of(str(taint)) for taint in node.taints),
                self._amounts(node.allocatable),
                flags,
            )
        )

    def since(self, known: dict[str, int]) -> Tree:
        """The entries after the offsets `known`; of rows and pods, in columns."""
        lists: dict[str, list[Any]] = {
            "texts": self.texts.things,
            "resources": self.resources.things,
            "nodes": self.nodes.things,
            "kinds": self.kinds.things,
            "rows": self.rows.things,
            "refusals": self.refusals,
            "pods": self.pod_names,
        }
        first = {name: known.get(name, 0) for name in lists}
        new = {name: entries[first[name] :] for name, entries in lists.items()}
        columns = {name: in_columns(new[name], names) for name, names in COLUMNS.items()}
        return {"first": first, **new, **columns}

    def _pairs(self, labels: dict[str, str]) -> tuple[int, ...]:
        of = self.texts.of
        return tuple(number for pair in labels.items() for number in (of(pair[0]), of(pair[1])))

    def _amounts(self, amounts: dict[str, int]) -> tuple[int, ...]:
        of = self.resources.of
        return tuple(n for name, amount in amounts.items() for n in (of(name), amount))


def in_columns(tuples: Sequence[Any], names: Sequence[str]) -> Tree:
    """Tuples as a list for each of their places."""
    columns = zip(*tuples, strict=True) if tuples else ((),) * len(names)
    return dict(zip(names, columns, strict=True))
