"""Rules: a plugin's computation from the amounts of a node, as data.

A rule belongs to one pod spec. It is applied to rows by `fitting.py` and `scoring.py`, or by the compiled kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from ..table import Ints

POD_COUNT = "pods"
"""The resource that stands for the number of pods; each pod uses one."""

MOST_DEMANDS = 28
"""Demands that fit in the bits of one number; see `fitting.shortages`."""


class FitRule(NamedTuple):
    """A pod fits when the node has, of each resource, at least the demanded amount free.

    Free is allocatable less the requests of the node's pods. `reasons` has the text for each resource that may be
    short. `left_to_devices` are resources that a node without any of them may provide otherwise.
    """

    amounts: dict[str, int]
    reasons: Mapping[str, str]
    left_to_devices: frozenset[str] = frozenset()
    plugin: str = ""
    """The plugin whose rule it is; the runtime fills it in."""
    is_always_resolvable: bool = False
    """Whether preemption is tried even on nodes that never have enough."""

    @property
    def is_codable(self) -> bool:
        """Whether the shortages of a row fit in one number."""
        return len(self.amounts) <= MOST_DEMANDS


class ShareKind(IntEnum):
    """The quantity with which the points for one resource grow."""

    LEAST = 1
    """The share that would be free."""
    MOST = 2
    """The share that would be used."""
    RATIO = 3
    """The height of a given line at the used share; a resource with 0 points does not count."""


class ShareRule(NamedTuple):
    """A weighted mean, over resources, of points from 0 to 100.

    `parts` has (resource, amount that the pod adds to its use, weight). Resources that a node does not have do not
    count.
    """

    kind: ShareKind
    parts: tuple[tuple[str, int, int], ...]
    heights: Ints | None = None
    """For RATIO, int64: the points at 0, 1, ..., 100 percent of use."""


class BalanceRule(NamedTuple):
    """Evenness of the use of a node's resources with the pod on it.

    `parts` has (resource, amount that the pod adds to its use). Resources that a node does not have do not count.
    """

    parts: tuple[tuple[str, int], ...]
    scores_change: bool = True
    """Whether the points are for the pod's change, where 75 is no difference; else for the use with the pod."""


class AlignmentRule(NamedTuple):
    """Similarity of the mix of a pod's requests and the mix of a node's free resources.

    `parts` has (resource, what the pod asks for). Each is counted as a share of what the node has, and the shares of a
    mix sum to 1. Resources that a node does not have do not count.
    """

    parts: tuple[tuple[str, int], ...]


ScoreRule = ShareRule | BalanceRule | AlignmentRule


class AmountRules(NamedTuple):
    """Rules of a plugin on the amounts of a node: `fit` in Filter, `score` in Score; None means no rule."""

    fit: FitRule | None = None
    score: ScoreRule | None = None
    scores_by_more: bool = False
    """Whether Score depends on more than the row for such pods, as with scope CLUSTER; `score` is then None."""


NO_RULES = AmountRules()
