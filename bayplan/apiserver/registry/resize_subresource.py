"""Resize subresource: the subresource `resize` of pods, which changes cpu and memory of containers and nothing else.

Mirrors pkg/registry/core/pod/strategy.go (podResizeStrategy) and ValidatePodResize of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...api.rules.field_causes import Cause, forbidden_field, invalid_value
from ...api.rules.immutable import is_same
from ...api.rules.object_validation import pod_spec_causes
from .pods import qos_class

Tree = dict[str, Any]
_KINDS = ("containers", "initContainers")
_RESIZED = ("cpu", "memory")


def resized(tree: Tree, old: Mapping[str, Any]) -> Tree:
    """The old pod with the resources of the new one; with the new containers if they are others, which is refused.

    The running containers get the status `resources`, which a kubelet reports, so that their allocation is known.
    """
    given, before = tree.get("spec") or {}, old["spec"]
    spec = dict(before)
    for kind in _KINDS:
        ours, theirs = before.get(kind) or [], given.get(kind) or []
        if [c.get("name") for c in ours] != [c.get("name") for c in theirs]:
            spec[kind] = theirs
        elif ours:
            spec[kind] = [_with_size(c, new) for c, new in zip(ours, theirs, strict=True)]
    return {**old, "spec": spec, "status": _reported(old)}


def _with_size(container: Tree, new: Mapping[str, Any]) -> Tree:
    size = {key: new[key] for key in ("resources", "resizePolicy") if key in new}
    return {
        **{k: v for k, v in container.items() if k not in ("resources", "resizePolicy")},
        **size,
    }


def _reported(pod: Mapping[str, Any]) -> Tree:
    """The status with the resources of each running container."""
    status = dict(pod.get("status") or {})
    sizes = {c.get("name"): c.get("resources") or {} for c in pod["spec"].get("containers") or ()}

    def report(one: Tree) -> Tree:
        if "resources" in one or "running" not in (one.get("state") or {}):
            return one
        size = sizes.get(one.get("name")) or {}
        return {**one, "resources": size, "allocatedResources": size.get("requests") or {}}

    if status.get("containerStatuses"):
        status["containerStatuses"] = [report(one) for one in status["containerStatuses"]]
    return status


def resize_causes(tree: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    """Yield the faults of a resized pod."""
    new, before = tree["spec"], old["spec"]
    yield from pod_spec_causes(new, "spec")
    if qos_class(new) != qos_class(before):
        problem = "Pod QOS Class may not change as a result of resizing"
        yield invalid_value("spec", (tree.get("status") or {}).get("qosClass", ""), problem)
    others = list(_order_causes(new, before))
    yield from others
    if not others:
        yield from _size_causes(new, before)


def _order_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    for kind in _KINDS:
        ours, theirs = old.get(kind) or [], new.get(kind) or []
        if len(ours) != len(theirs):
            yield forbidden_field(f"spec.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one.get("name") != other.get("name"):
                problem = f"{kind} may not be renamed or reordered on resize"
                yield forbidden_field(f"spec.{kind}[{i}].name", problem)


def _size_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    for kind in _KINDS:
        pairs = zip(old.get(kind) or [], new.get(kind) or [], strict=True)
        for i, (one, other) in enumerate(pairs):
            if kind == "initContainers" and one.get("restartPolicy") != "Always":
                if not is_same(one, other):
                    problem = "resources for non-sidecar init containers are immutable"
                    yield forbidden_field("spec", problem)
                continue
            before, after = one.get("resources") or {}, other.get("resources") or {}
            for part in ("requests", "limits"):
                if set(before.get(part) or ()) - set(after.get(part) or ()):
                    path = f"spec.{kind}[{i}].resources.{part}"
                    yield forbidden_field(path, f"resource {part} cannot be removed")
            if not is_same(_fixed(one), _fixed(other)):
                yield forbidden_field("spec", "only cpu and memory resources are mutable")


def _fixed(container: Mapping[str, Any]) -> Tree:
    """The container without its cpu and memory."""
    size = container.get("resources") or {}
    kept = {
        part: {k: v for k, v in (size.get(part) or {}).items() if k not in _RESIZED}
        for part in ("requests", "limits")
    }
    return {**container, "resources": {**size, **kept}}
