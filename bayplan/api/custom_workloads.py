"""Custom workloads: objects of custom resources that own pods, such as an Argo Rollout or a CloneSet of OpenKruise.

Only the shape of such kinds is known: `spec.replicas` and `spec.template` stand for that many pods of the template.
Others that have replicas, or the template of a pod somewhere, own pods in a way that is not known.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from .kinds import group_of
from .meta import EMPTY_META, KubeObject, ObjectMeta, Wire
from .selectors import LabelSelector
from .validate import spec_problems
from .workloads import PodTemplateSpec

MAX_DEPTH = 8


class CustomWorkloadSpec(Wire, frozen=True):
    """Replicas, selector and template."""

    replicas: int = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class CustomWorkload(KubeObject, frozen=True):
    """An object of a custom resource that owns pods. With `missing` its pods cannot be made."""

    manifest_kind: ClassVar[str] = ""
    """The kind in manifests; `kind` has the group, too: `Rollout.argoproj.io`."""

    spec: CustomWorkloadSpec = CustomWorkloadSpec()
    missing: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class _Head(Wire, frozen=True):
    metadata: ObjectMeta = EMPTY_META


def is_custom_group(group: str) -> bool:
    """Whether an API group is not one of Kubernetes itself."""
    return "." in group and not group.endswith(".k8s.io")


def read_custom_workload(tree: Mapping[str, Any]) -> CustomWorkload | None:
    """The object, if its kind is a custom one and it owns pods; None otherwise."""
    api_version, kind, spec = tree.get("apiVersion"), tree.get("kind"), tree.get("spec")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    if not is_custom_group(group_of(api_version)) or not isinstance(spec, Mapping):
        return None
    try:
        metadata = msgspec.convert({"metadata": tree.get("metadata") or {}}, _Head).metadata
    except msgspec.ValidationError:
        return None
    made = _made(api_version, kind)
    replicas, template = spec.get("replicas"), spec.get("template")
    has_replicas = isinstance(replicas, int) and not isinstance(replicas, bool)
    count = f"{replicas} replica{'' if replicas == 1 else 's'}"
    if has_replicas and _is_template(template):
        try:
            return made(metadata=metadata, spec=_spec(spec))
        except (msgspec.ValidationError, ValueError) as error:
            return made(metadata=metadata, missing=f"{count} (spec.template: {error})")
    if has_replicas and template is None:
        return made(metadata=metadata, missing=f"{count} (no spec.template)")
    path = next(_templates(spec, "spec", MAX_DEPTH), "")
    return made(metadata=metadata, missing=f"pods of {path}") if path else None


@lru_cache(maxsize=256)
def _made(manifest_api_version: str, manifest: str) -> type[CustomWorkload]:
    """The type of the objects of one kind."""

    class Made(CustomWorkload, frozen=True):
        kind = f"{manifest}.{group_of(manifest_api_version)}"
        api_version = manifest_api_version
        manifest_kind = manifest

    Made.__name__ = Made.__qualname__ = manifest
    return Made


def _spec(spec: Mapping[str, Any]) -> CustomWorkloadSpec:
    """The parts that pods are made of; ValueError or ValidationError if they cannot be read."""
    template = msgspec.convert(_without_nulls(spec["template"]), PodTemplateSpec)
    for path, fault in spec_problems(template.full_spec, "spec"):
        raise ValueError(f"{path}: {fault}")
    try:
        selector = msgspec.convert(_without_nulls(spec.get("selector")), LabelSelector | None)
    except msgspec.ValidationError:
        selector = None  # another kind of selector: the pods are found by their owner
    return CustomWorkloadSpec(
        replicas=max(spec["replicas"], 0), selector=selector, template=template
    )


def _is_template(value: Any) -> bool:
    """Whether it is the template of a pod."""
    spec = value.get("spec") if isinstance(value, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    return isinstance(containers, list) and any(isinstance(each, Mapping) for each in containers)


def _templates(value: Any, path: str, depth: int) -> Iterator[str]:
    """The paths of pod templates."""
    if _is_template(value):
        yield path
    elif depth and isinstance(value, Mapping):
        for name, part in value.items():
            yield from _templates(part, f"{path}.{name}", depth - 1)
    elif depth and isinstance(value, list):
        for i, part in enumerate(value):
            yield from _templates(part, f"{path}[{i}]", depth - 1)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value
