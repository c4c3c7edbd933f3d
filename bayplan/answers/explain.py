"""Explain: why a pod is pending, or why it is on its node.

A pending pod is judged as the scheduler would judge it now. A placed pod is judged as if it were
pending: removed from its node, with everything else unchanged. So is a pod that got its node just
before the question, with the other pods that waited; whether and where it was placed then is the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from ..api.node import Node
from ..api.pod import DO_NOT_SCHEDULE, Pod, PodAffinityTerm, TopologySpreadConstraint
from ..api.pod_groups import pod_group_of
from ..api.taints import NO_EXECUTE, NO_SCHEDULE, Taint, find_untolerated
from ..api.text.refusal_message import refusals_of
from ..choices import NEAREST
from ..errors import counted
from ..framework import Code, Status
from ..scheduler import Attempt, Explanation, PluginScore
from ..scheduler.all_refusals import AllRefusals
from ..trials import TrialCluster
from .account import (
    Ahead,
    Choice,
    GroupRef,
    PodExplanation,
    PodRef,
    PodRefOnNode,
    PodVerdict,
    PreemptionVictims,
    RefusedNodes,
    RunnerUp,
    ScoredNode,
    WeightedPlugin,
)
from .counterfactual import distances, find_counterfactuals, refusal
from .group_account import MemberState
from .group_explain import judge_group
from .manifest_changes import ObjectChange, pointer
from .remedies.affinity import elsewhere, selector_text
from .remedies.proposal import add, plain
from .remedies.spread import counted_pods, honor_taints
from .runner_up import find_runner_up
from .situation import Situation

NOT_RETRIED = (
    "it fits by now, but no event retries it; kube-scheduler tries it again after five minutes"
)


def explain(
    view: TrialCluster, pod: Pod, nodes: Sequence[str] = (), nearest: int = NEAREST
) -> PodExplanation:
    """The complete account of `pod`, which need not be in the cluster.

    Counterfactuals are computed for `nodes`, or for the `nearest` ones.
    """
    account = PodExplanation(pod=PodRef.of(pod), verdict=PodVerdict.FITS)
    account.node_count, account.settled = view.table.node_count, view.settlement
    if pod.is_finished:
        account.verdict = PodVerdict.FINISHED
        account.message = f"the pod has ended ({pod.status.phase}) and is no longer scheduled"
        return account
    if view.is_sampled:
        account.remarks.append(
            "percentageOfNodesToScore limits the search to a share of the nodes; here all were judged"
        )
    if not pod.node_name:
        _explain_waiting(view, pod, account)
        fits_alone = _explain_group(view, pod, account)
        earlier = view.settled.pending.get(pod.uid)
        if account.verdict is PodVerdict.FITS and earlier is not None:
            account.node, account.message = None, earlier
            if refusals_of(earlier):
                account.verdict = PodVerdict.UNSCHEDULABLE
                account.remarks.append(NOT_RETRIED)
            else:  # something that is not written to the cluster holds it, such as a plugin at Permit
                account.verdict = PodVerdict.GATED
        if nearest and not fits_alone:
            _note_changes(view, pod, account, nodes, nearest)
        return account
    victims = view.settled.placed.get(pod.uid)
    account.verdict = PodVerdict.PLACED if victims is None else PodVerdict.FITS
    account.node = pod.node_name
    if pod.scheduler_name not in view.scheduler.profiles:
        account.remarks.append(f'scheduler "{pod.scheduler_name}" is not configured here')
        return account
    with view.taken_off(pod) as waiting:
        judge(view, waiting, account)
        _remark_on_place(account, pod.node_name)
        if nearest:
            _note_changes(view, waiting, account, [*nodes, pod.node_name], nearest)
    if victims is not None:
        _note_settled(view, pod, account, victims)
    return account


def _note_settled(
    view: TrialCluster, pod: Pod, account: PodExplanation, victims: Sequence[Pod]
) -> None:
    """Correct the account of a pod that was placed before the question to the placement that it had."""
    account.verdict, account.message, account.preemption = PodVerdict.FITS, "", None
    if victims:
        node, refs = pod.node_name, [PodRef.of(victim) for victim in victims]
        account.preemption = PreemptionVictims(node=node, victims=refs)
    name = pod_group_of(pod)
    if name is not None and view.scheduler.groups is not None:
        account.group = GroupRef(name=name, starts=True)


def _note_changes(
    view: TrialCluster, pod: Pod, account: PodExplanation, nodes: Sequence[str], nearest: int
) -> None:
    """Add the counterfactuals: for the nearest nodes if the pod fits nowhere, else for `nodes` that
    reject it."""
    if account.verdict in (PodVerdict.UNSCHEDULABLE, PodVerdict.GATED, PodVerdict.ERROR):
        account.causes = find_causes(view, pod, account.refused)
        account.counterfactuals = find_counterfactuals(view, pod, nodes, nearest)
        return
    refused = {name for group in account.refused for name in group.nodes}
    wanted = [name for name in dict.fromkeys(nodes) if name in refused]
    if wanted:
        account.counterfactuals = find_counterfactuals(view, pod, wanted)
    if account.choice is not None and not account.choice.from_nomination:
        account.runner_up = _runner_up(view, pod, account)


def _runner_up(view: TrialCluster, pod: Pod, account: PodExplanation) -> RunnerUp | None:
    """The changes with which the second-best node would win, or the pod's own node if that is not the best."""
    best = account.choice
    if best is None or best.runner_up is None:
        return None
    is_elsewhere = account.node is not None and account.node != best.node
    target = account.node if is_elsewhere and account.node is not None else best.runner_up
    return find_runner_up(view, pod, account.scores, target)


