"""Daemons: the nodes of a daemon set, and how its pods are bound to them.

Mirrors pkg/controller/daemon/daemon_controller.go and util/daemonset_util.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from ...api.affinity import Affinity, NodeAffinity
from ...api.node import Node
from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.selectors import (
    NAME_FIELD,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    matches_map,
)
from ...api.taints import NO_EXECUTE, NO_SCHEDULE, Toleration, find_untolerated
from ...api.workloads import DaemonSet, PodTemplateSpec
from ..objects.object_index import ControllerCluster
from .budgets import share_of
from .pod_index import OwnedPods, target_node

GENERATION = "pod-template-generation"
REVISION_HASH, ON_DELETE = "controller-revision-hash", "OnDelete"
TOLERATED = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def make_spec(spec: PodSpec) -> PodSpec:
    """The spec with the tolerations of every daemon."""
    wanted = TOLERATED + ((TOLERATED_ON_HOST_NETWORK,) if spec.host_network else ())
    tolerations = spec.tolerations or ()
    for key, effect in wanted:
        added = Toleration(key=key, operator="Exists", effect=effect)
        others = tuple(t for t in tolerations if replace(t, toleration_seconds=None) != added)
        # One that differs only in its seconds is replaced in place; the order does not matter.
        tolerations = (*others, added)
    return replace(spec, tolerations=tolerations)


def without_daemon(owned: OwnedPods, cluster: ControllerCluster, has_changed: bool) -> list[Node]:
    """The nodes that none of the pods is on or waits for, in order.

    Nodes that did not match the last time are left out, unless they or the daemon set have changed.
    """
    taken, vacated = owned.by_target(), owned.vacated
    owned.vacated = set()
    if has_changed or vacated is None:
        return [node for node in cluster.list("Node") if node.name not in taken]
    names = {name for name in vacated if name not in taken}
    if len(names) > 1:
        return [node for node in cluster.list("Node") if node.name in names]
    found = (cluster.get("Node", "", name) for name in names)
    return [node for node in found if node is not None]


def is_eligible(node: Node, spec: PodSpec, node_name: str) -> bool:
    """Whether a daemon with `spec` should run on `node`, regardless of free resources."""
    tolerations = spec.tolerations or ()
    return _is_picked(node, spec, node_name) and find_untolerated(node.taints, tolerations) is None


def count_wanted(daemon_set: DaemonSet, nodes: Iterable[Node]) -> int:
    """The number of nodes on which the daemon set wants a pod."""
    template = daemon_set.spec.template
    spec = make_spec(template.spec)
    return sum(is_eligible(node, spec, template.node_name) for node in nodes)


def misplaced(
    pods: Iterable[Pod],
    template: PodTemplateSpec,
    find: Callable[[str, str, str], Node | None],
) -> list[Pod]:
    """The daemons that may not stay on their nodes. Only a NoExecute taint evicts one."""
    spec, found = make_spec(template.spec), list[Pod]()
    for pod in pods:
        node = find("Node", "", target_node(pod))
        if (
            node is None
            or not _is_picked(node, spec, template.node_name)
            or find_untolerated(node.taints, spec.tolerations or (), (NO_EXECUTE,)) is not None
        ):
            found.append(pod)
    return found


def _is_picked(node: Node, spec: PodSpec, node_name: str) -> bool:
    if node_name and node_name != node.name:
        return False
    if not matches_map(spec.node_selector, node.labels):
        return False
    required = spec.required_node_selector
    return required is None or required.matches(node.labels, node.name)


def tie_to_node(spec: PodSpec, node_name: str) -> PodSpec:
    """The spec with a required node affinity for one node in place of any other."""
    field = Requirement(key=NAME_FIELD, operator="In", values=(node_name,))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    affinity = spec.affinity or Affinity()
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=selector,
    )
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))


class OutdatedDaemons(NamedTuple):
    """Pods of an earlier template: those to delete now, the others, and the nodes that get a new pod in addition to an
    old one.
    """

    now: list[Pod]
    later: list[Pod]
    surge: list[str]


def outdated(
    daemon_set: DaemonSet,
    pods: OwnedPods,
    missing: int,
    revision: str,
    is_available: Callable[[Pod], bool],
) -> OutdatedDaemons:
    """The pods that are not of `revision`.

    As many as may be unavailable are deleted now, unavailable ones first; `missing` is the number of nodes without a
    pod, which count as unavailable. With `maxSurge`, a pod is deleted when a new one is available on its node; at most
    that many nodes have both.
    """
    strategy = daemon_set.spec.update_strategy
    if strategy is not None and strategy.type == ON_DELETE:
        return OutdatedDaemons([], [], [])
    active = list(pods.active.values())
    old = [pod for pod in active if pod.labels.get(REVISION_HASH, revision) != revision]
    limits = strategy.rolling_update if strategy is not None else None
    surge = share_of((limits.max_surge if limits is not None else None) or 0, len(active))
    if surge > 0:
        return _surging(active, old, surge, is_available)
    most = share_of((limits.max_unavailable if limits is not None else None) or 0, len(active))
    unavailable = sum(not is_available(pod) for pod in active) + len(pods.leaving) + missing
    idle, running = ([pod for pod in old if is_available(pod) is so] for so in (False, True))
    number = max(max(most, 1) - unavailable, 0)
    return OutdatedDaemons([*idle, *running[:number]], running[number:], [])


def _surging(
    active: Iterable[Pod], old: list[Pod], most: int, is_available: Callable[[Pod], bool]
) -> OutdatedDaemons:
    """Old pods are deleted when the new pod of their node is available; at most `most` nodes have both."""
    gone = {id(pod) for pod in old}
    new = {target_node(pod): pod for pod in active if id(pod) not in gone}
    now, later = list[Pod](), list[Pod]()
    idle, running = list[str](), list[str]()
    surging = 0
    for pod in old:
        name = target_node(pod)
        successor = new.get(name)
        if successor is not None and is_available(successor):
            now.append(pod)
            continue
        later.append(pod)
        if successor is not None:
            surging += 1
        else:
            (running if is_available(pod) else idle).append(name)
    room = max(most - surging - len(idle), 0)
    return OutdatedDaemons(now, later, [*idle, *running[:room]])
