"""Gates: remedies for PreEnqueue rejections."""

from __future__ import annotations

from collections.abc import Iterator

from ..manifest_changes import pointer
from .proposal import Ask, Remedy, plain, remedy, remove, replace


def lift_gates(ask: Ask) -> Iterator[Remedy]:
    """Lift the scheduling gates."""
    gates = ask.pod.spec.scheduling_gates or ()
    changes = [
        remove(
            ask.pod, pointer("spec", "schedulingGates", i), plain(gate), f"lift gate {gate.name}"
        )
        for i, gate in enumerate(gates)
    ]
    names = ", ".join(gate.name for gate in gates)
    yield remedy(f"lift the scheduling gates {names}", *changes)


def shrink_gang(ask: Ask) -> Iterator[Remedy]:
    """Reduce the gang's minimum, or remove the pod from its group."""
    group_ref = ask.pod.spec.scheduling_group
    name = group_ref.pod_group_name if group_ref is not None else None
    group = ask.view.cluster.get("PodGroup", ask.pod.namespace, name) if name else None
    if group is not None:
        key = ("PodGroup", ask.pod.namespace, name or "")
        known = len(ask.view.scheduler.cache.pod_groups.members(key))
        path = pointer("spec", "schedulingPolicy", "gang", "minCount")
        text = f"let the gang begin with {known} pods"
        yield remedy(
            f"let gang {name} begin with fewer pods",
            replace(group, path, group.min_count, known, text),
        )
    if group_ref is not None:
        path = pointer("spec", "schedulingGroup")
        yield remedy(
            "schedule the pod without its gang",
            remove(ask.pod, path, plain(group_ref), "take the pod out of its group"),
        )