def _explain_waiting(view: TrialCluster, pod: Pod, account: PodExplanation) -> None:
    gate = view.gate(pod)
    attempt = judge(view, pod, account)
    if attempt.is_failed:
        account.verdict = (
            PodVerdict.ERROR
            if attempt.status and not attempt.status.is_rejected
            else account.verdict
        )
    if not gate.is_success:
        account.gate = refusal(gate)
        account.verdict = PodVerdict.GATED
        account.remarks.append(
            "the pod is held back; the rest describes what would happen otherwise"
        )
        if not account.message:
            account.message = gate.message
    if pod.is_terminating:
        account.remarks.append("the pod is being deleted and will not be scheduled")
    permits = view.profile_of(pod).committing.permits
    holding = [plugin.name for plugin in permits if plugin.settled(pod.spec).commits]
    is_with_group = view.scheduler.groups is not None and pod_group_of(pod) is not None
    if holding and attempt.node_name and not is_with_group:
        account.remarks.append(f"{', '.join(holding)} may hold the pod once it has a node (Permit)")


def _explain_group(view: TrialCluster, pod: Pod, account: PodExplanation) -> bool:
    """Add the cause of the pod's group, which decides about the pod; returns whether the pod alone would fit."""
    name = pod_group_of(pod)
    if name is None or view.scheduler.groups is None:
        return False
    group = judge_group(view, pod.namespace, name)
    member = next((one for one in group.members if one.pod.uid == account.pod.uid), None)
    starts = member is not None and member.state is MemberState.FITS and group.has_node
    account.group = GroupRef(name=name, starts=starts, cause=group.cause)
    if account.verdict is not PodVerdict.FITS:
        return False
    if starts:
        assert member is not None, "a pod that starts is a member"
        account.node = member.node
        return False
    account.remarks.append(
        f"by itself the pod would go to {account.node}; see podgroup/{pod.namespace}/{name}"
    )
    account.verdict, account.node = PodVerdict.UNSCHEDULABLE, None
    account.message = member.message if member is not None and member.message else group.message
    return True


