"""Choices: names, defaults and checks of options that the commands, the notebook and the library share.

Imports nothing heavy: `--help` and the completion of shells read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from .errors import InputError, one_of


class Objective(StrEnum):
    """The quantity that a rebalancing plan minimises."""

    SPREAD = "spread"
    """Root mean square of each node's deviation from the cluster's utilisation of cpu and memory."""
    PACK = "pack"
    """Number of nodes that run pods other than daemons and static pods."""
    COST = "cost"
    """Total cost of the nodes that run pods."""
    CONSTRAINTS = "constraints"
    """Number of pods on nodes that the filters would reject today."""


class Follow(StrEnum):
    """The state of the cluster in which the decisions of a recording are compared."""

    RECORDED = "recorded"
    """Judge each recorded decision on its own, in the recorded cluster."""
    OWN = "own"
    """The state after this scheduler's own decisions."""


OBJECTIVES = tuple(Objective)
DEFAULT_MOVES = 20
"""The most moves of a rebalancing plan."""
DEFAULT_COPIES = 100_000
"""The most copies that `capacity` places one after the other."""
NEAREST = 5
"""Number of nodes for which `explain` searches the changes that admit a pod."""

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
AUTOSCALERS = (KARPENTER, CLUSTER_AUTOSCALER)
LEAST_WASTE, PRICE, PRIORITY, RANDOM = "least-waste", "price", "priority", "random"
MOST_PODS, LEAST_NODES = "most-pods", "least-nodes"
EXPANDERS = (LEAST_WASTE, PRICE, PRIORITY, RANDOM, MOST_PODS, LEAST_NODES)

ANY_NODE, ANY_ZONE = "node", "zone"
SURVIVE = (ANY_NODE, ANY_ZONE)
"""The losses that a plan of nodes can survive."""
PLAN_SEEDS = 5
PLAN_TIME_LIMIT_S = 60.0

PROVIDER_NAMES = ("DefaultProvider", "ClusterAutoscalerProvider")
"""The algorithm providers of kube-scheduler up to v1.22."""


def expect_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise InputError unless the value of the option is one of `choices`."""
    if value not in choices:
        raise InputError(f'{name}: expected {one_of(choices)}; got "{value}"')


def expect(
    where: str, name: str, given: Any, kinds: type | tuple[type, ...], expected: str
) -> None:
    """Raise TypeError unless `given` is of one of the types; a bool is not a number."""
    wants_bool = bool in (kinds if isinstance(kinds, tuple) else (kinds,))
    if not isinstance(given, kinds) or (isinstance(given, bool) and not wants_bool):
        raise TypeError(f"{where}: {name}: expected {expected}; got {shown(given)}")


def expect_number(where: str, name: str, given: Any, optional: bool = False) -> None:
    """Raise TypeError unless `given` is a whole number, or None where that is allowed."""
    if given is not None or not optional:
        expect(where, name, given, int, "a whole number")


def several(where: str, name: str, given: Any, kinds: tuple[type, ...], expected: str) -> list[Any]:
    """The given values as a list; a single value is a list of one. Raises TypeError for other types."""
    if isinstance(given, kinds):
        return [given]
    if isinstance(given, Mapping | str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{where}: {name}: expected {expected}; got {shown(given)}")
    found = list(given)
    for each in found:
        expect(where, name, each, kinds, expected)
    return found


def shown(given: Any) -> str:
    """The argument in a few words."""
    if isinstance(given, str | int | float | bool | Path | type(None) | type):
        text = repr(given)
        return text if len(text) <= 60 else f"{text[:56]} ..."
    name = type(given).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
