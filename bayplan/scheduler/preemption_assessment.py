"""Preemption assessment: the victims that some scheduler chose, held against those of every node."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from ..api.pod import Pod
from ..framework.interface import Preemption
from ..framework.victims import Victims
from ..plugins.default_preemption.candidates import cost, earliest_start
from ..table.pod_matrix import start_of
from .inquiry import Inquiry


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
    """Whether they are, and the victims of no other node are missed less."""
    was_tried: bool = False
    """Whether that node was among those that were tried, which are a part of more than a hundred."""
    candidates: int = 0
    """Number of nodes on which preemption helps."""


def assess_preemption(
    inquiry: Inquiry, node_name: str, victims: Collection[Pod]
) -> PreemptionAssessment:
    """Hold the victims against those on all nodes. The inquiry is one of a scheduler whose cluster ignores writes."""
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
    is_same = here is not None and _ranks(here.evicted) == _ranks(victims)
    return msgspec.structs.replace(
        found,
        chosen_node=account.chosen.node_name,
        chosen_victims=tuple(sorted(pod.key for pod in account.chosen.evicted)),
        has_same_victims=is_same,
        was_tried=here is not None or node_name in account.rejected,
        is_best=is_same and here is not None and _is_least(here, account),
        candidates=len(every),
    )


def _ranks(pods: Iterable[Pod]) -> list[tuple[int, int]]:
    """Priorities and starts: of pods that are equal in both, any may be evicted."""
    return sorted((pod.priority, start_of(pod)) for pod in pods)


def _is_least(here: Victims, account: Preemption) -> bool:
    """Whether no candidate comes before; of equal ones any may be chosen."""
    assert account.chosen is not None
    best = account.chosen
    return cost(here) == cost(best) and earliest_start(here) == earliest_start(best)
