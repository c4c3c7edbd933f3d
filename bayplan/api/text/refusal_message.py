"""Refusal message: the reasons in the message of kube-scheduler about a pod that fits nowhere."""

from __future__ import annotations

import re
from collections import Counter

# Known reasons: the reasons that kube-scheduler's own plugins give for refusing a node.

_BEGINNINGS = (
    "Insufficient ",
    "Too many pods",
    "node(s) cannot allocate all claims",
    "node(s) did not have enough free storage",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) didn't have the requested labels",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match Pod's required features",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match scheduler-enforced node affinity",
    "node(s) didn't match service affinity",
    "node(s) didn't match the requested node name",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) didn't satisfy plugin",
    "node(s) exceed max volume count",
    "node(s) had no available disk",
    "node(s) had no available volume zone",
    "node(s) had untolerated taint",
    "node(s) had volume node affinity conflict",
    "node(s) unavailable due to ",
    "node(s) were unschedulable",
)


def is_known_reason(reason: str) -> bool:
    """Whether a plugin of kube-scheduler gives the reason."""
    return reason.startswith(_BEGINNINGS)


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


def is_same_refusal(message: str, first_part: str) -> bool:
    """Whether a message has the same reasons with the same numbers as one without PostFilter's part."""
    counts = refusals_of(message)
    if counts:
        return counts == refusals_of(first_part)
    # a refusal of all nodes at once; plugins of PostFilter add sentences of their own
    begin = first_part.rstrip(". ")
    return message.rstrip(". ") == begin or message.startswith(f"{begin}. ")
