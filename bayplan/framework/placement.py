"""Placement: a set of nodes that a pod group may be scheduled on, and the nodes its members would get there.

Mirrors Placement, PodGroupInfo and PodGroupAssignments of staging/src/k8s.io/kube-scheduler/framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Protocol

import msgspec

from ..api.pod import Pod
from ..table import Bools, Ints
from .cycle_state import CycleState
from .status import Status


class Placement(msgspec.Struct, frozen=True, eq=False):
    """Some nodes, by their rows in ascending order. The placement of all nodes has no name."""

    name: str
    rows: Ints
    tier: int = 0
    """Placements are tried only if the group fits on none of a lower tier. Not in kube-scheduler."""


class PodGroupInfo(msgspec.Struct, frozen=True):
    """The pod group of a scheduling cycle, and its members that need a node, in the order in which they are tried."""

    namespace: str
    name: str
    pods: Sequence[Pod]

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodGroupAssignments(msgspec.Struct, frozen=True):
    """A placement with the members that fit there, and the row of the node of each."""

    placement: Placement
    pods: Sequence[Pod]
    rows: Sequence[int]


def placed_by_name(members: Iterable[Pod]) -> list[Pod]:
    """The members of a group that have a node, in the order of their names."""
    return sorted((pod for pod in members if pod.node_name), key=attrgetter("name"))


class GroupTrial(Protocol):
    """Removes pods from their nodes and puts them back, during one scheduling cycle of a pod group."""

    def remove(self, pod: Pod) -> None:
        """Take a pod off its node."""

    def restore(self, pod: Pod) -> None:
        """Put a removed pod back."""


class GroupRoom(msgspec.Struct, frozen=True):
    """The resources that a group of equal pods needs, if nothing but amounts matters."""

    amounts: Mapping[str, int]
    """Amounts that each pod needs of each resource; POD_COUNT is one of them."""
    accepts: Bools
    """bool per row: the node can have such pods if there is room."""
    needed: int
    """The number of pods that need a node."""


class TryGroup(Protocol):
    """Whether a pod group fits on the nodes in their present state."""

    def __call__(self) -> Status:
        """Try the members on the nodes."""

    def room(self) -> GroupRoom | None:
        """Amounts that the group needs; None if the result depends on more, so that it has to be tried. Call it
        first.
        """

    def states(self) -> Mapping[str, CycleState]:
        """The states of the members that were tried before room was made, by their keys."""

    def fits_beside(self, pods: Sequence[Pod]) -> bool:
        """Whether the group fits after `pods` were put back on their nodes; if not, the caller removes them again."""
