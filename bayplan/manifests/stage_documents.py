"""Stage documents: our own kind PodStages (bayplan.dev/v1). docs/annotations.md describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..api.meta import Wire
from ..api.own_documents import API_VERSION
from ..api.pod_stages import (
    DURATION,
    EXIT_CODE,
    IMAGE_PULL_ERROR,
    READY_AFTER,
    START_DELAY,
    StageRule,
    annotation_faults,
    stages_of,
)
from ..api.selectors import LabelSelector
from ..api.wire.kinds import KINDS, FieldError, Kind
from ..config.decode import decode
from ..config.problems import Problems
from ..errors import InputError
from .timeline import Timeline

KIND = "PodStages"
ANNOTATIONS = {
    "startDelay": START_DELAY,
    "imagePullError": IMAGE_PULL_ERROR,
    "readyAfter": READY_AFTER,
    "duration": DURATION,
    "exitCode": EXIT_CODE,
}
TEMPLATES = (
    ("metadata",),
    ("spec", "template", "metadata"),
    ("spec", "jobTemplate", "spec", "template", "metadata"),
)


class StageSpecFile(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a document: which pods, and their stages."""

    selector: LabelSelector = LabelSelector()
    namespaces: tuple[str, ...] = ()
    start_delay: str | None = None
    image_pull_error: str | None = None
    ready_after: str | None = None
    duration: str | None = None
    exit_code: int | None = None


class StagesFile(msgspec.Struct, frozen=True, rename="camel"):
    """A document of kind PodStages."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: Any = None
    spec: StageSpecFile = StageSpecFile()


def is_stages(tree: Mapping[str, Any]) -> bool:
    """Whether this is a document of kind PodStages."""
    return tree.get("apiVersion") == API_VERSION and tree.get("kind") == KIND


def read_stages(place: str, tree: Mapping[str, Any]) -> StageRule:
    """The rule of one document; raises InputError that names every problem."""
    rule, texts = _read(tree)
    if texts:
        raise InputError("\n".join(f"{place}: {text}" for text in texts))
    return rule


def _read(tree: Mapping[str, Any]) -> tuple[StageRule, list[str]]:
    """The rule of one document, and its problems."""
    problems = Problems()
    spec = decode(StagesFile, tree, "", problems).spec
    texts = [str(problem) for problem in problems]
    texts += [f"spec.selector.{path}: {fault}" for path, fault in spec.selector.problems()]
    given = {
        name: str(value)
        for field, name in ANNOTATIONS.items()
        if (value := msgspec.to_builtins(spec).get(field)) is not None
    }
    fields = {name: field for field, name in ANNOTATIONS.items()}
    texts += [f"spec.{fields[name]}: {fault}" for name, fault in annotation_faults(given)]
    return StageRule(stages_of(given)[0], spec.selector, spec.namespaces), texts


def check_annotations(place: str, tree: Mapping[str, Any]) -> None:
    """Check the annotations of a pod or of a template; raises InputError."""
    for path in TEMPLATES:
        found: Any = tree
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        notes = found.get("annotations") if isinstance(found, dict) else None
        given = {k: v for k, v in notes.items() if isinstance(v, str)} if notes else {}
        for name, fault in annotation_faults(given):
            raise InputError(f"{place}: {'.'.join(path)}.annotations[{name}]: {fault}")


class StagesWire(Wire, frozen=True):
    """A document of kind PodStages on the wire; its fields are checked when it is built."""

    spec: Any = None


def build_stages(wire: StagesWire) -> Timeline:
    """The document as an input of a simulation."""
    rule, texts = _read({"apiVersion": API_VERSION, "kind": KIND, "spec": wire.spec or {}})
    if texts:
        path, _, fault = texts[0].partition(": ")
        raise FieldError(path, fault)
    return Timeline((), stages=(rule,))


KINDS[KIND] = Kind(KIND, API_VERSION, StagesWire, build_stages, is_namespaced=False)
