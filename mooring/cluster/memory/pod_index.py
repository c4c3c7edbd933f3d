"""Pod index: which pods there are, and which controller made them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.selectors import LabelSelector


class PodIndex:
    """Pods by name and by controller.

    A controller is told by kind and name, not by uid: manifests often come without uids, and
    two controllers of one kind and name cannot be there at a time.
    """

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._pods: dict[tuple[str, str], Pod] = {}
        self._owned: defaultdict[tuple[str, str, str], dict[str, Pod]] = defaultdict(dict)
        self._orphans: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        for pod in pods:
            self.add(pod)

    def add(self, pod: Pod) -> None:
        self._pods[pod.namespace, pod.name] = pod
        self._siblings(pod)[pod.name] = pod

    def remove(self, pod: Pod) -> None:
        self._pods.pop((pod.namespace, pod.name), None)
        self._siblings(pod).pop(pod.name, None)

    def get(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get((namespace, name))

    def owned_by(self, owner: KubeObject, selector: LabelSelector | None = None) -> list[Pod]:
        """The pods of `owner`: those that name it, and those without owner that it picks."""
        found = list(self._owned.get((owner.kind, owner.namespace, owner.name), {}).values())
        if selector is not None and not selector.is_empty:
            orphans = self._orphans.get(owner.namespace, {}).values()
            found += (pod for pod in orphans if selector.matches(pod.labels))
        return found

    def _siblings(self, pod: Pod) -> dict[str, Pod]:
        owner = pod.controller
        if owner is None:
            return self._orphans[pod.namespace]
        return self._owned[owner.kind, pod.namespace, owner.name]


def is_active(pod: Pod) -> bool:
    """Whether the pod counts as one of its controller's: neither finished nor on its way out."""
    return not pod.is_finished and not pod.is_terminating