def judge(view: TrialCluster, pod: Pod, account: PodExplanation) -> Attempt:
    """Judge a pending pod, and record the result of every plugin."""
    inquiry = view.ask(pod)
    refused, attempt = inquiry.all_refusals(), inquiry.decide()
    told = attempt.explanation
    account.message = attempt.message
    if attempt.node_name and account.node is None:
        account.node = attempt.node_name
    if attempt.is_failed and account.verdict is PodVerdict.FITS:
        account.verdict = PodVerdict.UNSCHEDULABLE
    account.feasible_nodes = attempt.feasible_nodes
    if told is None:
        return attempt
    if not told.pre_filter.is_success:
        account.pre_filter = refusal(told.pre_filter)
    account.skipped = {"filter": told.skipped_filter, "score": told.skipped_score}
    account.waits_for = told.waits_for
    _note_scores(told, attempt, account)
    _note_refused(refused, told, account)
    account.preemption = _preemption(told)
    return attempt


def _note_scores(told: Explanation, attempt: Attempt, account: PodExplanation) -> None:
    account.score_plugins = [WeightedPlugin(plugin=s.plugin, weight=s.weight) for s in told.scores]
    names = list(told.totals)
    points = _by_node(names, {s.plugin: _weighted(s) for s in told.scores})
    raw = _by_node(names, {s.plugin: s.raw for s in told.scores})
    nodes = [
        ScoredNode(name=name, total=total, points=own, raw=own_raw)
        for (name, total), own, own_raw in zip(told.totals.items(), points, raw, strict=True)
    ]
    winner = attempt.node_name
    _rank(nodes, winner)
    account.scores = nodes
    account.choice = choose(nodes, winner, attempt.from_nomination) if winner else None


def _weighted(score: PluginScore) -> dict[str, int]:
    return {name: points * score.weight for name, points in score.normalized.items()}


def _by_node(
    names: Sequence[str], columns: Mapping[str, Mapping[str, int]]
) -> Iterator[dict[str, int]]:
    """For each node the numbers of the plugins."""
    if not columns:
        return ({} for _ in names)
    rows = zip(*(map(numbers.__getitem__, names) for numbers in columns.values()), strict=True)
    return (dict(zip(columns, row, strict=True)) for row in rows)


def _rank(nodes: list[ScoredNode], winner: str) -> None:
    """Sort the nodes: best first; among equal ones the winner first, then by name."""
    nodes.sort(key=attrgetter("name"))
    nodes.sort(key=attrgetter("total"), reverse=True)
    best = next((i for i, node in enumerate(nodes) if node.name == winner), None)
    if best is not None:
        equal = next(i for i, node in enumerate(nodes) if node.total == nodes[best].total)
        nodes.insert(equal, nodes.pop(best))


def choose(
    ranked: Sequence[ScoredNode], winner: str, from_nomination: bool = False
) -> Choice | None:
    """Reason why `winner` has its place among the nodes, best first; None when it is not feasible."""
    best = next((node for node in ranked if node.name == winner), None)
    if best is None:
        return None
    choice = Choice(node=winner, total=best.total, equals=0, from_nomination=from_nomination)
    choice.equals = sum(node.total == best.total for node in ranked)
    rival = next((node for node in ranked if node is not best), None)
    if rival is not None:
        choice.runner_up, choice.margin = rival.name, best.total - rival.total
        choice.ahead = ahead_of(best, rival)
    return choice


def ahead_of(one: ScoredNode, other: ScoredNode) -> list[Ahead]:
    """Score differences between two nodes, largest first."""
    gaps = {plugin: points - other.points.get(plugin, 0) for plugin, points in one.points.items()}
    ranked = sorted(gaps.items(), key=lambda gap: -abs(gap[1]))
    return [Ahead(plugin=plugin, points=points) for plugin, points in ranked if points]


