"""Distance: an estimate of how far each node is from accepting a pod, for all nodes at once.

It only orders the search; the changes are found by running the plugins (`counterfactual.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..framework import Code
from ..scheduler.all_refusals import AllRefusals

Floats = NDArray[np.float64]

FAR = {
    "NodeResourcesFit": 1.0,
    "TaintToleration": 1.0,
    "NodeUnschedulable": 1.0,
    "NodePorts": 1.0,
    "PodTopologySpread": 1.5,
    "InterPodAffinity": 1.5,
    "NodeAffinity": 1.5,
    "NodeVolumeLimits": 1.5,
    "VolumeBinding": 2.0,
    "VolumeZone": 2.0,
    "VolumeRestrictions": 1.5,
    "DynamicResources": 2.0,
    "NodeDeclaredFeatures": 2.0,
    "NodeName": 2.0,
}
UNKNOWN = 4.0
"""A plugin without known remedies."""
FOR_GOOD = 0.5
"""Added when evicting pods would not help."""


def distances(refusals: AllRefusals) -> Floats:
    """float64 per row of the table: 0 where the pod fits; grows with the number and size of
    rejections."""
    far: Floats = np.zeros(len(refusals.table))
    for statuses in refusals.by_filter:
        steps = []
        for status in statuses.statuses:
            if status.is_success:
                steps.append(0.0)
                continue
            step = FAR.get(status.plugin, UNKNOWN) * max(len(status.reasons), 1)
            steps.append(step + FOR_GOOD * (status.code is Code.UnschedulableAndUnresolvable))
        far += np.array(steps)[statuses.indices]
    return far + shortages(refusals)


def shortages(refusals: AllRefusals) -> Floats:
    """float64 per row, below 1: the share of the pod's requests that the node lacks."""
    table, total = refusals.table, np.zeros(len(refusals.table))
    requests = refusals.pod.requests
    for resource, wanted in requests.items():
        free = table.allocatable[resource] - table.requested[resource]
        missing = np.clip(wanted - np.maximum(free, 0), 0, wanted)
        total += missing / wanted
    return total / (len(requests) + 1) if requests else total
