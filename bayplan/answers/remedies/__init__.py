"""Remedies: for each plugin, changes that might lift its rejection of a pod on a node.

Contents: proposals, a module per kind of rejection, each given the rejection and the current cluster. Proposals are
not certain: they are verified by running the plugins, so one may be too much, or not enough; likely and small ones
come first. Callers: `answers/counterfactual.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from . import affinity, devices, node, resources, spread, volumes
from .proposal import Ask, Remedy

Proposer = Callable[[Ask], Iterator[Remedy]]

PROPOSERS: Mapping[str, tuple[Proposer, ...]] = {
    "SchedulingGates": (node.lift_gates,),
    "GangScheduling": (node.shrink_gang,),
    "NodeName": (node.change_node_name,),
    "NodeUnschedulable": (node.uncordon,),
    "TaintToleration": (node.bear_taints,),
    "NodeAffinity": (node.meet_affinity,),
    "NodeDeclaredFeatures": (node.declare_features,),
    "NodePorts": (resources.free_ports,),
    "NodeResourcesFit": (resources.make_room, devices.serve_claims),
    "PodTopologySpread": (spread.even_out,),
    "InterPodAffinity": (affinity.please_pods,),
    "VolumeRestrictions": (volumes.free_volumes, volumes.repair_claims),
    "VolumeBinding": (volumes.repair_claims,),
    "VolumeZone": (volumes.repair_claims,),
    "NodeVolumeLimits": (volumes.raise_limits, volumes.repair_claims),
    "EBSLimits": (volumes.raise_cloud_limits,),
    "GCEPDLimits": (volumes.raise_cloud_limits,),
    "AzureDiskLimits": (volumes.raise_cloud_limits,),
    "CinderLimits": (volumes.raise_cloud_limits,),
    "DynamicResources": (devices.serve_claims,),
}


def propose(ask: Ask) -> Iterator[Remedy]:
    """Remedies for a rejection, best first; empty for a plugin without known remedies."""
    if ask.refused.is_crowded:
        yield from resources.end_nominations(ask)
    for proposer in PROPOSERS.get(ask.refused.plugin, ()):
        yield from proposer(ask)


__all__ = ["Ask", "Remedy", "propose"]