def _note_refused(refused_by: AllRefusals, told: Explanation, account: PodExplanation) -> None:
    """The rejected nodes, grouped by equal rejections, nearest first."""
    names, feasible = refused_by.table.names, refused_by.feasible
    # Extenders run after the filters, on the nodes that passed them.
    refused_by.note(
        (row, status)
        for row in refused_by.rows[feasible[refused_by.rows]].tolist()
        if not (status := told.filter.get(names[row], _FITS)).is_success
    )
    far = distances(refused_by)
    groups = refused_by.groups()
    groups.sort(key=lambda group: (float(far[group[1]].min()), -len(group[1])))
    for statuses, rows in groups:
        nearest = rows[far[rows].argsort(kind="stable")]
        account.refused.append(
            RefusedNodes(
                nodes=[names[row] for row in nearest.tolist()],
                refusals=[refusal(status) for status in statuses],
            )
        )


_FITS = Status()


def _preemption(told: Explanation) -> PreemptionVictims | None:
    if told.post_filter is None:
        return None
    result, status = told.post_filter
    found = PreemptionVictims(node=result.nominated_node_name or None, message=status.message)
    chosen = result.preemption.chosen if result.preemption is not None else None
    if chosen is not None and status.code is Code.Success:
        found.victims = [PodRef.of(victim) for victim in chosen.pods]
        found.pdb_violations = chosen.pdb_violations
    return found


def _remark_on_place(account: PodExplanation, node_name: str) -> None:
    """Compare the pod's node with the one it would get today, with all other pods in their places."""
    today = "today" if account.verdict is PodVerdict.PLACED else "with all other pods placed"
    totals = {node.name: node.total for node in account.scores}
    best = account.choice
    if node_name not in totals:
        for group in account.refused:
            if node_name in group.nodes:
                said = "; ".join(f"{r.plugin}: {', '.join(r.reasons)}" for r in group.refusals)
                account.remarks.append(f"{today} {node_name} would refuse the pod ({said})")
                break
        else:
            account.remarks.append(f"node {node_name} is not in the cluster")
        if best is not None:
            account.remarks.append(f"{today} it would go to {best.node}")
        return
    if best is not None and totals[node_name] == best.total:
        account.choice = choose(account.scores, node_name)
        _rank(account.scores, node_name)
    elif best is not None:
        gap = best.total - totals[node_name]
        ahead = f"{counted(gap, 'point')} ahead of {node_name}"
        account.remarks.append(f"{today} it would go to {best.node}, which is {ahead}")


def explain_alike(
    view: TrialCluster, pods: Iterable[Pod], nodes: Sequence[str] = (), nearest: int = NEAREST
) -> list[PodExplanation]:
    """An account of the first pod of each group; its `alike` has the others.

    The pods of a group have equal specs, labels and owners, and are pending for the same reason, or all have a node.
    """
    groups: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(_group_key(view, pod), []).append(pod)
    accounts = []
    for first, *others in groups.values():
        account = explain(view, first, nodes, nearest)
        account.alike = [PodRefOnNode.of(pod) for pod in others]
        accounts.append(account)
    return accounts


def _group_key(view: TrialCluster, pod: Pod) -> Hashable:
    if pod.is_finished:
        return pod.status.phase
    if not pod.node_name:
        message = view.settled.pending.get(pod.uid)
        # Without an attempt, pods that name different nodes may have different reasons.
        cause = message if message is not None else pod.spec
        return pod.pod_class, cause, pod.nominated_node_name, pod.is_terminating
    victims = view.settled.placed.get(pod.uid)
    return pod.pod_class, victims is not None, pod.uid if victims else ""


SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
MAX_NAMES = 3
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


def find_causes(view: TrialCluster, pod: Pod, refused: Sequence[RefusedNodes]) -> list[str]:
    """Causes of the rejections of a pod that fits nowhere, in words."""
    causes: list[str] = []
    node = _refused_by(SPREAD, refused)
    if node is not None:
        causes += _closed_domains(view, pod, node)
    if _refused_by(AFFINITY, refused) is not None:
        causes += _other_namespaces(view, pod)
    return causes


