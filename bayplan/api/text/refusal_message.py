"""Refusal message: the reasons in the message of kube-scheduler about a pod that fits nowhere."""

from __future__ import annotations

import re
from collections import Counter

_REFUSED = re.compile(r"0/(\d+) nodes are available: ")
_NEXT_REASON = re.compile(r", (?=\d+ )")


def refusals_of(message: str) -> dict[str, int]:
    """The reasons in a message about a pod that fits nowhere, with their number of nodes, most first."""
    found = _REFUSED.match(message)
    if found is None:
        return {}
    said = message[found.end() :].partition(". ")[0].removesuffix(".")
    counts: Counter[str] = Counter()
    for part in _NEXT_REASON.split(said):
        number, _, reason = part.partition(" ")
        if not number.isdecimal():
            return {}
        counts[reason] += int(number)
    return dict(counts.most_common())


def is_same_refusal(one: str, other: str) -> bool:
    """Whether two messages have the same reasons with the same numbers; the part about preemption does not count."""
    counts = refusals_of(one)
    if counts:
        return counts == refusals_of(other)
    return _first_part(one) == _first_part(other)


def _first_part(message: str) -> str:
    return message.partition(" preemption: ")[0].rstrip(". ")
