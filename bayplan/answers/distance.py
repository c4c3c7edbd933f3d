"""Distance: how far a node is from running a pod, estimated for all nodes at once.

Only an order in which to look: what it takes for a node is found by judging (`counterfactual.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..framework import Code
from .survey import Survey

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
"""A plugin nobody knows how to please."""
FOR_GOOD = 0.5
"""Added when taking pods away would not help."""


def distances(survey: Survey) -> Floats:
    """float64 per row of the table: 0 where the pod fits; more refusals, and larger ones, are farther."""
    far: Floats = np.zeros(len(survey.table))
    for said in survey.said:
        steps = []
        for status in said.statuses:
            if status.is_success:
                steps.append(0.0)
                continue
            step = FAR.get(status.plugin, UNKNOWN) * max(len(status.reasons), 1)
            steps.append(step + FOR_GOOD * (status.code is Code.UnschedulableAndUnresolvable))
        far += np.array(steps)[said.said]
    return far + shortages(survey)


def shortages(survey: Survey) -> Floats:
    """float64 per row, below 1: how much of what the pod asks for is missing there."""
    table, total = survey.table, np.zeros(len(survey.table))
    requests = survey.pod.requests
    for resource, wanted in requests.items():
        free = table.allocatable[resource] - table.requested[resource]
        missing = np.clip(wanted - np.maximum(free, 0), 0, wanted)
        total += missing / wanted
    return total / (len(requests) + 1) if requests else total