def _refused_by(plugin: str, refused: Sequence[RefusedNodes]) -> str | None:
    """The first node that the plugin refuses; nodes that no other plugin refuses are preferred."""
    for group in sorted(refused, key=lambda group: len(group.refusals)):
        if group.nodes and any(refusal.plugin == plugin for refusal in group.refusals):
            return group.nodes[0]
    return None


def _closed_domains(view: TrialCluster, pod: Pod, node_name: str) -> Iterator[str]:
    """Domains without a node for the pod that count as empty ones for a spread constraint."""
    situation = Situation(view, pod, node_name)
    for i, constraint in enumerate(pod.spec.topology_spread_constraints or ()):
        if constraint.when_unsatisfiable != DO_NOT_SCHEDULE:
            continue
        closed = _closed(view, pod, constraint)
        change = honor_taints(pod, i, constraint)
        if not closed or change is None:
            continue
        key = constraint.topology_key
        taints = list(_missing_taints(view, key, closed))
        left = situation.refusals_after(pod, [change, *taints])
        if any(one.plugin == SPREAD for one in left):
            continue
        names = ", ".join(f"{key}={value}" for value in list(closed)[:MAX_NAMES])
        they = "it" if len(closed) == 1 else "them"
        yield (
            f"the spread over {key} counts {names} with {_pods(min(closed.values()))}, although every node there is "
            f"cordoned or has a taint that the pod does not tolerate; nodeTaintsPolicy: Honor leaves {they} out"
            + (
                f" in a cluster, which gives cordoned nodes the taint {CORDON.key}"
                if taints
                else ""
            )
        )


def _missing_taints(
    view: TrialCluster, key: str, domains: Container[str]
) -> Iterator[ObjectChange]:
    """The taints that the cordoned nodes of the domains would have in a cluster, and lack in a file."""
    for node in view.cluster.list("Node"):
        is_lacking = node.unschedulable and all(taint.key != CORDON.key for taint in node.taints)
        if is_lacking and node.labels.get(key) in domains:
            path = pointer("spec", "taints")
            if node.taints:
                yield add(node, path + "/-", plain(CORDON))
            else:
                yield add(node, path, [plain(CORDON)])


def _closed(view: TrialCluster, pod: Pod, constraint: TopologySpreadConstraint) -> dict[str, int]:
    """The domains with the fewest pods whose nodes all refuse the pod by their taints."""
    key = constraint.topology_key
    nodes: list[Node] = [node for node in view.cluster.list("Node") if key in node.labels]
    open_ones = {node.labels[key] for node in nodes if not _is_closed(node, pod)}
    counts = Counter({node.labels[key]: 0 for node in nodes})
    counts.update(domain for domain, _ in counted_pods(view, pod, constraint))
    fewest = min(counts.values(), default=0)
    return {
        value: count
        for value, count in counts.items()
        if count == fewest and value not in open_ones
    }


def _is_closed(node: Node, pod: Pod) -> bool:
    hard = [taint for taint in node.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    return node.unschedulable or find_untolerated(hard, pod.tolerations) is not None


def _other_namespaces(view: TrialCluster, pod: Pod) -> Iterator[str]:
    """Affinity terms that select no pod where they look, but would in another namespace."""
    for term in pod.spec.required_affinity:
        found = elsewhere(view, pod, term)
        if found:
            total = sum(found.values())
            yield (
                f"the required pod affinity selects pods with {selector_text(term)} in {_where(pod, term)}, "
                f"where there is none; {_pods(total)} with these labels "
                f"{'is' if total == 1 else 'are'} only in {', '.join(list(found)[:MAX_NAMES])}"
            )


def _where(pod: Pod, term: PodAffinityTerm) -> str:
    if term.namespace_selector is not None:
        return "the namespaces that it selects"
    names = term.namespaces or (pod.namespace,)
    return f"namespace {names[0]}" if len(names) == 1 else f"namespaces {', '.join(names)}"


def _pods(number: int) -> str:
    return "no pod" if number == 0 else "1 pod" if number == 1 else f"{number} pods"
