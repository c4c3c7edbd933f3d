"""Group cause: why a pod group does not start, in a sentence about the members without a node."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.pod_groups import PodGroup
from ..framework import Code
from .attempt import Attempt
from .group_attempt import GroupAttempt, GroupResult, MemberTrial

INSUFFICIENT = "Insufficient "
NO_PLACEMENT = "placements are available"
MAX_NAMED = 2


def run_to_tell(account: GroupAttempt) -> tuple[str, GroupResult]:
    """The run that the text is about: the chosen one, or the one that places most members; with its placement."""
    if account.chosen is not None or not account.placements:
        return account.chosen.name if account.chosen is not None else "", account.result
    best = max(account.placements, key=lambda trial: _count_fitting(trial.result))
    return best.placement.name, best.result


def cause_of(account: GroupAttempt, group: PodGroup | None, placed: int = 0) -> str:
    """Reason why the group does not start as a whole; empty when it does. `placed` members have nodes already."""
    status = account.status
    if status.is_success:
        return ""
    if status.code is Code.Error:
        return status.message
    keys = group.topology_keys if group is not None else ()
    place, result = run_to_tell(account)
    if not any(member.was_tried for member in result.members):
        if keys and status.reasons:
            return f"no node has the label {keys[0]}, which the members must share: {status.reasons[0]}"
        return status.message
    total, fitting = len(result.members), _count_fitting(result)
    where = _place(account, place, keys[0] if keys else "")
    fit = "fits" if fitting == 1 else "fit"
    head = f"{fitting} of {_members(total)} {fit}{where}"
    if placed:
        more = f", {fitting} more {fit}{where}" if fitting else ""
        head = f"{placed} of {_members(placed + total)} have nodes{more}"
    parts = [head]
    parts += _refused(result.members)
    leaving = [member for member in result.members if member.needs_preemption]
    if leaving:
        parts.append(f"{_named(leaving)} once preempted pods are gone")
    missing = (group.min_count if group is not None else 0) - total - placed
    if fitting == total and missing > 0:
        parts.append(f"{missing} more needed for minCount {group.min_count if group else 0}")
    if account.is_waiting and account.preemption is not None:
        parts.append(f"it waits for {len(account.preemption.victims)} preempted pods to leave")
    return "; ".join(parts)


def _place(account: GroupAttempt, place: str, key: str) -> str:
    """Text for the placement that the cause is about."""
    if place:
        best = f", the best of {len(account.placements)}" if len(account.placements) > 1 else ""
        return f" in {key or 'placement'} {place}{best}"
    is_first = (
        key and NO_PLACEMENT in account.status.message
    )  # of many placements, only the first is tried in full
    return f" in the first {key} by name" if is_first else ""


def _count_fitting(result: GroupResult) -> int:
    return sum(bool(member.node_name) and not member.needs_preemption for member in result.members)


def _refused(members: Sequence[MemberTrial]) -> list[str]:
    """Text for the refusals of the members without a node; equal refusals share one."""
    by_reason: dict[tuple[str, str], list[MemberTrial]] = {}
    for member in members:
        if not member.node_name:
            by_reason.setdefault(_lack(member.attempt), []).append(member)
    return [
        f"{_named(alike)} {one if len(alike) == 1 else many}"
        for (one, many), alike in by_reason.items()
    ]


def _lack(attempt: Attempt) -> tuple[str, str]:
    """Text for the refusal of a pod, in the singular and in the plural."""
    refusals, nodes = attempt.refusals, attempt.evaluated_nodes
    everywhere = [reason for reason, count in refusals.items() if count == nodes]
    if everywhere:
        where = " on every node" if nodes > 1 else " on the only node"
        if all(reason.startswith(INSUFFICIENT) for reason in everywhere):
            what = " and ".join(reason.removeprefix(INSUFFICIENT) for reason in everywhere)
            return f"lacks {what}{where}", f"lack {what}{where}"
        return _no_node(f"{', '.join(everywhere)}{where}")
    if refusals:
        counted = ", ".join(
            f"{count} {reason}" for reason, count in sorted(refusals.items(), key=lambda r: -r[1])
        )
        return _no_node(counted)
    return _no_node(attempt.fit_error or attempt.message)


def _no_node(why: str) -> tuple[str, str]:
    return f"finds no node: {why}", f"find no node: {why}"


def _named(members: Sequence[MemberTrial]) -> str:
    names = [member.attempt.pod.name for member in members]
    if len(names) <= MAX_NAMED:
        return " and ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def _members(number: int) -> str:
    return "1 member" if number == 1 else f"{number} members"
