"""Group outcomes: the result of each pod group in a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..api.node import Node
from ..api.pod import Pod
from ..api.pod_groups import PodGroup, pod_group_of
from ..cluster.memory.object_store import MemoryCluster
from ..scheduler import GroupAttempt, Outcome, cause_of
from .outcomes import PodResult
from .plain_part import PlainPart

Key = tuple[str, str]


class GroupOutcome(PlainPart, msgspec.Struct):
    """A pod group, its members so far, and why it waits; times are seconds on the simulation's clock."""

    PLAIN = (
        "namespace name minCount members placed started=has_started created=created_s~"
        " startedAt=started_s~ topologyKey? domains nodes cause message placements"
    )

    namespace: str
    name: str
    group: PodGroup | None
    """The object; None when there is none, or it was deleted."""
    members: int = 0
    nodes: Counter[str] = msgspec.field(default_factory=Counter)
    """Placed members per node."""
    domains: Counter[str] = msgspec.field(default_factory=Counter)
    """Placed members per value of the label in the topology constraint."""
    created_s: float = 0.0
    started_s: float | None = None
    """Time when enough members had a node; None if too few have one, or they had one at the start."""
    uids: list[str] = msgspec.field(default_factory=list)
    """Uids of the members, including finished ones."""
    cause: str = ""
    """Reason why members wait; empty if no member waits."""
    last: GroupAttempt | None = None
    """The last scheduling cycle of the group; None when it had none."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def placed(self) -> int:
        """Number of members with a node."""
        return self.nodes.total()

    @property
    def min_count(self) -> int:
        """The number of members that start together; 0 for a group that is no gang."""
        return self.group.min_count if self.group is not None else 0

    @property
    def topology_key(self) -> str:
        """The label whose value all members share; empty without a constraint."""
        keys = self.group.topology_keys if self.group is not None else ()
        return keys[0] if keys else ""

    @property
    def has_started(self) -> bool:
        """Whether enough members have a node."""
        return self.placed >= max(self.min_count, 1)

    @property
    def place(self) -> str:
        """Places of the members, in words; empty if none is placed."""
        if not self.nodes:
            return ""
        nodes = f"on {len(self.nodes)} node{'s' * (len(self.nodes) != 1)}"
        if self.domains:
            return f"in {self.topology_key} {', '.join(sorted(self.domains))}, {nodes}"
        return nodes

    @property
    def message(self) -> str:
        """The message of the last cycle."""
        return "" if self.last is None else self.last.status.message

    @property
    def placements(self) -> list[dict[str, Any]]:
        """The placements that the last cycle tried, as plain data."""
        return placement_entries(self.last)


def placement_entries(account: GroupAttempt | None) -> list[dict[str, Any]]:
    """The placements that were tried, as plain data; scores are there when several were possible."""
    return [
        {
            "name": trial.placement.name,
            "nodes": len(trial.placement.rows),
            "fits": trial.result.status.is_success,
            "members": len(trial.result.placed),
            "total": trial.total,
            "scores": trial.scores or {},
            "chosen": account is not None and trial.placement is account.chosen,
            "message": trial.result.status.message,
        }
        for trial in (account.placements if account is not None else ())
    ]


def group_outcomes(
    results: Iterable[PodResult], cluster: MemoryCluster, nodes: Mapping[str, Node]
) -> list[GroupOutcome]:
    """The groups of the pods with a result, of those that were running, and of the PodGroup objects."""
    tried: dict[Key, list[PodResult]] = {}
    found: dict[Key, GroupOutcome] = {}
    for group in cluster.list("PodGroup"):
        found[group.namespace, group.name] = GroupOutcome(group.namespace, group.name, group)
    for result in results:
        key = _key_of(result.pod)
        if key is not None:
            found.setdefault(key, GroupOutcome(*key, None))
            tried.setdefault(key, []).append(result)
    has_result = {result.pod.uid for own in tried.values() for result in own}
    for pod in cluster.list("Pod"):
        key = _key_of(pod)
        if key is not None and pod.node_name and pod.uid not in has_result:
            outcome = found.setdefault(key, GroupOutcome(*key, None))
            outcome.uids.append(pod.uid)
            _note_place(outcome, pod.node_name, nodes)
    for key, own in tried.items():
        _note_results(found[key], own, nodes)
    return list(found.values())


def _key_of(pod: Pod) -> Key | None:
    name = pod_group_of(pod)
    return None if name is None else (pod.namespace, name)


def _note_results(
    outcome: GroupOutcome, results: list[PodResult], nodes: Mapping[str, Node]
) -> None:
    before = outcome.placed
    times = sorted(result.time_s for result in results if result.is_placed)
    for result in results:
        outcome.uids.append(result.pod.uid)
        if result.is_placed:
            _note_place(outcome, result.attempt.node_name, nodes)
        else:
            outcome.members += 1
    needed = max(outcome.min_count, 1) - before
    if 0 < needed <= len(times):
        outcome.started_s = times[needed - 1]
    outcome.created_s = max(result.created_s for result in results)
    pending = [result.attempt for result in results if not result.is_placed]
    account = next((a.group for a in reversed(pending) if a.group is not None), None)
    outcome.last = account or results[-1].attempt.group
    if account is not None:
        outcome.cause = cause_of(account, outcome.group, outcome.placed) or account.status.message
    if pending and not outcome.cause:
        outcome.cause = pending[0].message
    if pending and pending[0].outcome is Outcome.GATED:
        outcome.cause = gate_cause(pending[0].message, outcome.group, outcome.members)


def _note_place(outcome: GroupOutcome, node_name: str, nodes: Mapping[str, Node]) -> None:
    outcome.members += 1
    outcome.nodes[node_name] += 1
    node, key = nodes.get(node_name), outcome.topology_key
    if key and node is not None and key in node.labels:
        outcome.domains[node.labels[key]] += 1


def gate_cause(message: str, group: PodGroup | None, members: int) -> str:
    """Reason why members are held back before they are tried."""
    if group is None:
        return f"{message} (there is no such PodGroup)"
    if members < group.min_count:
        return f"{message} ({members} of {group.min_count} exist)"
    return message
