"""Group rows: the pod groups of the page, with their members, where these are and why some wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from ..api.pod import Pod
from ..api.pod_groups import PodGroup
from ..cluster.objects.object_index import WatchHandler
from .history import History
from .value_numbers import NONE, Tree


class PageGroup(msgspec.Struct, frozen=True):
    """A pod group: where its members are, and why some wait."""

    namespace: str
    name: str
    has_started: bool
    place: str
    cause: str
    uids: Sequence[str]
    """Of its members."""


class PageCluster(Protocol):
    """The page's view of a cluster."""

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind`, in `namespace` when given."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """One object, or None."""

    def watch(self, handler: WatchHandler, replay: bool = True) -> None:
        """Notify `handler` of every change; with `replay`, first of all existing objects."""


def groups_tree(groups: Iterable[Any], history: History) -> list[Tree]:
    """The groups, which have the fields of a PageGroup, as the page reads them."""
    return [
        {
            "namespace": group.namespace,
            "name": group.name,
            "started": group.has_started,
            "place": group.place,
            "cause": group.cause,
            "pods": [n for uid in group.uids if (n := history.number_of(uid)) != NONE],
        }
        for group in groups
    ]


def live_groups(cluster: PageCluster) -> Iterator[PageGroup]:
    """The groups of a cluster as they are now; the cause is the scheduler's text in the condition of a group."""
    groups = [group for group in cluster.list("PodGroup") if isinstance(group, PodGroup)]
    if not groups:
        return
    members: dict[tuple[str, str], list[Pod]] = {}
    for pod in cluster.list("Pod"):
        reference = pod.spec.scheduling_group
        if reference is not None and not pod.is_finished:
            members.setdefault((pod.namespace, reference.pod_group_name), []).append(pod)
    for group in groups:
        pods = members.get((group.namespace, group.name), [])
        condition = group.scheduled
        has_started = condition is not None and condition.status == "True"
        yield PageGroup(
            group.namespace,
            group.name,
            has_started,
            _place(cluster, group, pods),
            "" if condition is None or has_started else condition.message,
            [pod.uid for pod in pods],
        )


def _place(cluster: PageCluster, group: PodGroup, pods: Sequence[Pod]) -> str:
    """The domains of the group's topology constraint that its members are in; without one, the number of nodes."""
    names = sorted({pod.node_name for pod in pods if pod.node_name})
    if not names:
        return ""
    if not group.topology_keys:
        return names[0] if len(names) == 1 else f"{len(names)} nodes"
    key = group.topology_keys[0]
    nodes = [cluster.get("Node", "", name) for name in names]
    domains = sorted({node.labels.get(key, "") for node in nodes if node is not None})
    return f"{key} {', '.join(domains)}"
