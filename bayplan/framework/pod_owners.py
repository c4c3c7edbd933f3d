"""Pod owners: which pods belong with a pod, by the Services and the controller that select it.

Mirrors pkg/scheduler/framework/plugins/helper/spread.go. It is in `framework` because several plugins spread or gather
the pods of a Service, and plugins do not import each other.
"""

from __future__ import annotations

from typing import Any

from ..api.pod import Pod
from ..api.selectors import LabelSelector, Requirement
from ..api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from .lister import Follower, Lister, ObjectKey

CONTROLLERS = {kind.kind: kind for kind in (ReplicationController, ReplicaSet, StatefulSet)}
SELECTING_KINDS = (Service.kind, *CONTROLLERS)
"""The kinds that `default_selector` reads."""


class SelectorVersion:
    """A version of the selectors that `default_selector` reads. A controller that is scaled keeps its selector."""

    def __init__(self) -> None:
        self._lister: Lister | None = None
        self._seen, self._version = -1, 0

    def of(self, lister: Lister) -> int:
        """A value that changes when a Service or a controller is added or deleted, or its selector changes."""
        if lister is not self._lister:
            self._lister, self._follower = lister, Follower(lister)
            self._seen = -1
            self._selectors: dict[ObjectKey, Any] = {}
        seen = lister.version_of(*SELECTING_KINDS)
        if seen != self._seen:
            self._seen = seen
            self._follow(lister)
        return self._version

    def _follow(self, lister: Lister) -> None:
        changes = self._follower.changes()
        if changes is None:
            self._version += 1
            self._selectors = {
                ObjectKey(kind, obj.namespace, obj.name): obj.spec.selector
                for kind in SELECTING_KINDS
                for obj in lister.list(kind)
            }
            return
        for key in changes:
            if key.kind not in SELECTING_KINDS:
                continue
            found = lister.get(*key)
            if found is None:
                self._version += key in self._selectors
                self._selectors.pop(key, None)
            elif key not in self._selectors or self._selectors[key] != found.spec.selector:
                self._selectors[key] = found.spec.selector
                self._version += 1


def services_of(pod: Pod, lister: Lister) -> list[Service]:
    """The Services that select `pod`, in the order of the lister; one without a selector selects nothing."""
    labels = pod.labels
    return [
        service
        for service in lister.list("Service", pod.namespace)
        if service.spec.selector is not None
        and all(labels.get(key) == value for key, value in service.spec.selector.items())
    ]


def default_selector(pod: Pod, lister: Lister) -> LabelSelector:
    """The pods that belong with `pod`: those its Services and its controller select."""
    labels: dict[str, str] = {}
    for service in services_of(pod, lister):
        labels.update(service.selector)
    more: tuple[Requirement, ...] = ()
    owner = pod.controller
    kind = CONTROLLERS.get(owner.kind) if owner is not None else None
    if owner is not None and kind is not None and owner.api_version == kind.api_version:
        found = lister.get(owner.kind, pod.namespace, owner.name)
        selector = found.spec.selector if found is not None else None
        if isinstance(selector, LabelSelector):
            usable = next(selector.problems(), None) is None
            more = selector.requirements if usable else ()
        else:
            labels.update(selector or {})
    return LabelSelector(match_labels=labels, match_expressions=more)
