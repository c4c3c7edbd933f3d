"""Preemptor: the preemptor, a pod or a pod group, and its event."""

from __future__ import annotations

from ..api.pod import Pod
from ..api.pod_groups import GroupPreemptor
from .handle import PodEvent


def preemptor_kind(preemptor: Pod | GroupPreemptor) -> str:
    """The name of the preemptor's kind in kube-scheduler's messages."""
    return "podgroup" if isinstance(preemptor, GroupPreemptor) else "pod"


def preempted_event(
    victim: Pod, preemptor: Pod | GroupPreemptor, in_memory: bool = False
) -> PodEvent:
    """The event about a pod that was preempted; a group preempts in the whole cluster, not on a node."""
    where = "cluster" if isinstance(preemptor, GroupPreemptor) else victim.node_name
    note = f"Preempted by {preemptor_kind(preemptor)} {preemptor.uid} on node {where}"
    return PodEvent(
        regarding=victim,
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"{note} (in kube-scheduler memory)." if in_memory else note,
        reporting_controller=preemptor.scheduler_name,
        related=preemptor,
    )
