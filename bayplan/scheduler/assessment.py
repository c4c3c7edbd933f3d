"""Assessment: a node that some scheduler chose for a pod, compared with every node of the cluster.

A function of a state (the inquiry has it) and of the node, without effects: the same for decisions that were recorded,
watched or made by another configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
import numpy as np

from ..api.pod import Pod
from ..errors import EngineDisagreementError
from ..framework import Code, Status
from ..framework.interface import Preemption
from ..framework.victims import Victims
from ..plugins.default_preemption.by_amounts import cost, earliest_start
from ..table import Ints
from ..table.pod_matrix import start_of
from .inquiry import Inquiry
from .select_host import TieBreak

NO_SUCH_NODE = "node(s) were not in the cluster"


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """A pod in one state of the cluster, and the node that it went to; "" for a pod that was refused."""

    node_name: str
    feasible_nodes: int
    total: int | None = None
    """Total score of the node; None if it is refused, and for a pod without a node."""
    best_total: int | None = None
    """Highest total of all feasible nodes; None if there is none."""
    best_nodes: int = 0
    """Number of nodes with that total."""
    rank: int | None = None
    """1 + number of nodes with a higher total."""
    is_nominated: bool = False
    """The pod was nominated to the node and fits there: no scores are compared."""
    behind: tuple[tuple[str, int], ...] = ()
    """Points that a best node has more than this one, per plugin, largest difference first."""
    behind_range: tuple[tuple[str, int, int], ...] = ()
    """The lowest and the highest difference per plugin, over all of the best nodes."""
    refusals: tuple[Status, ...] = ()
    """The status of each filter that refuses the node."""
    message: str = ""
    """For a pod that fits nowhere: kube-scheduler's message, without the part about preemption."""
    refusal_reasons: tuple[tuple[str, str], ...] = ()
    """For a pod that fits nowhere: the plugins that refuse nodes, with each of their reasons."""

    @property
    def fits(self) -> bool:
        """Whether the node is feasible."""
        return self.total is not None

    @property
    def is_best(self) -> bool:
        """Whether the scheduler could have chosen the node; for a refused pod: whether no node is feasible."""
        if not self.node_name:
            return not self.feasible_nodes
        return self.fits and (self.is_nominated or self.total == self.best_total)


def assess(inquiry: Inquiry, node_name: str, *, in_full: bool = True) -> Assessment:
    """Compare the node with all others; `in_full` adds the reasons where it is not the best."""
    rows, totals = _feasible(inquiry)
    row = inquiry.table.row_of.get(node_name) if node_name else None
    best_total = int(totals.max()) if len(rows) else None
    position = np.flatnonzero(rows == row) if row is not None else rows[:0]
    total = int(totals[position[0]]) if len(position) else None
    found = Assessment(
        node_name=node_name,
        feasible_nodes=len(rows),
        total=total,
        best_total=best_total,
        best_nodes=int(np.count_nonzero(totals == best_total)) if len(rows) else 0,
        rank=None if total is None else 1 + int(np.count_nonzero(totals > total)),
        is_nominated=total is not None and inquiry.pod.nominated_node_name == node_name,
    )
    return _with_reasons(inquiry, found, row) if in_full else found


def choose(inquiry: Inquiry, ties: TieBreak) -> str:
    """The node that the scheduler would take; "" if none is feasible. `ties` draws as in an attempt."""
    nominated = inquiry.pod.nominated_node_name
    if nominated and assess(inquiry, nominated, in_full=False).fits:
        return nominated
    decision = inquiry.decision()
    if not decision.best.feasible:
        return ""
    table = inquiry.table
    return table.names[ties.choose_best(decision, table, _AsListed(table.numbers(table.live_rows)))]


class _AsListed(msgspec.Struct):
    """A search that visited the nodes in the order of the table."""

    order: Ints


def _feasible(inquiry: Inquiry) -> tuple[Ints, Ints]:
    """The feasible rows, and their totals."""
    decision = inquiry.decision()
    best = decision.best
    if (
        best.feasible == 1
    ):  # also for a pod that names its node: the totals are then those of its class
        return np.array([best.row]), np.array([best.total])
    totals = decision.ranked.totals()
    rows: Ints = np.flatnonzero(totals >= 0)
    return rows, totals[rows]


def _with_reasons(inquiry: Inquiry, found: Assessment, row: int | None) -> Assessment:
    if not found.node_name or not found.feasible_nodes:
        statuses = [status for status, _ in inquiry.diagnosis.by_status()]
        reasons = {(status.plugin, reason) for status in statuses for reason in status.reasons}
        found = msgspec.structs.replace(found, refusal_reasons=tuple(sorted(reasons)))
    if not found.feasible_nodes:
        found = msgspec.structs.replace(found, message=inquiry.diagnosis.fit_error())
    if found.is_best or not found.node_name:
        return found
    if found.fits:
        return _with_points(inquiry, found, row)
    return msgspec.structs.replace(found, refusals=_refusals(inquiry, row))


