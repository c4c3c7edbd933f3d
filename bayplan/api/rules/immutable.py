"""Immutable: the changes of an object that the API server refuses, in its words.

Mirrors the update checks of pkg/apis/{core,apps,batch,scheduling,storage,resource}/validation. Objects are trees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from .field_causes import Cause, Part, Tree

POD_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
STATEFUL_SET_FREE = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
CLAIM_RULE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def immutable_causes(kind: str, tree: Tree, old: Tree) -> list[Cause]:
    """The changes from `old` to `tree` that are refused for objects of a kind of Kubernetes."""
    new = Part(tree)
    for path in IMMUTABLE.get(kind, ()):
        before = value_at(old, path)
        if before is not None and not is_same(value_at(tree, path), before):
            new.invalid(path, "field is immutable", value_at(tree, path))
    if kind in CHECKS:
        CHECKS[kind](new, old)
    return new.causes


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal apart from empty fields, which typed clients omit."""
    return bool((_filled(one) or None) == (_filled(other) or None))


def _filled(value: Any) -> Any:
    """The value without empty fields."""
    if isinstance(value, Mapping):
        fields = ((key, _filled(part)) for key, part in value.items())
        return {key: part for key, part in fields if part not in (None, [], {}, "")}
    return [_filled(part) for part in value] if isinstance(value, list) else value


def value_at(tree: Any, path: str) -> Any:
    """The value at a path of names, as `.spec.replicas`."""
    for step in path.removeprefix(".").split("."):
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _without(spec: Tree, free: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in free}


def _pod(pod: Part, old: Tree) -> None:
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    if is_same(new_spec, old_spec):
        return
    before = [gate.get("name") for gate in old_spec.get("schedulingGates") or ()]
    for gate in pod.below("spec").each("schedulingGates"):
        name = gate.get("name")
        if name not in before:
            problem = f"only deletion is allowed, but found new scheduling gate '{name}'"
            gate.forbidden("name", problem)
    tolerations = [_without_seconds(each) for each in new_spec.get("tolerations") or ()]
    if any(_without_seconds(kept) not in tolerations for kept in old_spec.get("tolerations") or ()):
        problem = "existing toleration can not be modified except its tolerationSeconds"
        pod.forbidden("spec.tolerations", problem)
    is_gated = bool(before)
    if not is_same(_fixed_part(new_spec, is_gated), _fixed_part(old_spec, is_gated)):
        pod.forbidden("spec", POD_RULE)


def _without_seconds(toleration: Tree) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}


def _fixed_part(spec: Tree, is_gated: bool) -> dict[str, Any]:
    """The immutable part of a pod's spec."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    free |= {"terminationGracePeriodSeconds"} | (
        {"nodeSelector", "affinity"} if is_gated else set()
    )
    fixed = _without(spec, free)
    for name in ("containers", "initContainers"):
        if fixed.get(name):
            fixed[name] = [{**container, "image": ""} for container in fixed[name]]
    return fixed


def _stateful_set(stateful_set: Part, old: Tree) -> None:
    new_spec, old_spec = stateful_set.get("spec") or {}, old.get("spec") or {}
    if not is_same(_without(new_spec, STATEFUL_SET_FREE), _without(old_spec, STATEFUL_SET_FREE)):
        *names, last = (f"'{name}'" for name in STATEFUL_SET_FREE)
        listed = f"{', '.join(names)} and {last}"
        problem = f"updates to statefulset spec for fields other than {listed} are forbidden"
        stateful_set.forbidden("spec", problem)


def _job(job: Part, old: Tree) -> None:
    new_spec, old_spec = job.below("spec"), old.get("spec") or {}
    completions, is_indexed = (
        new_spec.get("completions"),
        old_spec.get("completionMode") == "Indexed",
    )
    is_elastic = is_indexed and completions == new_spec.get("parallelism")
    if completions != old_spec.get("completions") and not is_elastic:
        new_spec.invalid("completions", "field is immutable")
    is_other = not is_same(new_spec.get("template"), old_spec.get("template"))
    if is_other and not old_spec.get("suspend"):
        new_spec.invalid("template", "field is immutable")


def _claim(claim: Part, old: Tree) -> None:
    new_spec, old_spec = claim.get("spec") or {}, old.get("spec") or {}
    free = ("resources", "volumeName", "volumeAttributesClassName", "storageClassName")
    set_before = [key for key in ("volumeName", "storageClassName") if old_spec.get(key)]
    if not is_same(_without(new_spec, free), _without(old_spec, free)) or any(
        new_spec.get(key) != old_spec[key] for key in set_before
    ):
        claim.forbidden("spec", CLAIM_RULE)


def _priority_class(class_: Part, old: Tree) -> None:
    if (class_.get("value") or 0) != (old.get("value") or 0):
        class_.forbidden("value", "may not be changed in an update.")


CHECKS: dict[str, Callable[[Part, Tree], None]] = {
    "Job": _job,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "PriorityClass": _priority_class,
    "StatefulSet": _stateful_set,
}
IMMUTABLE: dict[str, tuple[str, ...]] = {
    "CSIDriver": ("spec.attachRequired", "spec.fsGroupPolicy"),
    "DaemonSet": ("spec.selector",),
    "Deployment": ("spec.selector",),
    "Job": ("spec.selector", "spec.completionMode"),
    "ReplicaSet": ("spec.selector",),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "StorageClass": ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
}
