"""Unit scale: observations as shares from 0 to 1, for networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..api.node import Node

Columns: TypeAlias = dict[str, NDArray[Any]]
SHARES = np.float32


class UnitScale(msgspec.Struct, frozen=True):
    """The largest node of a workload, by which amounts become shares."""

    resources: tuple[str, ...]
    largest: Mapping[str, int]
    """The most that a node offers of each resource."""
    max_pods: int

    @staticmethod
    def of(nodes: Sequence[Node], resources: Iterable[str]) -> UnitScale:
        """The scale of these nodes."""
        names = tuple(resources)
        most = {name: max(node.allocatable.get(name, 0) for node in nodes) or 1 for name in names}
        return UnitScale(names, most, max(node.allocatable.get("pods", 0) for node in nodes) or 1)

    def shares(self, columns: Mapping[str, NDArray[Any]], parts: Mapping[str, int]) -> Columns:
        """float32 columns: offers as shares of the largest node, uses as shares of their own node, the pod as shares
        of the largest node, parts such as GPUs as shares of the largest one (`parts` by resource).
        """
        found: Columns = {"live": columns["live"]}
        for name in self.resources:
            offered = columns[f"allocatable.{name}"]
            found[f"allocatable.{name}"] = _ratio(offered, self.largest[name])
            found[f"requested.{name}"] = _ratio(columns[f"requested.{name}"], offered)
        found["pod_count"] = _ratio(columns["pod_count"], columns["max_pods"])
        found["max_pods"] = _ratio(columns["max_pods"], self.max_pods)
        wanted = np.array([self.largest[name] for name in self.resources], dtype=np.int64)
        found["pod"] = _ratio(columns["pod"], wanted)
        for name, whole in parts.items():
            found[f"free.{name}"] = _ratio(columns[f"free.{name}"], whole)
        return found


def _ratio(amounts: NDArray[Any], whole: NDArray[Any] | int) -> NDArray[Any]:
    """float32: the amounts divided by `whole`; 0 where that is 0."""
    found = np.zeros(amounts.shape, dtype=SHARES)
    np.divide(amounts, whole, out=found, where=np.asarray(whole) > 0, casting="unsafe")
    return found