def _with_points(inquiry: Inquiry, found: Assessment, row: int | None) -> Assessment:
    """Add the points, by plugin, by which the best nodes are ahead; the reference computes them, not the engine."""
    table, points = inquiry.table, inquiry.weighted_scores()
    rows = table.numbers(inquiry.rows)
    total = sum(points.values(), np.zeros(len(rows), dtype=np.int64))
    here = int(np.flatnonzero(rows == row)[0])
    best = np.flatnonzero(total == total.max())
    if points and (int(total[here]), int(total.max())) != (found.total, found.best_total):
        raise EngineDisagreementError(
            f"pod {inquiry.pod.key}: node {found.node_name}: total {found.total}, best {found.best_total} by the"
            f" engine; {total[here]}, best {total.max()} by the plugins one after the other"
        )
    first = min(best.tolist(), key=lambda place: table.names[rows[place]])
    gaps = [
        (name, scores[best] - scores[here], int(scores[first])) for name, scores in points.items()
    ]
    behind = ((name, top - int(points[name][here])) for name, _, top in gaps)
    ranges = ((name, int(gap.min()), int(gap.max())) for name, gap, _ in gaps)
    return msgspec.structs.replace(
        found,
        behind=tuple(sorted((one for one in behind if one[1]), key=lambda one: -abs(one[1]))),
        behind_range=tuple(one for one in ranges if one[1] or one[2]),
    )


def _refusals(inquiry: Inquiry, row: int | None) -> tuple[Status, ...]:
    if row is None:
        return (Status(Code.UnschedulableAndUnresolvable, (NO_SUCH_NODE,)),)
    every = inquiry.all_refusals()
    if every.error is not None:
        return (every.error,)
    if not every.pre.status.is_success:
        return (every.pre.status,)
    return tuple(every.refusals_at(row))


class PreemptionAssessment(msgspec.Struct, frozen=True, kw_only=True):
    """A preemption in one state of the cluster. Pods are named by their keys."""

    node_name: str
    """Node on which the scheduler made room."""
    victims: tuple[str, ...]
    chosen_node: str = ""
    """Node on which room would be made; "" if no node can be helped."""
    chosen_victims: tuple[str, ...] = ()
    has_same_victims: bool = False
    """Whether the same pods would be evicted from that node, or others of equal priorities and starts."""
    is_best: bool = False
    """Whether `has_same_victims` holds, and no other candidate has victims that cost less."""
    was_tried: bool = False
    """Whether preemption was tried on that node; in a cluster of more than a hundred nodes only some are tried."""
    candidates: int = 0
    """Number of nodes on which preemption helps."""


def assess_preemption(
    inquiry: Inquiry, node_name: str, victims: Collection[Pod]
) -> PreemptionAssessment:
    """Compare the victims with those on all nodes. The scheduler of the inquiry has a cluster that ignores writes."""
    told = inquiry.decide().explanation
    account = told.post_filter[0].preemption if told is not None and told.post_filter else None
    found = PreemptionAssessment(
        node_name=node_name, victims=tuple(sorted(pod.key for pod in victims))
    )
    if account is None or account.chosen is None:
        return found
    account.complete()
    every = {**account.candidates, account.chosen.node_name: account.chosen}
    here = every.get(node_name)
    is_same = here is not None and _is_alike(here.evicted, victims)
    return msgspec.structs.replace(
        found,
        chosen_node=account.chosen.node_name,
        chosen_victims=tuple(sorted(pod.key for pod in account.chosen.evicted)),
        has_same_victims=is_same,
        was_tried=here is not None or node_name in account.rejected,
        is_best=is_same and here is not None and _is_least(here, account),
        candidates=len(every),
    )


def _is_alike(ours: Collection[Pod], theirs: Collection[Pod]) -> bool:
    """Whether the same pods are evicted, or equal ones. The start of a pod may become visible later."""
    is_same = {pod.key for pod in ours} == {pod.key for pod in theirs}
    return is_same or _ranks(ours) == _ranks(theirs)


def _ranks(pods: Iterable[Pod]) -> list[tuple[int, int]]:
    """Priorities and starts; any of several pods that are equal in both may be evicted."""
    return sorted((pod.priority, start_of(pod)) for pod in pods)


def _is_least(here: Victims, account: Preemption) -> bool:
    """Whether no other candidate is preferred; any of several equal candidates may be chosen."""
    assert account.chosen is not None
    best = account.chosen
    return cost(here) == cost(best) and earliest_start(here) == earliest_start(best)
