"""Handle: what a plugin may ask of the scheduler it runs in."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..api.pod import Pod
from ..clock import Clock, SystemClock
from ..table import NodeInfo, NodeTable
from ..table.what_if import WhatIf
from .cycle_state import CycleState
from .status import Status


class Lister(Protocol):
    """The objects of the cluster that are not nodes or pods, by kind: `Service`, `ReplicaSet`, ..."""

    version: int
    """Changes whenever an object does."""

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None; cluster-wide kinds have the namespace ""."""


class Client(Protocol):
    """The effects a plugin may have on the cluster."""

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod; raises ApiError when the cluster refuses."""

    def evict(self, victim: Pod, preemptor: Pod) -> None:
        """Delete `victim` to make room for `preemptor`; one that is gone already is fine."""

    def clear_nomination(self, pod: Pod) -> None:
        """Take the nominated node out of the pod's status."""


class Nominator(Protocol):
    """Which pods are promised a place on which node."""

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """Pods nominated to the node."""

    def nominated(self) -> Mapping[str, list[Pod]]:
        """All nominated pods by node name."""

    def delete(self, pod: Pod) -> None:
        """End the nomination of `pod`."""


class FilterRunner(Protocol):
    """The profile's filters, for plugins that ask what would happen if."""

    def filter_with_nominated(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Judge one node, with and without the pods nominated to it."""

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, what_if: WhatIf) -> None:
        """Put `added` on the node and tell the PreFilter plugins."""

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, what_if: WhatIf) -> None:
        """Take `removed` off the node and tell the PreFilter plugins."""


class EmptyLister:
    """A cluster with nothing but nodes and pods."""

    version = 0

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        return ()

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        return None


class NoNominations:
    """Nobody is nominated."""

    def nominated_pods(self, node_name: str) -> list[Pod]:
        return []

    def nominated(self) -> Mapping[str, list[Pod]]:
        return {}

    def delete(self, pod: Pod) -> None:
        pass


class NoClient:
    """Effects go nowhere: for judging without a cluster."""

    def bind(self, pod: Pod, node_name: str) -> None:
        pass

    def evict(self, victim: Pod, preemptor: Pod) -> None:
        pass

    def clear_nomination(self, pod: Pod) -> None:
        pass


@dataclass
class Handle:
    """The services a plugin is given; the same object for all plugins of a profile."""

    table: NodeTable
    profile_name: str = "default-scheduler"
    clock: Clock = field(default_factory=SystemClock)
    lister: Lister = field(default_factory=EmptyLister)
    client: Client = field(default_factory=NoClient)
    nominator: Nominator = field(default_factory=NoNominations)
    random: random.Random = field(default_factory=lambda: random.Random(0))
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    filters: FilterRunner | None = None
    """Set once the profile's plugins are made."""
