"""Checks of a simulation's input: times in annotations, immutable fields, at least one node."""

from collections.abc import Iterable, Iterator, Mapping

from ..api.cron_jobs import CronJob
from ..api.node import Node
from ..api.pod_stages import annotation_faults
from ..api.rules.immutable import immutable_causes
from ..api.rules.object_validation import refusal_text
from ..api.storage import StorageClass
from ..api.wire.encode import to_dict
from ..api.workloads import pod_template
from ..cluster.memory.admission import AdmissionError
from ..cluster.memory.provisioners import provisioning_problems
from ..cluster.objects.object_index import ClusterObject
from ..errors import InputError
from ..manifests.timeline import CREATED_AT, InputObject, Timeline, created_at_problem


def check_times(obj: ClusterObject) -> None:
    """Raise AdmissionError for an annotation with an invalid time, stage or provisioning."""
    problem = created_at_problem(obj)
    if problem:
        raise AdmissionError(obj, f"metadata.annotations[{CREATED_AT}]", problem)
    for where, annotations in _stage_annotations(obj):
        wrong = next(annotation_faults(annotations or {}), None)
        if wrong is not None:
            name, fault = wrong
            raise AdmissionError(obj, f"{where}metadata.annotations[{name}]", fault)
    if isinstance(obj, StorageClass):
        for name, fault in provisioning_problems(obj.annotations):
            raise AdmissionError(obj, f"metadata.annotations[{name}]", fault)


def _stage_annotations(obj: ClusterObject) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The annotations of a pod, or of the pods that a workload makes, each with the path before them."""
    yield "", obj.annotations
    if isinstance(obj, CronJob):
        yield "spec.jobTemplate.spec.template.", obj.spec.job_template.spec.template.annotations
    template = pod_template(obj)
    if template is not None:
        yield "spec.template.", template.annotations


def refuse_immutable(stored: ClusterObject, changed: ClusterObject) -> None:
    """Raise InputError, in kube-apiserver's words, for a change of a field that cannot be changed."""
    causes = list(immutable_causes(stored.kind, to_dict(changed), to_dict(stored)))
    if causes:
        raise InputError(refusal_text(stored.api_version, stored.kind, stored.name, causes))


def joined(*parts: str) -> str:
    """The parts of a message that are not empty."""
    return ": ".join(part for part in parts if part)


def refuse_no_nodes(objects: Iterable[InputObject]) -> None:
    """Raise InputError if no object or event brings a node."""
    for obj in objects:
        added = (a for event in obj.events for a in event.add) if isinstance(obj, Timeline) else ()
        if isinstance(obj, Node) or any(isinstance(a, Node) for a in added):
            return
    raise InputError("input: expected at least one Node; got none")
