"""Pending pods: pods without a node, grouped by their workload and by the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ..api.resources import is_extended
from ..api.text.refusal_message import refusals_of
from ..api.workloads import BARE, WorkloadKey, workload_key
from .outcomes import PodResult
from .plain_part import PlainPart


class PendingGroup(PlainPart, msgspec.Struct):
    """Pods of one workload that wait for the same reasons."""

    PLAIN = "workload kind pods=pod_count pending=waiting of devices refusals@reason,nodes message"

    workload: str
    """`namespace/name`; for pods without an owner, the name of the first."""
    kind: str
    """The kind of the workload; `Pod` for pods without an owner, which form a group per namespace, reason and amounts
    of extended resources."""
    pods: list[str]
    """`namespace/name` of each."""
    of: int
    """Number of pods that the workload has."""
    waiting: int
    """Number of waiting pods of the workload, for any reason."""
    message: str
    """The message of the last of them."""
    refusals: dict[str, int] = msgspec.field(default_factory=dict)
    """Number of nodes per reason, most first; empty when the pods wait for something else."""
    devices: dict[str, int] = msgspec.field(default_factory=dict)
    """The extended resources that each of them requests; only of pods without an owner."""

    @property
    def pod_count(self) -> int:
        """The number of pods."""
        return len(self.pods)


def group_pending(
    results: Iterable[PodResult], sizes: Mapping[WorkloadKey, int]
) -> list[PendingGroup]:
    """The groups, in the order of their first pods; `sizes` has the number of pods by namespace, kind and name."""
    groups: dict[tuple[WorkloadKey, object], PendingGroup] = {}
    waiting: Counter[WorkloadKey] = Counter()
    for result in results:
        pod, message = result.pod, result.attempt.message
        key = workload_key(pod)
        waiting[key] += 1
        refusals = refusals_of(message)
        devices = {} if key[2] else {r: n for r, n in pod.requests.items() if is_extended(r)}
        why = (frozenset(refusals) or message.replace(pod.key, ""), tuple(devices.items()))
        group = groups.get((key, why))
        if group is None:
            name = f"{pod.namespace}/{key[2] or pod.name}"
            group = PendingGroup(name, key[1], [], sizes.get(key, 0), 0, message, devices=devices)
            groups[key, why] = group
        group.pods.append(pod.key)
        group.message, group.refusals = message, refusals
    for (key, _), group in groups.items():
        group.waiting = waiting[key] if group.kind != BARE else len(group.pods)
        group.of = max(group.of, group.waiting) if group.kind != BARE else len(group.pods)
    # The groups of a workload follow each other.
    places = {key: i for i, key in reversed([*enumerate(key for key, _ in groups)])}
    return [group for _, group in sorted(groups.items(), key=lambda each: places[each[0][0]])]
