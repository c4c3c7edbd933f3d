"""Admitting: apply the rules of the simulator's cluster to whole objects.

An object is decoded into our type, which rejects what is invalid for placement; the rules of
`cluster.memory.admission` run; the fields they set are carried over to the object.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....api.carrying import carry_over
from ....api.causes import Cause
from ....api.decode import without_nulls
from ....api.kinds import KINDS, FieldError, Kind
from ....api.pod import Pod
from ....api.pod_spec import PodSpec
from ....api.storage import PersistentVolumeClaim
from ....api.workloads import Namespace
from ....framework import Lister
from ...memory.admission import (
    Admission,
    AdmissionError,
    AdmissionRefusedError,
    admit_namespace,
    admit_storage,
)
from ...memory.quotas import QuotaLedger
from .errors import forbidden, invalid
from .resources import ApiResource

Tree = dict[str, Any]
Difference = tuple[str, Any, Any]
"""The name of a field, its value before and after."""
MAX_KEPT = 4096


def kind_of(resource: ApiResource) -> Kind | None:
    """Our type for the objects of the resource; None: it does not affect placement."""
    kind = KINDS.get(resource.kind)
    return kind if kind is not None and kind.group == resource.group else None


class Admitting:
    """Admits new objects. Results are cached per pod spec."""

    def __init__(self, lister: Lister, ledger: QuotaLedger) -> None:
        self._admission = Admission(lister, ledger, all_new=True)
        self._changes: dict[tuple[PodSpec, PodSpec], list[Difference]] = {}

    def admit(self, resource: ApiResource, tree: Tree) -> Tree:
        """The object with the fields needed for placement; raises StatusError if it is rejected."""
        kind = kind_of(resource)
        if kind is None:
            return tree
        obj = decode(resource, kind, tree)
        if isinstance(obj, Pod):
            return self._admit_pod(resource, tree, obj)
        if isinstance(obj, PersistentVolumeClaim):
            self._check(resource, obj)
        admitted = admit_namespace(obj) if isinstance(obj, Namespace) else admit_storage(obj)
        if admitted is obj:
            return tree
        carried = carry_over(tree, _plain(obj), _plain(admitted))
        return {**tree, **carried}

    def check(self, resource: ApiResource, tree: Tree, old: Tree | None = None) -> None:
        """Reject an invalid object with StatusError; with the `old` one, also a claim that grows beyond a limit."""
        kind = kind_of(resource)
        if kind is None:
            return
        obj = decode(resource, kind, tree)
        if old is not None and isinstance(obj, PersistentVolumeClaim):
            self._check(resource, obj, decode(resource, kind, old))

    def _admit_pod(self, resource: ApiResource, tree: Tree, pod: Pod) -> Tree:
        try:
            admitted = self._admission.admit(pod)
        except AdmissionError as error:
            if error.path == "spec.priorityClassName":
                problem = f"no PriorityClass with name {pod.spec.priority_class_name} was found"
                raise forbidden(resource, pod.name, problem) from None
            cause = Cause("FieldValueInvalid", error.problem, error.path)
            raise invalid(resource, pod.name, [cause]) from None
        if admitted.spec is not pod.spec:
            spec = dict(tree["spec"])
            for name, before, after in self._differences(pod.spec, admitted.spec):
                spec[name] = carry_over(spec.get(name), before, after)
            tree = {**tree, "spec": spec}
        if admitted.annotations is not pod.annotations:
            metadata = {**tree["metadata"], "annotations": dict(admitted.annotations)}
            tree = {**tree, "metadata": metadata}
        self._check(resource, admitted)
        return tree

    def _check(
        self,
        resource: ApiResource,
        obj: Pod | PersistentVolumeClaim,
        old: PersistentVolumeClaim | None = None,
    ) -> None:
        """Reject with StatusError what limit ranges and quotas refuse."""
        try:
            self._admission.check(obj, old)
        except AdmissionRefusedError as error:
            if error.cause is not None:
                raise invalid(resource, obj.name, [error.cause]) from None
            raise forbidden(resource, obj.name, error.problem) from None

    def _differences(self, before: PodSpec, after: PodSpec) -> list[Difference]:
        """The fields in which two specs differ, computed once for all pods that have them."""
        found = self._changes.get((before, after))
        if found is None:
            if len(self._changes) > MAX_KEPT:
                self._changes.clear()
            old, new = _plain(before), _plain(after)
            found = [(name, old.get(name), new[name]) for name in new if old.get(name) != new[name]]
            self._changes[before, after] = found
        return found


def _plain(obj: Any) -> Tree:
    """The object as a tree of dicts and lists."""
    tree: Tree = msgspec.json.decode(msgspec.json.encode(obj))
    return tree


def decode(resource: ApiResource, kind: Kind, tree: Tree) -> Any:
    """The object as our type; raises StatusError if it is invalid."""
    name = str(tree["metadata"].get("name") or "")
    try:
        try:
            wire = msgspec.convert(tree, kind.wire)
        except msgspec.ValidationError:
            wire = msgspec.convert(without_nulls(tree), kind.wire)
        return kind.build(wire)
    except FieldError as error:
        cause = Cause("FieldValueInvalid", f"Invalid value: {error.fault}", error.path)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        cause = Cause("FieldValueInvalid", f"Invalid value: {problem}", path.rstrip("`"))
    raise invalid(resource, name, [cause])
