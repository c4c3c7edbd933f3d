"""Runner-up: changes that would let another node win, verified by the plugins.

Score functions cannot be inverted: a plugin may return anything. So changes that favour the node,
or disfavour those ahead of it, are made one kind at a time, and the pod is scored again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..api.node import HOSTNAME, Node
from ..api.pod import Pod
from ..api.taints import PREFER_NO_SCHEDULE, tolerated
from ..runtime import PluginRunError
from ..scheduler import Attempt
from ..trials import TrialCluster
from .account import Alternative, RunnerUp, ScoredNode
from .manifest_changes import ObjectChange, pointer
from .remedies.proposal import (
    Remedy,
    add,
    importance,
    leaving,
    necessary,
    plain,
    put,
    remedy,
    remove,
)
from .situation import Situation

MOST_WAYS = 3
MOST_PODS = 4
MOST_AHEAD = 3
WEIGHTS = (1, 10, 100)
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def find_runner_up(
    view: TrialCluster, pod: Pod, scores: Sequence[ScoredNode], node_name: str
) -> RunnerUp | None:
    """The changes with which `node_name`, feasible but not the best, would win; None if it is not behind."""
    totals = {node.name: node.total for node in scores}
    if node_name not in totals:
        return None
    gap = max(totals.values()) - totals[node_name]
    if gap <= 0:
        return None
    found = RunnerUp(node=node_name, gap=gap)
    contest = _Contest(view, pod, node_name)
    ahead = [node.name for node in scores if node.total >= totals[node_name]]
    for way in _ways(contest, [name for name in ahead if name != node_name]):
        changes = contest.least(way.changes) if way.changes else []
        if changes:
            whole = len(changes) == len(way.changes)
            goal = way.goal if whole else "; ".join(change.text for change in changes)
            found.ways.append(Alternative(goal=goal, changes=changes))
        if len(found.ways) == MOST_WAYS:
            break
    return found


class _Contest:
    """Scores the pod repeatedly and checks whether the node wins."""

    def __init__(self, view: TrialCluster, pod: Pod, node_name: str) -> None:
        self.view = view
        self.pod = pod
        self.situation = Situation(view, pod, node_name)
        self.node_name = node_name

    def wins(self, changes: Sequence[ObjectChange]) -> bool:
        """Whether the node has the strictly highest score once `changes` are made."""
        with self.situation.changed(changes) as pod:
            inquiry = self.view.ask(pod)
            try:
                if inquiry.has_extenders:
                    return _is_ahead(self.node_name, inquiry.decide())
                best = inquiry.decision().best
            except PluginRunError as failed:
                if failed.is_fault:
                    raise
                return False
            return best.ties == 1 and inquiry.table.names[best.row] == self.node_name

    def least(self, changes: Sequence[ObjectChange]) -> list[ObjectChange]:
        """The necessary part of `changes` for the node to win; empty when they are not enough."""
        return necessary(changes, self.wins) if self.wins(changes) else []


def _is_ahead(node_name: str, attempt: Attempt) -> bool:
    """Whether the node has more points than any other, including points of extenders."""
    totals = attempt.explanation.totals if attempt.explanation is not None else {}
    mine = totals.get(node_name)
    return mine is not None and all(
        mine > total for name, total in totals.items() if name != node_name
    )


def _ways(contest: _Contest, ahead: Sequence[str]) -> Iterator[Remedy]:
    node = contest.situation.node
    yield from _without_soft_taints(contest.pod, node)
    yield from _emptier(contest, node)
    yield from _with_images(contest.pod, node)
    yield from _preferred(contest, node)
    if len(ahead) <= MOST_AHEAD:
        nodes = [contest.view.cluster.get("Node", "", name) for name in ahead]
        yield remedy(
            "cordon the nodes that are not behind it",
            *[
                put(rival, pointer("spec", "unschedulable"), None, True, f"cordon {rival.name}")
                for rival in nodes
                if rival is not None
            ],
        )


def _without_soft_taints(pod: Pod, node: Node) -> Iterator[Remedy]:
    taints = [
        (i, taint)
        for i, taint in enumerate(node.taints)
        if taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, pod.tolerations)
    ]
    names = ", ".join(taint.key for _, taint in taints)
    changes = []
    for i, taint in reversed(taints):
        path, text = pointer("spec", "taints", i), f"remove taint {taint.key} from {node.name}"
        changes.append(remove(node, path, plain(taint), text))
    yield remedy(f"remove the taints {names} from {node.name}", *changes)


def _emptier(contest: _Contest, node: Node) -> Iterator[Remedy]:
    """Remove a few pods from the node, largest first."""
    view = contest.view
    pods = list(view.table.pods[view.table.row_of[node.name]].values())
    size = {name: amount or 1 for name, amount in node.allocatable.items()}

    def share(pod: Pod) -> float:
        return sum(amount / size.get(name, 1) for name, amount in pod.usage.items())

    pods.sort(key=lambda pod: (-share(pod), importance(pod)))
    yield leaving(f"an emptier {node.name}", pods[:MOST_PODS])


def _with_images(pod: Pod, node: Node) -> Iterator[Remedy]:
    """Add the pod's images to the node."""
    known = {name for image in node.images for name in image.names or ()}
    missing = [name for name in dict.fromkeys(pod.spec.images) if name and name not in known]
    changes = [
        add(
            node,
            pointer("status", "images", "-"),
            {
                "names": [name if ":" in name.rpartition("/")[2] else f"{name}:latest"],
                "sizeBytes": 1 << 30,
            },
            f"image {name} (1Gi) on {node.name}",
        )
        for name in missing
    ]
    yield remedy(f"the images of the pod on {node.name}", *changes)


def _preferred(contest: _Contest, node: Node) -> Iterator[Remedy]:
    """Add a preferred node affinity for the node's host name."""
    host = node.labels.get(HOSTNAME)
    if host is None:
        return
    for weight in WEIGHTS:
        term = {
            "weight": weight,
            "preference": {
                "matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [host]}]
            },
        }
        path = pointer("spec", "affinity", "nodeAffinity", PREFERRED, "-")
        text = f"prefer {HOSTNAME}={host} with weight {weight}"
        change = add(contest.pod, path, term, text)
        if contest.wins([change]):
            yield remedy(text, change)
            return
