"""Scale in: which pods are deleted first when a workload has too many.

Mirrors ActivePodsWithRanks of pkg/controller/controller_utils.go, as far as pods here differ: none
of them is unready or restarts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...api.pod import Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def first_to_go(pods: Iterable[Pod]) -> list[Pod]:
    """The pods in deletion order: pending ones, cheap ones, ones that share a node, young ones."""
    ranked = list(pods)
    sharing = Counter(pod.node_name for pod in ranked)
    ranked.reverse()  # of equal ones the newest is deleted first
    ranked.sort(key=lambda pod: pod.status.start_time or "", reverse=True)
    ranked.sort(key=lambda pod: (bool(pod.node_name), deletion_cost(pod), -sharing[pod.node_name]))
    return ranked


def deletion_cost(pod: Pod) -> int:
    """The pod's deletion cost relative to the others."""
    text = pod.annotations.get(DELETION_COST, "0")
    return int(text) if text.removeprefix("-").isdecimal() else 0
