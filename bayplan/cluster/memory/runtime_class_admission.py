"""Runtime class admission: the overhead, node selector and tolerations that a RuntimeClass adds to a new pod.

Mirrors plugin/pkg/admission/runtimeclass.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...api.pod_spec import PodSpec
from ...api.taints import Toleration
from ...api.text.quantity import Quantity
from ...api.workloads import RuntimeClass
from ...framework.lister import Lister

MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
UNDEFINED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def class_of(spec: PodSpec, lister: Lister) -> RuntimeClass | None:
    """The class that the spec names; None if it names none, or one that does not exist."""
    name = spec.runtime_class_name
    found: RuntimeClass | None = lister.get("RuntimeClass", "", name) if name else None
    return found


def class_refusal(spec: PodSpec, lister: Lister) -> str:
    """Reason why kube-apiserver refuses a pod for its class, in its words; empty if it takes the pod."""
    found = class_of(spec, lister)
    if found is None:
        if spec.runtime_class_name:
            return f'pod rejected: RuntimeClass "{spec.runtime_class_name}" not found'
        return UNDEFINED if spec.overhead else ""
    overhead = _overhead_of(found)
    if spec.overhead and spec.overhead != overhead:
        return MISMATCH if overhead else UNDEFINED
    given, added = spec.node_selector or {}, _selector_of(found)
    for key, value in sorted(added.items()):
        if given.get(key, value) != value:
            place = "nodeSelector[%s] = %s"
            theirs, ours = place % (key, value), place % (key, given[key])
            return f"conflict: runtimeClass.scheduling.{theirs}; pod.spec.{ours}"
    return ""


def with_class(spec: PodSpec, found: RuntimeClass) -> PodSpec:
    """The spec with the constraints and the overhead of its class."""
    scheduling = found.scheduling
    selector = {**(spec.node_selector or {}), **_selector_of(found)}
    added = (scheduling.tolerations or ()) if scheduling is not None else ()
    return replace(
        spec,
        overhead=_overhead_of(found) or spec.overhead,
        node_selector=selector or None,
        tolerations=merge_tolerations(spec.tolerations or (), added) if added else spec.tolerations,
    )


def merge_tolerations(
    first: tuple[Toleration, ...], second: tuple[Toleration, ...]
) -> tuple[Toleration, ...]:
    """Both lists, without tolerations that another one covers; of equal ones the first is kept."""
    every = (*first, *second)
    merged: list[Toleration] = []
    for place, one in enumerate(every):
        later = (other for other in every[place + 1 :] if other != one)
        if not any(_covers(other, one) for other in (*merged, *later)):
            merged.append(one)
    return tuple(merged)


def _covers(wider: Toleration, other: Toleration) -> bool:
    """True if `wider` tolerates all that `other` does."""
    if wider == other:
        return True
    if wider.key != other.key and (wider.key or wider.operator != "Exists"):
        return False
    if wider.effect and wider.effect != other.effect:
        return False
    if wider.effect == "NoExecute" and wider.toleration_seconds is not None:
        seconds = other.toleration_seconds
        if seconds is None or wider.toleration_seconds < seconds:
            return False
    if (wider.operator or "Equal") == "Equal":
        return (other.operator or "Equal") == "Equal" and wider.value == other.value
    return wider.operator == "Exists"


def _overhead_of(found: RuntimeClass) -> dict[str, Quantity]:
    overhead = found.overhead
    return dict(overhead.pod_fixed or {}) if overhead is not None else {}


def _selector_of(found: RuntimeClass) -> dict[str, str]:
    return (found.scheduling.node_selector or {}) if found.scheduling is not None else {}
