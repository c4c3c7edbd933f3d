"""Scaling: which pods go first when a workload has too many.

Mirrors ActivePodsWithRanks of pkg/controller/controller_utils.go, as far as pods here differ: none of them is unready
or restarts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...api.pod import Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def first_to_go(pods: Iterable[Pod]) -> list[Pod]:
    """The pods, those to delete first in front: waiting ones, cheap ones, ones that share a node, young ones."""
    ranked = list(pods)
    sharing = Counter(pod.node_name for pod in ranked)
    ranked.reverse()  # of equals the one that came last goes first
    ranked.sort(key=lambda pod: pod.status.start_time or "", reverse=True)
    ranked.sort(key=lambda pod: (bool(pod.node_name), deletion_cost(pod), -sharing[pod.node_name]))
    return ranked


def deletion_cost(pod: Pod) -> int:
    """What the pod says about how much its deletion costs, compared with its like."""
    text = pod.annotations.get(DELETION_COST, "0")
    return int(text) if text.removeprefix("-").isdecimal() else 0
