"""Object admission: apply the rules of the simulator's cluster to whole objects.

An object is decoded into our type, which rejects objects that are invalid for placement; the rules of
`cluster.memory.admission` run; the fields they set are carried over to the object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...api.meta import ObjectMeta
from ...api.pod import Pod
from ...api.pod_spec import PodSpec
from ...api.pod_status import EMPTY_STATUS
from ...api.rules.field_causes import Cause
from ...api.storage import PersistentVolumeClaim
from ...api.wire.decode import convert_tree
from ...api.wire.encode import plain_tree
from ...api.wire.kinds import KINDS, FieldError, Kind
from ...api.wire.pod_text import assemble_pod
from ...api.wire.whole import carry_over
from ...api.workloads import Namespace
from ...cluster.memory.admission import (
    Admission,
    AdmissionError,
    AdmissionRefusedError,
    admit_namespace,
    admit_storage,
)
from ...cluster.memory.quotas import QuotaLedger
from ...framework.lister import Lister
from .pods import PODS, qos_class
from .resource_table import ApiResource
from .status_errors import forbidden, invalid

Tree = dict[str, Any]
MAX_SPECS = 4096


class CheckedSpec(msgspec.Struct, eq=False):
    """A spec of valid pods, as it was sent. Its trees are never modified."""

    tree: Tree
    """With the defaults."""
    spec: PodSpec
    node_name: str
    admitted: dict[PodSpec, tuple[Tree, str]]
    """The trees of the specs that admission made of it, and their quality of service."""


def kind_of(resource: ApiResource) -> Kind | None:
    """Our type for the objects of the resource; None if it does not affect placement."""
    kind = KINDS.get(resource.kind)
    return kind if kind is not None and kind.group == resource.group else None


class Admitting:
    """Admits new objects. Work that depends on the spec of a pod alone is done once for all pods that have it."""

    def __init__(self, lister: Lister, ledger: QuotaLedger) -> None:
        self._lister = lister
        self._admission = Admission(lister, ledger, all_new=True)
        self._checked: dict[bytes, CheckedSpec] = {}

    def checked(self, sent: bytes) -> CheckedSpec | None:
        """Cached checks of the spec of a pod that was sent with these bytes; None if there are none."""
        return self._checked.get(sent)

    def admit_pod(self, tree: Tree, sent: bytes, known: CheckedSpec | None) -> Tree:
        """A pod that is valid except for the fields of placement, with these and its first status; raises
        StatusError.
        """
        if known is None:
            pod: Pod = decode(PODS, KINDS["Pod"], tree)
            known = CheckedSpec(tree["spec"], pod.spec, pod.node_name, {})
            if len(self._checked) >= MAX_SPECS:
                self._checked.clear()
            self._checked[sent] = known
        else:
            pod = _pod_of(tree, known)
        return self._admit_pod(tree, pod, known)

    def admit(self, resource: ApiResource, tree: Tree) -> Tree:
        """The object with the fields needed for placement; raises StatusError if it is rejected."""
        kind = kind_of(resource)
        if kind is None:
            return tree
        obj = decode(resource, kind, tree)
        admitted = obj
        if isinstance(obj, Namespace):
            admitted = admit_namespace(obj)
        elif not isinstance(obj, Pod):
            admitted = admit_storage(obj, self._lister)
        if isinstance(admitted, PersistentVolumeClaim):
            self._check(resource, admitted)
        if admitted is obj:
            return tree
        carried = carry_over(tree, plain_tree(obj), plain_tree(admitted))
        return {**tree, **carried}

    def check(self, resource: ApiResource, tree: Tree, old: Tree | None = None) -> None:
        """Reject an invalid object with StatusError; with the `old` one, also a claim that grows beyond a limit."""
        kind = kind_of(resource)
        if kind is None:
            return
        obj = decode(resource, kind, tree)
        if old is not None and isinstance(obj, PersistentVolumeClaim):
            self._check(resource, obj, decode(resource, kind, old))

    def _admit_pod(self, tree: Tree, pod: Pod, known: CheckedSpec) -> Tree:
        try:
            admitted = self._admission.admit(pod)
        except AdmissionError as error:
            if error.path == "spec.priorityClassName":
                problem = f"no PriorityClass with name {pod.spec.priority_class_name} was found"
                raise forbidden(PODS, pod.name, problem) from None
            cause = Cause("FieldValueInvalid", error.problem, error.path)
            raise invalid(PODS, pod.name, [cause]) from None
        except AdmissionRefusedError as error:
            raise forbidden(PODS, pod.name, error.problem) from None
        found = known.admitted.get(admitted.spec)
        if found is None:
            if len(known.admitted) >= MAX_SPECS:
                known.admitted.clear()
            spec = _carry_spec(known, admitted.spec)
            found = known.admitted[admitted.spec] = spec, qos_class(spec)
        spec, quality = found
        tree = {**tree, "spec": spec, "status": {"phase": "Pending", "qosClass": quality}}
        if admitted.annotations is not pod.annotations:
            metadata = {**tree["metadata"], "annotations": dict(admitted.annotations)}
            tree = {**tree, "metadata": metadata}
        self._check(PODS, admitted)
        return tree

    def _check(
        self,
        resource: ApiResource,
        obj: Pod | PersistentVolumeClaim,
        old: PersistentVolumeClaim | None = None,
    ) -> None:
        """Reject with StatusError the objects that limit ranges and quotas refuse."""
        try:
            self._admission.check(obj, old)
        except AdmissionRefusedError as error:
            if error.cause is not None:
                raise invalid(resource, obj.name, [error.cause]) from None
            raise forbidden(resource, obj.name, error.problem) from None


def _carry_spec(known: CheckedSpec, admitted: PodSpec) -> Tree:
    """The tree of a spec with the changes of admission."""
    old, new, tree = plain_tree(known.spec), plain_tree(admitted), dict(known.tree)
    for name in new:
        if old.get(name) != new[name]:
            tree[name] = carry_over(tree.get(name), old.get(name), new[name])
    return tree


def _pod_of(tree: Tree, known: CheckedSpec) -> Pod:
    """The new pod as our type; raises StatusError if its metadata is invalid."""
    try:
        metadata = msgspec.convert(tree["metadata"], ObjectMeta)
    except msgspec.ValidationError:  # nulls, or something invalid
        pod: Pod = decode(PODS, KINDS["Pod"], tree)
        return pod
    return assemble_pod(metadata, known.spec, known.node_name, EMPTY_STATUS, None)


def decode(resource: ApiResource, kind: Kind, tree: Tree) -> Any:
    """The object as our type; raises StatusError if it is invalid."""
    name = str(tree["metadata"].get("name") or "")
    try:
        return kind.build(convert_tree(kind, tree))
    except FieldError as error:
        cause = Cause("FieldValueInvalid", f"Invalid value: {error.fault}", error.path)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        cause = Cause("FieldValueInvalid", f"Invalid value: {problem}", path.rstrip("`"))
    raise invalid(resource, name, [cause])
