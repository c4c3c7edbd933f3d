"""Preemptor: what pods are pushed out for, a pod or a pod group, and the event that says so."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.pod import Pod
from ..api.workloads import PodGroup
from .handle import PodEvent


@dataclass(frozen=True, slots=True)
class GroupPreemptor:
    """A pod group that preempts as a whole, and the scheduler of its members."""

    group: PodGroup
    scheduler_name: str

    @property
    def uid(self) -> str:
        return self.group.uid

    @property
    def namespace(self) -> str:
        return self.group.namespace

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def key(self) -> str:
        return self.group.key


def preemptor_kind(preemptor: Pod | GroupPreemptor) -> str:
    """What kube-scheduler calls it in messages."""
    return "podgroup" if isinstance(preemptor, GroupPreemptor) else "pod"


def preempted_event(
    victim: Pod, preemptor: Pod | GroupPreemptor, in_memory: bool = False
) -> PodEvent:
    """The event about a pod that was preempted; a group preempts in the whole cluster, not on a node."""
    is_group = isinstance(preemptor, GroupPreemptor)
    where = "cluster" if is_group else victim.node_name
    note = f"Preempted by {preemptor_kind(preemptor)} {preemptor.uid} on node {where}"
    return PodEvent(
        regarding=victim,
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"{note} (in kube-scheduler memory)." if in_memory else note,
        reporting_controller=preemptor.scheduler_name,
        related=preemptor.group if isinstance(preemptor, GroupPreemptor) else preemptor,
    )
