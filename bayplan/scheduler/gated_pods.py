"""GatedPods: pods without the fields of feature gates that are off, and with those that count only when one is on.

kube-scheduler skips such a field wherever it is read; here it is dropped once, when a pod is read, so that neither the
cache nor a plugin asks for these gates. With their defaults nothing in this module is in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MethodType
from typing import Any, cast
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from ..api.pod import Pod, PodSpec, intern_spec
from ..api.pod_status import EMPTY_STATUS, PodStatus, PodWiseStatus
from ..framework.lister import ChangeFeed, ObjectKey
from ..releases.feature_gates import FeatureGates
from .event_handlers import PodReader
from .parts import SchedulerCluster

MATCH_LABEL_KEYS = "MatchLabelKeysInPodTopologySpread"
POD_LEVEL = "PodLevelResources"
POD_LEVEL_RESIZE = "InPlacePodLevelResourcesVerticalScaling"
NODE_RESOURCES = "DRANodeAllocatableResources"


class _Reader:
    """Drops the fields of gates that are off; the pods of one spec share the new one, too."""

    def __init__(self, gates: FeatureGates) -> None:
        self._drops_keys = not gates.enabled(MATCH_LABEL_KEYS)
        self._drops_resources = not gates.enabled(POD_LEVEL)
        self._drops_resize = not gates.enabled(POD_LEVEL_RESIZE)
        self._counts_claims = gates.enabled(NODE_RESOURCES)
        self._counts_by_pod = gates.release.requests_by_pod
        self.reads_specs = self._drops_keys or self._drops_resources
        self._specs: WeakKeyDictionary[PodSpec, PodSpec | None] = WeakKeyDictionary()

    def read(self, pod: Pod) -> Pod:
        """The pod, for gates about the spec, too."""
        if pod.spec.resources is not None or pod.spec.topology_spread_constraints:
            if pod.spec not in self._specs:
                self._specs[pod.spec] = self._read_spec(pod.spec)
            spec = self._specs[pod.spec]
            if spec is not None:
                pod = pod.replace(spec=spec)
        return pod if pod.status is EMPTY_STATUS else self._read_status(pod)

    def read_with_spec(self, pod: Pod) -> Pod:
        """The pod, if all fields of the spec count."""
        return pod if pod.status is EMPTY_STATUS else self._read_status(pod)

    def _read_status(self, pod: Pod) -> Pod:
        status = pod.status
        if self._drops_resize and (status.resources or status.allocated_resources):
            pod = pod.with_status(replace(status, resources=None, allocated_resources=None))
        if self._counts_by_pod and not status.counts_by_pod and _has_statuses(pod.status):
            pod = pod.with_status(convert(pod.status, PodWiseStatus))
        if self._counts_claims and status.node_allocatable_resource_claim_statuses is not None:
            pod = pod.replace(counts_claims=True, status=pod.status)
        return pod

    def _read_spec(self, spec: PodSpec) -> PodSpec | None:
        """The spec without the fields; None when it has none of them."""
        changes: dict[str, Any] = {}
        if self._drops_resources and spec.resources is not None:
            changes["resources"] = None
        constraints = spec.topology_spread_constraints or ()
        if self._drops_keys and any(c.match_label_keys for c in constraints):
            plain = tuple(replace(c, match_label_keys=None) for c in constraints)
            changes["topology_spread_constraints"] = plain
        return intern_spec(replace(spec, **changes)) if changes else None


def convert(status: PodStatus, kind: type[PodStatus]) -> PodStatus:
    """The same status as another type."""
    return kind(**{name: getattr(status, name) for name in PodStatus.__struct_fields__})


def reading_of(gates: FeatureGates) -> tuple[bool, ...]:
    """The gates and release facts that determine how pods are read; schedulers with equal ones may share a cache."""
    read = MATCH_LABEL_KEYS, POD_LEVEL, POD_LEVEL_RESIZE, NODE_RESOURCES
    return (*map(gates.enabled, read), gates.release.requests_by_pod)


WHOLE_PODS = (True, True, True, False, False)
"""Pods as they are given."""


def pod_reader(gates: FeatureGates) -> PodReader | None:
    """A reader that drops the fields of gates that are off; None if no such gate is off."""
    if reading_of(gates) == WHOLE_PODS:
        return None
    reader = _Reader(gates)
    return reader.read if reader.reads_specs else reader.read_with_spec


def _has_statuses(status: PodStatus) -> bool:
    """Whether some container has a status, or the pod has resources."""
    given = status.container_statuses or status.init_container_statuses
    return bool(given) or status.resources is not None


class GatedCluster:
    """A cluster whose pods are read through `read`; pods are written with the fields that `read` dropped."""

    def __init__(self, cluster: SchedulerCluster, read: PodReader) -> None:
        self._cluster = cluster
        self._read = read

    @property
    def version(self) -> int:
        """The number of the last change."""
        return self._cluster.version

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cluster, name)
        if isinstance(found, MethodType):
            setattr(
                self, name, found
            )  # found without this call the next time; only for methods, as values may change
        return found

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None."""
        found = self._cluster.get(kind, namespace, name)
        return self._read(found) if isinstance(found, Pod) else found

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`."""
        found = self._cluster.list(kind, namespace)
        return map(self._read, found) if kind == Pod.kind else found

    def changes_since(self, version: int) -> Iterable[ObjectKey] | None:
        """Changes after `version`; None when the cluster does not have them any more."""
        feed = getattr(self._cluster, "changes_since", None)
        return None if feed is None else cast("ChangeFeed", self._cluster).changes_since(version)

    def update(self, obj: Any) -> Any:
        """Write a changed object."""
        return self._cluster.update(self._whole(obj))

    def update_status(self, obj: Any) -> Any:
        """Write the status of a changed object."""
        return self._cluster.update_status(self._whole(obj))

    def _whole(self, obj: Any) -> Any:
        """The object with the fields that were dropped when it was read."""
        stored = self._cluster.get(obj.kind, obj.namespace, obj.name)
        if not isinstance(obj, Pod) or not isinstance(stored, Pod):
            return obj
        given = stored.status.resources, stored.status.allocated_resources
        status = replace(obj.status, resources=given[0], allocated_resources=given[1])
        if status.counts_by_pod:
            status = convert(status, PodStatus)
        return obj.replace(spec=stored.spec, status=status, counts_claims=False)
