"""Known reasons: the reasons that kube-scheduler's own plugins give for refusing a node."""

from __future__ import annotations

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
