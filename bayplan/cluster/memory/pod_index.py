"""Pod index: pods by name, controller and node, with their phase."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

import msgspec

from ...api.meta import KubeObject
from ...api.pod import Pod
from ...api.selectors import NAME_FIELD, LabelSelector
from ...api.workloads import Job, JobStatus
from .created_names import make_name

MORE_UNREAD = 50_000
"""Number of changes of pods after which the index is made even if it was not read."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

PodKey = tuple[str, str]
"""Namespace and name of a pod."""
OwnerKey = tuple[str, str, str]
"""Kind, namespace and name of a controller."""


class OwnedPods(msgspec.Struct):
    """The pods of one controller, by name. Finished ones are only counted, also after their
    deletion."""

    active: dict[str, Pod] = msgspec.field(default_factory=dict)
    leaving: dict[str, Pod] = msgspec.field(default_factory=dict)
    succeeded: int = 0
    failed: int = 0
    done_indexes: set[int] = msgspec.field(default_factory=set)
    """Indexes of the pods of an indexed job that succeeded."""
    vacated: set[str] | None = None
    """Nodes that lost their last pod of this set since the daemon controller read it; None if all nodes have to be
    checked.
    """
    _by_target: Counter[str] | None = None
    """Made on first use: only daemons are counted by node."""

    def put(self, pod: Pod) -> None:
        """Add or count a pod according to its phase; an earlier one of its name is dropped."""
        name = pod.name
        self.drop(name)
        if not pod.is_finished:
            (self.leaving if pod.is_terminating else self.active)[name] = pod
            if self._by_target is not None:
                self._by_target[target_node(pod)] += 1
        elif pod.status.phase == "Succeeded":
            self.succeeded += 1
            self.done_indexes.add(completion_index(pod))
        else:
            self.failed += 1

    def count_gone(self, status: JobStatus) -> None:
        """Count the finished pods of a job that only its status still has."""
        self.succeeded = max(self.succeeded, status.succeeded)
        self.failed = max(self.failed, status.failed)
        self.done_indexes |= status.done_indexes

    @property
    def has_any(self) -> bool:
        """Whether there are pods, or were some that have finished."""
        return bool(self.active or self.leaving or self.succeeded or self.failed)

    def drop(self, name: str) -> None:
        """Remove the pod."""
        pod = self.active.pop(name, None) or self.leaving.pop(name, None)
        if pod is not None and self._by_target is not None:
            target = target_node(pod)
            self._by_target[target] -= 1
            if not self._by_target[target]:
                del self._by_target[target]
                if self.vacated is not None:
                    self.vacated.add(target)

    def by_target(self) -> Mapping[str, int]:
        """Number of active and leaving pods with a node as their `target_node`."""
        if self._by_target is None:
            self._by_target = Counter(map(target_node, self))
        return self._by_target

    def __iter__(self) -> Iterator[Pod]:
        """The pods that are not finished."""
        yield from self.active.values()
        yield from self.leaving.values()


class PodsByNode:
    """Pods by the node that they are on or wait for (`target_node`)."""

    def __init__(self) -> None:
        self._ranks: dict[PodKey, int] = {}
        """In the order in which the pods were added."""
        self._last_rank = 0
        self._keys: dict[str, set[PodKey]] = {}

    def put(self, key: PodKey, before: Pod | None, pod: Pod) -> None:
        """Add a pod, or replace the one before it."""
        if before is None:
            self._last_rank += 1
            self._ranks[key] = self._last_rank
        elif before.node_name == pod.node_name and before.spec is pod.spec:
            return
        else:
            self._take_off(key, before)
        node = target_node(pod)
        if node:
            self._keys.setdefault(node, set()).add(key)

    def remove(self, key: PodKey, pod: Pod) -> None:
        """Remove a pod."""
        self._take_off(key, pod)
        del self._ranks[key]

    def on(self, node: str) -> list[PodKey]:
        """The pods of a node, in the order in which they were added."""
        return sorted(self._keys.get(node, ()), key=self._ranks.__getitem__)

    def _take_off(self, key: PodKey, pod: Pod) -> None:
        node = target_node(pod)
        keys = self._keys.get(node)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._keys[node]


