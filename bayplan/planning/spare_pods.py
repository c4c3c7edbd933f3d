"""Spare pods: copies of pods for which a plan has room in addition, so that it holds with any seed.

The scheduler draws among nodes with equal scores, so the room that is left for the last pods differs from seed to seed.
Pods that wait with some seeds only are few and always the same: large ones, and late ones that must be in a certain
zone. A fleet that has room for some more of them with each of its seeds has room for them with others, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..api.meta import OwnerReference
from ..api.pod import Pod
from ..api.workloads import workload_of
from ..cluster.memory.absent_owners import successor_of
from ..cluster.objects.object_index import ClusterObject
from .node_probe import Probe, class_key

OWNER = OwnerReference(
    api_version="bayplan.dev/v1", kind="SparePod", name="spare", uid="spare", controller=True
)
"""Keeps the controllers of the workload from counting spare pods as theirs."""
MOST_COPIES = 20


class SparePod(NamedTuple):
    """A copy of a pod."""

    origin: tuple[str, str, str]
    """Kind, namespace and name of the pod, or of the workload that creates it."""
    pod: Pod


class TiedPods:
    """The pods that waited on a fleet with some seed, though none did with the first one."""

    def __init__(self) -> None:
        self._weights: defaultdict[str, float] = defaultdict(float)
        self._pods: dict[str, Pod] = {}

    def note(self, pods: Sequence[Pod]) -> None:
        """Record the pods that wait on one fleet with one seed; the fewer they are, the more each counts."""
        for pod in pods:
            self._weights[pod.key] += 1 / len(pods)
            self._pods[pod.key] = pod

    def copies(self, probe: Probe, worth: NDArray[np.float64], most: float) -> list[SparePod]:
        """Copies of these pods, in turn, those that waited most often first, up to a total worth of `most`.

        `worth` is per class. Pods with volumes or claims of their own, or in a pod group, are left out.
        """
        known = probe.numbers
        pods = [
            one for one in self._pods.values() if _can_be_copied(one) and class_key(one) in known
        ]
        pods.sort(key=lambda pod: self._weights[pod.key], reverse=True)
        values = [float(worth[known[class_key(pod)]]) for pod in pods]
        found: list[SparePod] = []
        while len(found) < MOST_COPIES:
            fitting = [i for i, value in enumerate(values) if 0 < value <= most]
            if not fitting:
                break
            for i in fitting:
                if values[i] <= most and len(found) < MOST_COPIES:
                    most -= values[i]
                    found.append(SparePod(_origin(pods[i]), _copy(pods[i], len(found))))
        return found


def with_spare_pods(
    workload: Sequence[ClusterObject], spare: Sequence[SparePod]
) -> list[ClusterObject]:
    """The workload with each spare pod behind the pod or the workload that it is a copy of.

    At the end of the queue it would need another fleet: no node is empty then.
    """
    copies: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
    for one in spare:
        copies[one.origin].append(one.pod)
    found: list[ClusterObject] = []
    for obj in workload:
        found.append(obj)
        found += copies.pop((obj.kind, obj.namespace, obj.name), ())
    return [*found, *chain.from_iterable(copies.values())]


def _origin(pod: Pod) -> tuple[str, str, str]:
    kind, name = workload_of(pod)
    return kind, pod.namespace, name


def _copy(pod: Pod, number: int) -> Pod:
    return successor_of(pod).replace(name=f"spare-{number}", owner_references=(OWNER,))


def _can_be_copied(pod: Pod) -> bool:
    spec = pod.spec
    return not spec.volumes and not spec.resource_claims and spec.scheduling_group is None
