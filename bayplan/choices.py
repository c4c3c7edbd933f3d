"""Choices: names and defaults of options that the commands, the notebook and the library share.

Imports nothing heavy: `--help` and the completion of shells read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

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
    """As it was: each recorded decision is judged on its own."""
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
