"""Gain: the cost of scoring only some nodes and of never moving pods, as far as the data shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from ..answers.rebalance import plan_rebalance
from ..api.pod import Pod
from ..api.selectors import LabelSelector
from ..choices import Objective
from ..sim.settings import Settings
from ..trials import TrialCluster
from .decision_account import AccountPart, DecisionAccount, PointRange

SOFT = "ScheduleAnyway"
DAY_S = 86_400.0
MOST_MOVES = 200
MOST_SPREADS = 100
"""Sets of pods with a spread constraint that are probed."""
MOST_NODES = 2_000
"""Nodes of a cluster for which moves are planned; a plan for more takes minutes."""


class SkewedPods(AccountPart):
    """Pods with a spread constraint that would improve if one moved from the fullest domain to the emptiest."""

    pods: str
    topology_key: str
    counts: dict[str, int]
    skew: int
    from_domain: str
    to_domain: str
    nodes_with_room: int


class Gain(AccountPart):
    """Gain of deciding with all nodes, and of looking again. Each figure has its computation in `how`."""

    decisions: int = 0
    sampled: int = 0
    points_lost: int = 0
    points_lost_per_day: float = 0.0
    points_lost_by_plugin: dict[str, PointRange] = msgspec.field(default_factory=dict)
    waited_pods: int = 0
    waited_s: float = 0.0
    longest_wait_s: float = 0.0
    longest_wait_pod: str = ""
    skewed: list[SkewedPods] = msgspec.field(default_factory=list)
    nodes_in_use: int | None = None
    """Nodes with pods other than daemons and static pods; None if no plan was made."""
    nodes_after: int | None = None
    moves: int = 0
    how: dict[str, str] = msgspec.field(default_factory=dict)


def compute_gain(account: DecisionAccount, view: TrialCluster, settings: Settings) -> Gain:
    """The figures of the account, and of the cluster as it is now."""
    gain = _from_account(account)
    gain.skewed = sorted(_skewed(view), key=lambda one: -one.skew)
    gain.how["skewed"] = (
        "soft spread constraints, counted now over running pods; a set is listed if its skew is 2 or more and a node"
        " of the emptiest domain takes one of its pods, with all filters"
    )
    if view.table.node_count <= MOST_NODES:
        _add_empty_nodes(gain, view, settings)
    else:
        gain.how["nodesAfter"] = f"not computed: the cluster has more than {MOST_NODES:,} nodes"
    return gain


def _from_account(account: DecisionAccount) -> Gain:
    every = account.schedulers.values()
    by_plugin: dict[str, PointRange] = {}
    for one in every:
        for plugin, points in one.points_lost_by_plugin.items():
            total = by_plugin.setdefault(plugin, PointRange())
            total.low += points.low
            total.high += points.high
    lost = sum(one.points_lost for one in every)
    waits, split = account.waits, sum(one.split_decisions for one in every)
    return Gain(
        decisions=account.decisions,
        sampled=sum(one.agreements.get("sampled", 0) for one in every),
        points_lost=lost,
        points_lost_per_day=lost * DAY_S / account.watched_s if account.watched_s else 0.0,
        points_lost_by_plugin=dict(sorted(by_plugin.items(), key=lambda one: -one[1].high)),
        waited_pods=waits.pods,
        waited_s=waits.seconds,
        longest_wait_s=waits.longest_s,
        longest_wait_pod=waits.longest_pod,
        how={
            "pointsLost": "best total of all nodes less the total of the chosen node, summed over sampled decisions,"
            " each in the state of its own moment; earlier losses do not change later ones",
            "pointsLostPerDay": "the same, per 24 hours of watching",
            "pointsLostByPlugin": f"of {split:,} sampled decisions: weighted points of the best nodes less those of the"
            " chosen one; where several nodes are best, the lowest and the highest over all of them",
            "waited": f"waiting pods asked about every {waits.every_s:g} s; the time between the first and the last"
            " question at which a node was feasible. Time in the scheduler's queue is included",
        },
    )


def _add_empty_nodes(gain: Gain, view: TrialCluster, settings: Settings) -> None:
    plan = plan_rebalance(
        view.cluster.objects(), Objective.PACK, settings, max_moves=MOST_MOVES, as_is=True
    )
    gain.nodes_in_use, gain.nodes_after = int(plan.before), int(plan.after)
    gain.moves = len(plan.moves)
    gain.how["nodesAfter"] = (
        f"bayplan rebalance --objective pack --as-is, with at most {MOST_MOVES} moves; disruption budgets are kept"
    )


def _skewed(view: TrialCluster) -> Iterator[SkewedPods]:
    """Sets of pods that a soft spread constraint selects, the largest first."""
    by_namespace: dict[str, list[Pod]] = {}
    for pod in view.pods():
        if pod.node_name and not pod.is_finished and not pod.is_terminating:
            by_namespace.setdefault(pod.namespace, []).append(pod)
    sets: dict[tuple[str, LabelSelector, str], Pod] = {}
    for namespace, pods in by_namespace.items():
        for pod in pods:
            for one in pod.spec.topology_spread_constraints or ():
                selector = one.label_selector
                if one.when_unsatisfiable == SOFT and selector is not None:
                    sets.setdefault((namespace, selector, one.topology_key), pod)
    for namespace, selector, topology_key in islice(sets, MOST_SPREADS):
        chosen = [pod for pod in by_namespace[namespace] if selector.matches(pod.labels)]
        found = _skew_of(view, chosen, topology_key)
        if found is not None:
            yield found


def _skew_of(view: TrialCluster, pods: Sequence[Pod], topology_key: str) -> SkewedPods | None:
    domains = {node.name: node.labels.get(topology_key, "") for node in view.cluster.list("Node")}
    counts = Counter({domain: 0 for domain in domains.values() if domain})
    counts.update(domain for pod in pods if (domain := domains.get(pod.node_name)))
    if len(counts) < 2:
        return None
    ranked = counts.most_common()
    (fullest, most), (emptiest, least) = ranked[0], ranked[-1]
    if most - least < 2:
        return None
    moved = next(pod for pod in pods if domains.get(pod.node_name) == fullest)
    if moved.scheduler_name not in view.scheduler.profiles:
        return None
    with view.taken_off(moved) as waiting:
        totals, row_of = view.ask(waiting).totals(), view.table.row_of
        inside = (name for name, domain in domains.items() if domain == emptiest)
        room = sum(1 for name in inside if totals[row_of[name]] >= 0)
    if not room:
        return None
    return SkewedPods(
        pods=f"{moved.key} and {len(pods) - 1} more",
        topology_key=topology_key,
        counts=dict(sorted(counts.items())),
        skew=most - least,
        from_domain=fullest,
        to_domain=emptiest,
        nodes_with_room=room,
    )
