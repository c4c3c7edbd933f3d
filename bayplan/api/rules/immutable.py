"""Immutable: the changes of an object that the API server refuses, in its words.

Mirrors the update checks of pkg/apis/{core,apps,batch,scheduling,storage,resource}/validation. Objects are trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .field_causes import Cause, forbidden_field, invalid_value

Tree = Mapping[str, Any]

POD_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
STATEFUL_SET_FREE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
CLAIM_RULE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def immutable_causes(kind: str, tree: Tree, old: Tree) -> Iterator[Cause]:
    """Yield the changes from `old` to `tree` that are refused for objects of a kind of Kubernetes."""
    for path in IMMUTABLE.get(kind, ()):
        before = _at(old, path)
        if before is not None and not is_same(_at(tree, path), before):
            yield invalid_value(path, _at(tree, path), "field is immutable")
    check = CHECKS.get(kind)
    if check is not None:
        yield from check(tree, old)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal apart from empty fields, which typed clients omit."""
    return bool((_filled(one) or None) == (_filled(other) or None))


def _filled(value: Any) -> Any:
    """The value without empty fields."""
    if isinstance(value, Mapping):
        fields = ((key, _filled(part)) for key, part in value.items())
        return {key: part for key, part in fields if part not in (None, [], {}, "")}
    return [_filled(part) for part in value] if isinstance(value, list) else value


def _at(tree: Any, path: str) -> Any:
    for step in path.split("."):
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _spec(tree: Tree) -> Tree:
    return tree.get("spec") or {}


def _pod(tree: Tree, old: Tree) -> Iterator[Cause]:
    new_spec, old_spec = _spec(tree), _spec(old)
    if is_same(new_spec, old_spec):
        return
    before = [gate.get("name") for gate in old_spec.get("schedulingGates") or ()]
    for i, gate in enumerate(new_spec.get("schedulingGates") or ()):
        if gate.get("name") not in before:
            problem = (
                f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            )
            yield forbidden_field(f"spec.schedulingGates[{i}].name", problem)
    tolerations = [_without_seconds(each) for each in new_spec.get("tolerations") or ()]
    if any(_without_seconds(kept) not in tolerations for kept in old_spec.get("tolerations") or ()):
        problem = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", problem)
    is_gated = bool(before)
    if not is_same(_fixed_part(new_spec, is_gated), _fixed_part(old_spec, is_gated)):
        yield forbidden_field("spec", POD_RULE)


def _without_seconds(toleration: Tree) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}


def _fixed_part(spec: Tree, is_gated: bool) -> dict[str, Any]:
    """The immutable part of a pod's spec."""
    free = {
        "activeDeadlineSeconds",
        "tolerations",
        "schedulingGates",
        "terminationGracePeriodSeconds",
    }
    if is_gated:
        free |= {"nodeSelector", "affinity"}
    fixed = {key: value for key, value in spec.items() if key not in free}
    for name in ("containers", "initContainers"):
        if fixed.get(name):
            fixed[name] = [{**container, "image": ""} for container in fixed[name]]
    return fixed


def _stateful_set(tree: Tree, old: Tree) -> Iterator[Cause]:
    def fixed(spec: Tree) -> dict[str, Any]:
        return {key: value for key, value in spec.items() if key not in STATEFUL_SET_FREE}

    if not is_same(fixed(_spec(tree)), fixed(_spec(old))):
        *names, last = (f"'{name}'" for name in STATEFUL_SET_FREE)
        listed = f"{', '.join(names)} and {last}"
        problem = f"updates to statefulset spec for fields other than {listed} are forbidden"
        yield forbidden_field("spec", problem)


def _job(tree: Tree, old: Tree) -> Iterator[Cause]:
    new_spec, old_spec = _spec(tree), _spec(old)
    completions = new_spec.get("completions")
    is_elastic = old_spec.get("completionMode") == "Indexed" and completions == new_spec.get(
        "parallelism"
    )
    if completions != old_spec.get("completions") and not is_elastic:
        yield invalid_value("spec.completions", completions, "field is immutable")
    if not old_spec.get("suspend") and not is_same(
        new_spec.get("template"), old_spec.get("template")
    ):
        yield invalid_value("spec.template", new_spec.get("template"), "field is immutable")


def _claim(tree: Tree, old: Tree) -> Iterator[Cause]:
    def fixed(spec: Tree) -> dict[str, Any]:
        free = ("resources", "volumeName", "volumeAttributesClassName", "storageClassName")
        return {key: value for key, value in spec.items() if key not in free}

    new_spec, old_spec = _spec(tree), _spec(old)
    set_before = [key for key in ("volumeName", "storageClassName") if old_spec.get(key)]
    if not is_same(fixed(new_spec), fixed(old_spec)) or any(
        new_spec.get(key) != old_spec[key] for key in set_before
    ):
        yield forbidden_field("spec", CLAIM_RULE)


def _priority_class(tree: Tree, old: Tree) -> Iterator[Cause]:
    if (tree.get("value") or 0) != (old.get("value") or 0):
        yield forbidden_field("value", "may not be changed in an update.")


CHECKS: dict[str, Callable[[Tree, Tree], Iterator[Cause]]] = {
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