class PodIndex:
    """Pods by name, by controller and by node; made when it is first read, because many runs have no controller.

    A controller is identified by kind and name, not by uid: manifests often have no uids, and two
    controllers of one kind and name cannot exist at a time.
    """

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._pods: dict[tuple[str, str], Pod] = {}
        self._by_node: PodsByNode | None = None
        """Made on first use: most runs change no node."""
        self._owned: defaultdict[OwnerKey, OwnedPods] = defaultdict(OwnedPods)
        self._orphans: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        self._adopted: dict[tuple[str, str], OwnerKey] = {}
        self._searched: set[OwnerKey] = set()
        self._newly_adopted: list[Pod] = []
        self._numbers: defaultdict[OwnerKey, dict[str, Iterator[int]]] = defaultdict(dict)
        """By controller and prefix: the next number of a name."""
        self._unread: list[Pod] | None = list(pods)
        """The pods to add, in order, until the index is read for the first time; None since then."""
        self._most_unread = len(self._unread) + MORE_UNREAD

    def _read(self) -> dict[PodKey, Pod]:
        """The pods by name; all that were added are in the index afterwards."""
        if self._unread is not None:
            unread, self._unread = self._unread, None
            for pod in unread:
                self.add(pod)
        return self._pods

    def add(self, pod: Pod) -> OwnerKey | None:
        """Add or update a pod; returns its controller."""
        if self._unread is not None and len(self._unread) < self._most_unread:
            self._unread.append(pod)
            return self.owner_of(pod)
        self._read()
        key = pod.namespace, pod.name
        before = self._pods.get(key)
        self._pods[key] = pod
        if self._by_node is not None:
            self._by_node.put(key, before, pod)
        owner = self.owner_of(pod)
        if before is not None and before.owner_references is not pod.owner_references:
            self._leave(before, owner)
        if owner is None:
            self._orphans[pod.namespace][pod.name] = pod
        elif before is None or not before.is_finished:  # a finished one was counted
            self._owned[owner].put(pod)
        return owner

    def _leave(self, before: Pod, owner: OwnerKey | None) -> None:
        """Handle a change of the pod's controller."""
        former = self.owner_of(before)
        if former is not None and former != owner:
            self._owned[former].drop(before.name)
        elif former is None and owner is not None:
            self._orphans[before.namespace].pop(before.name, None)

    def on_node(self, name: str) -> list[Pod]:
        """The pods on a node and those that wait for it, in the order in which they were added."""
        if self._by_node is None:
            self._by_node = PodsByNode()
            for key, pod in self._read().items():
                self._by_node.put(key, None, pod)
        return [self._pods[key] for key in self._by_node.on(name)]

    def remove(self, pod: Pod) -> OwnerKey | None:
        """Remove a pod; returns its controller."""
        owner = self.owner_of(pod)
        key = pod.namespace, pod.name
        before = self._read().pop(key, None)
        if before is not None and self._by_node is not None:
            self._by_node.remove(key, before)
        self._adopted.pop((pod.namespace, pod.name), None)
        if owner is None:
            self._orphans[pod.namespace].pop(pod.name, None)
        else:
            self._owned[owner].drop(pod.name)
        return owner

    def get(self, namespace: str, name: str) -> Pod | None:
        return self._read().get((namespace, name))

    def owner_of(self, pod: Pod) -> OwnerKey | None:
        """The controller that owns or adopted the pod; None for none."""
        owner = pod.controller
        if owner is None:
            return self._adopted.get((pod.namespace, pod.name))
        return owner.kind, pod.namespace, owner.name

    def owned_by(self, owner: KubeObject, selector: LabelSelector | None = None) -> OwnedPods:
        """The pods of `owner`: those it owns, and orphans that its selector matched at the first
        call."""
        self._read()
        key = (owner.kind, owner.namespace, owner.name)
        if selector is not None and not selector.is_empty and key not in self._searched:
            self._searched.add(key)
            orphans = self._orphans[owner.namespace]
            for pod in [pod for pod in orphans.values() if selector.matches(pod.labels)]:
                del orphans[pod.name]
                self._adopted[pod.namespace, pod.name] = key
                self._owned[key].put(pod)
                self._newly_adopted.append(pod)
        if isinstance(owner, Job) and key not in self._searched:
            self._searched.add(key)
            self._owned[key].count_gone(owner.status)
        return self._owned[key]

    def free_names(self, owner: KubeObject, prefix: str) -> Iterator[str]:
        """Unused names for the next pods of `owner`; each is to be used before the next is drawn."""
        path = f"{owner.kind}/{owner.key}/{prefix}"
        numbers = self._numbers[owner.kind, owner.namespace, owner.name]
        for number in numbers.setdefault(prefix, count()):
            name = make_name(prefix, f"{path}/{number}")
            if self.get(owner.namespace, name) is None:
                yield name

    def take_adopted(self) -> list[Pod]:
        """The pods adopted since the last call."""
        adopted, self._newly_adopted = self._newly_adopted, []
        return adopted

    def forget_owner(self, key: OwnerKey) -> list[Pod]:
        """Remove a controller and return its remaining pods."""
        self._read()
        self._searched.discard(key)
        return list(self._owned.pop(key, ()))

    def forget_names(self, key: OwnerKey) -> None:
        """Reset the names of the pods of a deleted controller."""
        self._numbers.pop(key, None)


def target_node(pod: Pod) -> str:
    """The node that a pod is on, or that its affinity names, as that of a daemon does; empty for none."""
    if pod.node_name:
        return pod.node_name
    required = pod.spec.required_node_selector
    for term in required.terms if required else ():
        for field in term.fields:
            if field.key == NAME_FIELD and field.operator == "In" and field.values:
                return field.values[0]
    return ""


def is_there(pod: Pod) -> bool:
    """Whether the pod is neither finished nor terminating, as in IsPodActive."""
    return not pod.is_finished and not pod.is_terminating


def is_healthy(pod: Pod) -> bool:
    """Whether the pod runs and is ready; without a Ready condition it counts as ready."""
    if not pod.node_name or not is_there(pod):
        return False
    ready = pod.status.condition("Ready") if pod.status.conditions else None
    return ready is None or ready.status == "True"


def is_ready(pod: Pod) -> bool:
    """Whether the pod has a true Ready condition, and is not terminating."""
    ready = pod.status.condition("Ready")
    return not pod.is_terminating and ready is not None and ready.status == "True"


def completion_index(pod: Pod) -> int:
    """The number of a pod of an indexed job; -1 for others."""
    text = pod.annotations.get(COMPLETION_INDEX) or pod.labels.get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else -1
