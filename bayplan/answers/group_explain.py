"""Group explain: which members of a pod group fit, where, why the others do not, and what would let the group run.

Each change is verified by the group's scheduling cycle. Nodes are added as copies of existing ones, as few as are
enough. For members without a node the remedies for pods are used, while the other members are on the nodes that they
would get. Then the whole group is tried with all changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack

from ..api.node import HOSTNAME, Node
from ..api.pod import EMPTY_STATUS, Pod
from ..api.pod_groups import PodGroup, pod_group_of
from ..api.wire.encode import to_dict
from ..errors import ConflictError, InputError
from ..framework import Code, Status
from ..scheduler import GroupAttempt, MemberTrial, cause_of, run_to_tell
from ..sim.group_outcomes import gate_cause, placement_entries
from ..sim.stand_ins import GROUP_GATES
from ..trials import TrialCluster
from .account import Alternative, PodRef
from .counterfactual import find_counterfactual, nearest_nodes, refusal
from .group_account import (
    GroupMember,
    GroupPreemption,
    GroupVerdict,
    MemberState,
    PlacementTried,
    PodGroupExplanation,
    ReasonCount,
)
from .manifest_changes import ChangeKind, ObjectChange, ObjectRef, pointer
from .remedies.proposal import plain, remove, replace, smallest
from .situation import Situation, steps_of
from .what_if.node_changes import free_names, nodes_like

MAX_PATTERNS = 5
"""Kinds of nodes of which copies are tried."""
MAX_CHANGED = 16
"""Members without a node for which other changes are searched."""
NEAREST_NODES = 3
"""Nodes that are tried for such a member."""


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
        trial = _GroupSituation(view, attempt)
        ways = [*_more_nodes(trial), *_changed_members(trial), *_smaller_gang(trial)]
        account.ways = [*ways, *_without_constraint(trial)]
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


class _GroupSituation:
    """A pod group that does not fit, and whether it fits after changes."""

    def __init__(self, view: TrialCluster, attempt: GroupAttempt) -> None:
        self.view = view
        self._namespace = attempt.group.namespace
        self._name = attempt.group.name
        place, result = run_to_tell(attempt)
        self.place = place
        """The placement that holds most members; empty without a topology constraint."""
        self.fitting = [m for m in result.members if m.node_name and not m.needs_preemption]
        self.refused = [m for m in result.members if not m.node_name or m.needs_preemption]
        self.was_tried = any(member.was_tried for member in result.members)

    def waiting(self) -> list[Pod]:
        """The members without a node."""
        pods = self.view.cluster.list("Pod", self._namespace)
        return [
            pod
            for pod in pods
            if pod_group_of(pod) == self._name
            and not (pod.node_name or pod.is_finished or pod.is_terminating)
        ]

    @property
    def group(self) -> PodGroup | None:
        found = self.view.cluster.get("PodGroup", self._namespace, self._name)
        return found if isinstance(found, PodGroup) else None

    def fits(self, changes: Sequence[ObjectChange]) -> bool:
        """Whether the group would start once `changes` are made."""
        try:
            with self.view.changed(steps_of(self.view.cluster, changes)):
                waiting = self.waiting()
                if not waiting or any(not self.view.gate(pod).is_success for pod in waiting):
                    return False
                return self.view.ask_group(waiting).decide(makes_room=False).status.is_success
        except (InputError, ConflictError):
            return False

    def is_in_place(self, node: Node) -> bool:
        """Whether the node is in the placement that holds most members."""
        keys = self.group.topology_keys if self.group is not None else ()
        return not self.place or not keys or node.labels.get(keys[0]) == self.place


def _more_nodes(trial: _GroupSituation) -> Iterator[Alternative]:
    """The fewest copies of a node that let the group run, for several kinds of nodes."""
    most, found = len(trial.refused), list[tuple[int, Alternative]]()
    if not trial.was_tried:
        return
    for pattern in _patterns(trial):

        def is_enough(number: int, like: Node = pattern) -> bool:
            return trial.fits(_copies(trial, like, number))

        if most and is_enough(most):
            number = smallest(is_enough, 0, most)
            changes = _copies(trial, pattern, number)
            nodes = "1 node" if number == 1 else f"{number} nodes"
            found.append(
                (number, Alternative(goal=f"add {nodes} like {pattern.name}", changes=changes))
            )
    yield from (way for _, way in sorted(found, key=lambda one: one[0]))


def _patterns(trial: _GroupSituation) -> list[Node]:
    """A node of each kind, those of the best placement first."""
    kinds: dict[Hashable, Node] = {}
    for node in sorted(trial.view.cluster.list("Node"), key=lambda n: not trial.is_in_place(n)):
        labels = frozenset((k, v) for k, v in node.labels.items() if k != HOSTNAME)
        kinds.setdefault((labels, frozenset(node.allocatable.items()), node.taints), node)
    return list(kinds.values())[:MAX_PATTERNS]


def _copies(trial: _GroupSituation, pattern: Node, number: int) -> list[ObjectChange]:
    cluster, changes = trial.view.cluster, list[ObjectChange]()
    names = free_names(cluster, pattern.name)
    for name in (next(names) for _ in range(number)):
        for obj in nodes_like(cluster, pattern, name):
            text = f"add node {name}" if isinstance(obj, Node) else f"with its {obj.kind}"
            changes.append(
                ObjectChange(
                    kind=ChangeKind.CREATE, object=ObjectRef.of(obj), to=to_dict(obj), text=text
                )
            )
    return changes


def _changed_members(trial: _GroupSituation) -> Iterator[Alternative]:
    """Changes with which each member without a node would run together with the others."""
    if not trial.was_tried or not 0 < len(trial.refused) <= MAX_CHANGED:
        return
    changes = list[ObjectChange]()
    goals: dict[str, None] = {}
    members = {ObjectRef.of(pod) for pod in trial.waiting()}
    with ExitStack() as stack:
        for member in trial.fitting:
            _put_on_node(trial.view, stack, member.attempt.pod, member.node_name)
        for member in trial.refused:
            if not _change_for(trial, stack, member, members, changes, goals):
                return
    if trial.fits(changes):
        yield Alternative(goal="; ".join(goals), changes=changes)


def _change_for(
    trial: _GroupSituation,
    stack: ExitStack,
    member: MemberTrial,
    members: set[ObjectRef],
    changes: list[ObjectChange],
    goals: dict[str, None],
) -> bool:
    """Find a node and changes for one more member, and place it; False if there is none."""
    view, pod = trial.view, member.attempt.pod
    for name in _candidates(trial, pod):
        found = find_counterfactual(view, pod, name, kept=members)
        touched = {change.object for change in found.changes}
        deleted = {c.object for c in found.changes if c.kind is ChangeKind.DELETE}
        if not found.fits or deleted & members or touched & members - {ObjectRef.of(pod)}:
            continue
        changes += found.changes
        goals.update(dict.fromkeys(step.goal for step in found.steps))
        changed = stack.enter_context(Situation(view, pod, name).changed(found.changes))
        _put_on_node(view, stack, changed, name)
        return True
    return False


def _candidates(trial: _GroupSituation, pod: Pod) -> list[str]:
    """The nodes that are nearest to taking the pod, within the best placement."""
    count = NEAREST_NODES if not trial.place else trial.view.table.node_count
    nodes = (
        trial.view.cluster.get("Node", "", name) for name in nearest_nodes(trial.view, pod, count)
    )
    inside = [node.name for node in nodes if isinstance(node, Node) and trial.is_in_place(node)]
    return inside[:NEAREST_NODES]


def _put_on_node(view: TrialCluster, stack: ExitStack, pod: Pod, node_name: str) -> None:
    stack.enter_context(view.changed([(pod, None), (None, pod.with_node(node_name))]))


def _smaller_gang(trial: _GroupSituation) -> Iterator[Alternative]:
    group = trial.group
    if group is None or not trial.fitting or not group.min_count:
        return
    key = ("PodGroup", group.namespace, group.name)
    placed = len(trial.view.scheduler.cache.pod_groups.members(key)) - len(trial.waiting())
    enough = len(trial.fitting) + placed
    if enough >= group.min_count:
        return
    path = pointer("spec", "schedulingPolicy", "gang", "minCount")
    text = f"make PodGroup {group.name} again with minCount {enough}"
    changes = [replace(group, path, group.min_count, enough, text)]
    if trial.fits(changes):
        members = "1 member" if enough == 1 else f"{enough} members"
        yield Alternative(goal=f"let the gang begin with {members}", changes=changes)


def _without_constraint(trial: _GroupSituation) -> Iterator[Alternative]:
    group = trial.group
    if group is None or not group.topology_keys:
        return
    path = pointer("spec", "schedulingConstraints")
    text = f"make PodGroup {group.name} again without its topology constraint"
    changes = [remove(group, path, plain(group.spec.scheduling_constraints), text)]
    if trial.fits(changes):
        goal = f"let members have different values of {group.topology_keys[0]}"
        yield Alternative(goal=goal, changes=changes)
