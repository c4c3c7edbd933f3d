"""Object changes: add, delete, patch and scale objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...api.meta import KubeObject, controller_of
from ...api.node import Node
from ...api.pod import Pod
from ...api.wire.kinds import FieldError
from ...choices import several
from ...cluster.memory.pod_index import is_there
from ...cluster.objects.object_index import ClusterObject
from ...errors import InputError
from ...manifests.timeline import ObjectPatch, TimelineTarget, added_objects, read_change
from ..input_gaps import autoscaler_notes
from ..references import find_kind, find_node, find_ref, find_refs, near, parse_selector
from ..stage import Stage
from .change import ClusterChange, check_field, names_of

UNASKED = "deleting a node does not ask disruption budgets; drain it first to respect them"
KINDS_OF_OBJECTS = (Mapping, Pod, Node, KubeObject)
SCALABLE = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")


@dataclass(frozen=True, slots=True)
class Scale(ClusterChange):
    """Scale a workload, written `kind/name`, to `replicas` pods."""

    workload: str
    replicas: int

    def __post_init__(self) -> None:
        check_field(self, "workload", str, "a name")
        check_field(self, "replicas", int, "a whole number")

    @property
    def text(self) -> str:
        return f"scale {self.workload} {self.replicas}"

    def apply(self, stage: Stage) -> None:
        ref = find_ref(stage.cluster, self.workload)
        if ref.kind not in SCALABLE:
            kinds = ", ".join(SCALABLE)
            raise InputError(f"expected a workload that can be scaled ({kinds}); got {ref.kind}")
        beside = _pods_beside(stage, ref) if find_kind(self.workload.split("/")[0]) is None else 0
        stage.patch(ref, {"spec": {"replicas": max(self.replicas - beside, 0)}})
        scaled = stage.cluster.get(ref.kind, ref.namespace, ref.name)
        stage.notes += autoscaler_notes(stage.cluster, scaled) if scaled is not None else ()


def _pods_beside(stage: Stage, ref: TimelineTarget) -> int:
    """The pods of a custom workload, such as a Rollout, that are not of the replica set `ref`."""
    stored = stage.cluster.get(ref.kind, ref.namespace, ref.name)
    above = controller_of(stored.owner_references) if stored is not None else None
    if above is None:
        return 0
    sets = [each for each in stage.cluster.list(ref.kind, ref.namespace) if each.name != ref.name]
    owners = {(ref.kind, s.name) for s in sets if controller_of(s.owner_references) == above}
    owners.add((above.kind, above.name))
    pods = [pod for pod in stage.cluster.list("Pod", ref.namespace) if is_there(pod)]
    return sum((o.kind, o.name) in owners for pod in pods if (o := pod.controller) is not None)


@dataclass(frozen=True, slots=True)
class Delete(ClusterChange):
    """Delete objects, written `kind/name` or `kind/pattern`, that have the labels of `selector`.

    A selector alone stands for nodes. Deleting a node deletes its pods at once; disruption budgets do not apply.
    """

    objects: tuple[str, ...] = ()
    selector: str = ""

    def __post_init__(self) -> None:
        names_of(self, "objects")
        check_field(self, "selector", str, "labels such as zone=a")
        parse_selector(self.selector)
        if not self.objects and not self.selector:
            raise InputError("delete: expected objects or a selector (-l); got neither")

    @property
    def text(self) -> str:
        labels = (f"-l {self.selector}",) if self.selector else ()
        return f"delete {' '.join((*self.objects, *labels))}"

    def apply(self, stage: Stage) -> None:
        refs: dict[TimelineTarget, None] = {}
        for text in self.objects or ("node",):
            refs |= dict.fromkeys(find_refs(stage.cluster, text, self.selector))
        emptied = 0
        for ref in refs:
            if ref.kind == "Node":
                emptied += empty_node(stage, find_node(stage.cluster, ref.name))
            stage.remove(ref)
        if emptied:
            stage.notes.append(UNASKED)


def empty_node(stage: Stage, node: Node) -> int:
    """Delete the pods of a node that is to be deleted; returns how many of them were evicted."""
    return sum(stage.drive_off(pod, f"{node.name} is deleted") for pod in stage.pods_on(node.name))


@dataclass(frozen=True, slots=True)
class Add(ClusterChange):
    """Add objects, also as plain data in Kubernetes' form."""

    objects: tuple[ClusterObject, ...]

    def __post_init__(self) -> None:
        expected = "an object, or a list of objects, such as {'kind': 'Pod', ...}"
        given = several("Add", "objects", self.objects, KINDS_OF_OBJECTS, expected)
        found = [each for i, obj in enumerate(given) for each in _decoded(obj, i)]
        object.__setattr__(self, "objects", tuple(found))

    @property
    def text(self) -> str:
        return f"add {' '.join(f'{obj.kind.lower()}/{obj.key}' for obj in self.objects)}"

    def apply(self, stage: Stage) -> None:
        stage.add(self.objects)


@dataclass(frozen=True, slots=True)
class Patch(ClusterChange):
    """Apply a JSON merge patch to an object, given as plain data that names the object.

    A pod's node cannot be changed this way.
    """

    change: ObjectPatch

    def __post_init__(self) -> None:
        given: Any = self.change
        if isinstance(given, Mapping):
            try:
                object.__setattr__(self, "change", read_change(dict(given), "Patch: change"))
            except FieldError as error:
                raise InputError(str(error)) from None
        check_field(self, "change", ObjectPatch, "an object with the fields to change, as a dict")

    @property
    def text(self) -> str:
        return f"patch {self.change.ref}"

    def apply(self, stage: Stage) -> None:
        ref: TimelineTarget = self.change.ref
        if stage.cluster.get(ref.kind, ref.namespace, ref.name) is None:
            known = [f"{ref.kind.lower()}/{obj.key}" for obj in stage.cluster.list(ref.kind)]
            expected = f"expected an object of the cluster; got {ref}"
            raise InputError(f"{expected}{near(str(ref), known)}")
        stage.patch(ref, self.change.patch)


def _decoded(obj: Any, i: int) -> list[ClusterObject]:
    """The objects that plain data describes; a list is expanded."""
    if not isinstance(obj, Mapping):
        return [obj]
    try:
        return list(added_objects(dict(obj), f"Add: objects[{i}]"))
    except FieldError as error:
        raise InputError(str(error)) from None
