"""Group explain: which members of a pod group fit, where, why the others do not, and what would let the group run."""

from __future__ import annotations

from collections import Counter

from ..api.node import Node
from ..api.pod import EMPTY_STATUS, Pod
from ..api.pod_groups import PodGroup, pod_group_of
from ..errors import InputError
from ..framework import Code, Status
from ..scheduler import GroupAttempt, MemberTrial, cause_of, run_to_tell
from ..sim.group_outcomes import gate_cause, placement_entries
from ..sim.stand_ins import GROUP_GATES
from ..trials import TrialCluster
from .account import PodRef
from .counterfactual import refusal
from .group_account import (
    GroupMember,
    GroupPreemption,
    GroupVerdict,
    MemberState,
    PlacementTried,
    PodGroupExplanation,
    ReasonCount,
)
from .group_ways import find_group_ways


def explain_group(
    view: TrialCluster, namespace: str, name: str, nearest: int = 1
) -> PodGroupExplanation:
    """The complete account of a pod group; with `nearest` 0, without remedies.

    Raises InputError when pod groups are not scheduled as a whole.
    """
    if view.scheduler.groups is None:
        lack = view.scheduler.feature_gates.lack(*GROUP_GATES)
        raise InputError(f"podgroup/{name}: pod groups are not scheduled as a whole {lack}")
    account, attempt = _judge(view, namespace, name, tells_all=True)
    waits = (GroupVerdict.UNSCHEDULABLE, GroupVerdict.PREEMPTS, GroupVerdict.GATED)
    if nearest and attempt is not None and account.verdict in waits:
        account.ways = find_group_ways(view, attempt)
    return account


def judge_group(view: TrialCluster, namespace: str, name: str) -> PodGroupExplanation:
    """The account in brief: without remedies, and without placements if there are many."""
    return _judge(view, namespace, name, tells_all=False)[0]


def _judge(
    view: TrialCluster, namespace: str, name: str, tells_all: bool
) -> tuple[PodGroupExplanation, GroupAttempt | None]:
    pods = members_of(view, namespace, name)
    arrived = [pod for pod in pods if pod.uid in view.settled.placed]
    if not arrived or any(not pod.node_name for pod in pods):
        return _judge_members(view, namespace, name, pods, tells_all)
    # The whole group was placed before the question: it is judged as if it waited.
    waits = [pod.replace(node_name="", status=EMPTY_STATUS) for pod in arrived]
    stays = [pod for pod in pods if pod.uid not in view.settled.placed]
    gone = [(pod, None) for pod in arrived]
    with view.changed([*gone, *((None, pod) for pod in waits)]):
        told = _judge_members(view, namespace, name, [*stays, *waits], tells_all)
    _note_arrived(view, told[0], arrived)
    return told


def _note_arrived(view: TrialCluster, account: PodGroupExplanation, arrived: list[Pod]) -> None:
    """Give the members the nodes that they got, where the account has those that they would get now."""
    nodes = {pod.uid: pod.node_name for pod in arrived}
    account.verdict, account.cause, account.message = GroupVerdict.FITS, "", ""
    for member in account.members:
        if member.pod.uid in nodes:
            member.state, member.node = MemberState.FITS, nodes[member.pod.uid]
            member.message, member.refusals = "", []
    account.domains = dict(_domains(view, account))


def _judge_members(
    view: TrialCluster, namespace: str, name: str, pods: list[Pod], tells_all: bool
) -> tuple[PodGroupExplanation, GroupAttempt | None]:
    found = view.cluster.get("PodGroup", namespace, name)
    group = found if isinstance(found, PodGroup) else None
    placed = [pod for pod in pods if pod.node_name]
    waiting = [pod for pod in pods if not pod.node_name and not pod.is_terminating]
    account = PodGroupExplanation(namespace=namespace, name=name, verdict=GroupVerdict.PLACED)
    account.node_count, account.settled = view.table.node_count, view.settlement
    if group is not None:
        account.min_count = group.min_count
        account.topology_key = group.topology_keys[0] if group.topology_keys else None
    account.members = [
        GroupMember(pod=PodRef.of(pod), state=MemberState.PLACED, node=pod.node_name)
        for pod in placed
    ]
    if not pods:
        account.verdict = GroupVerdict.EMPTY
    attempt = None
    if waiting:
        attempt = view.ask_group(waiting).decide(tells_all=tells_all)
        _note_attempt(account, attempt, group, len(placed))
        gate = next((g for g in map(view.gate, waiting) if not g.is_success), None)
        is_broken = account.verdict is GroupVerdict.ERROR and group is not None
        if gate is not None and not is_broken:
            _note_gate(account, gate, group, len(pods))
    account.domains = dict(_domains(view, account))
    return account, attempt


def members_of(view: TrialCluster, namespace: str, name: str) -> list[Pod]:
    """The pods of a group that have not finished."""
    return [
        pod
        for pod in view.cluster.list("Pod", namespace)
        if pod_group_of(pod) == name and not pod.is_finished
    ]


def _note_attempt(
    account: PodGroupExplanation, attempt: GroupAttempt, group: PodGroup | None, placed: int
) -> None:
    account.message = attempt.status.message
    account.cause = cause_of(attempt, group, placed)
    account.verdict = _verdict(attempt)
    _, told = run_to_tell(attempt)
    account.members += [_member(member) for member in told.members]
    account.placements = [PlacementTried(**entry) for entry in placement_entries(attempt)]
    if attempt.preemption is not None:
        account.preemption = GroupPreemption(
            helps=attempt.preemption.status.is_success,
            victims=[PodRef.of(victim) for victim in attempt.preemption.victims],
            message=attempt.preemption.status.message,
        )


def _note_gate(
    account: PodGroupExplanation, gate: Status, group: PodGroup | None, members: int
) -> None:
    account.gate, account.verdict = refusal(gate), GroupVerdict.GATED
    account.cause = gate_cause(gate.message, group, members)
    account.message = gate.message
    account.remarks.append("members are held back; the rest describes what would happen otherwise")


def _verdict(attempt: GroupAttempt) -> GroupVerdict:
    if attempt.status.is_success:
        return GroupVerdict.FITS
    if attempt.status.code is Code.Error:
        return GroupVerdict.ERROR
    return GroupVerdict.PREEMPTS if attempt.is_waiting else GroupVerdict.UNSCHEDULABLE


def _member(member: MemberTrial) -> GroupMember:
    attempt, state = member.attempt, MemberState.FITS
    if not member.was_tried:
        state = MemberState.NOT_TRIED
    elif not member.node_name:
        state = MemberState.REFUSED
    elif member.needs_preemption:
        state = MemberState.PREEMPTS
    counted = sorted(attempt.refusals.items(), key=lambda refusal: -refusal[1])
    return GroupMember(
        pod=PodRef.of(attempt.pod),
        state=state,
        node=member.node_name or None,
        message=attempt.message,
        refusals=[ReasonCount(reason=reason, nodes=count) for reason, count in counted],
    )


def _domains(view: TrialCluster, account: PodGroupExplanation) -> Counter[str]:
    """The number of members per value of the topology label."""
    counts: Counter[str] = Counter()
    for member in account.members:
        node = view.cluster.get("Node", "", member.node) if member.node else None
        if isinstance(node, Node) and account.topology_key in node.labels:
            counts[node.labels[account.topology_key or ""]] += 1
    return counts
