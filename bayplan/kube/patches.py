"""Patches: the patches sent to the API server for objects and pod statuses.

Our objects omit many of the API server's fields, so only the difference is sent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..api.meta import KubeObject
from ..api.pod import Pod, PodCondition, PodStatus
from ..api.pod_groups import PodGroup, PodGroupCondition
from ..api.wire.encode import to_dict
from ..api.wire.whole import merge_difference

Tree = dict[str, Any]


def status_patch(
    pod: Pod, condition: PodCondition | None, nominated_node_name: str | None, now: str
) -> bytes | None:
    """The strategic merge patch that sets a condition and the nominated node, each unless None; None if nothing
    changes.

    Mirrors UpdatePodCondition of pkg/api/v1/pod/util.go: the time moves when the condition's status
    changes.
    """
    status: Tree = {}
    if condition is not None and condition not in (pod.status.conditions or ()):
        status["conditions"] = [_condition(pod.status, condition, now)]
    if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    if not status:
        return None
    return msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": status})


def _condition(status: PodStatus, condition: PodCondition, now: str) -> Tree:
    old = status.condition(condition.type)
    tree: Tree = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason or None,
        "message": condition.message or None,
        "lastProbeTime": None,
    }
    if condition.observed_generation:
        tree["observedGeneration"] = condition.observed_generation
    if old is None or old.status != condition.status:
        tree["lastTransitionTime"] = now
    return tree


def group_status_patch(old: PodGroup, new: PodGroup) -> bytes | None:
    """The strategic merge patch with the conditions of `new` that `old` lacks or has otherwise; None if nothing
    changes.

    It has the uid, so that another group of the same name is not written.
    """
    known = old.status.conditions or ()
    changed = [_plain_condition(c) for c in new.status.conditions or () if c not in known]
    if not changed:
        return None
    return msgspec.json.encode({"metadata": {"uid": old.uid}, "status": {"conditions": changed}})


def _plain_condition(condition: PodGroupCondition) -> Tree:
    """A condition with all fields that a condition must have."""
    plain: Tree = msgspec.to_builtins(condition)
    return {"reason": "", "message": "", **plain}


def object_patch(old: KubeObject | Pod, new: KubeObject | Pod) -> bytes:
    """The merge patch from one state of an object to another; the server refuses it if the object has changed since
    the first.
    """
    before, after = to_dict(old), to_dict(new)
    patch = merge_difference(before, after)
    metadata = patch.setdefault("metadata", {})
    metadata["uid"] = old.uid
    if isinstance(old, KubeObject):
        metadata["resourceVersion"] = old.resource_version
    return msgspec.json.encode(patch)
