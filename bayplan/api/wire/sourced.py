"""Sourced: pods and nodes together with the JSON that they were decoded from.

Our types hold the fields that affect placement. For readers that need the other fields, objects are decoded into these
types; all copies of an object keep its source. See `whole`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import msgspec

from ..node import Node
from ..pod import Pod
from ..workloads import PodTemplateSpec, pod_template

AnyObject = TypeVar("AnyObject")

_IS_KEEPING: ContextVar[bool] = ContextVar("is_keeping_sources", default=False)
_DOCUMENTS: ContextVar["Documents | None"] = ContextVar("documents", default=None)
_SOURCE = "source"


class SourcedPod(Pod, eq=False, gc=False):
    """A pod with the JSON of the stored pod, or of the template that it was made from."""

    source: bytes = b""


class SourcedNode(Node, eq=False):
    """A node with the JSON of the stored node."""

    source: bytes = b""


class Documents:
    """The JSON of objects, with the fields that our types do not hold and default values that were written out."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, bytes]] = {}

    def add(self, obj: object, source: bytes) -> None:
        """Keep the JSON of an object."""
        self._known[id(obj)] = (obj, source)  # the object lives as long as its number is used

    def of(self, obj: object) -> Any | None:
        """The object as it was written; None if it was not read within `keeping_documents`."""
        found = self._known.get(id(obj))
        return None if found is None else msgspec.json.decode(found[1])


@contextmanager
def keeping_documents() -> Iterator[Documents]:
    """Keep the JSON of decoded objects of all kinds within the block."""
    documents = Documents()
    token = _DOCUMENTS.set(documents)
    try:
        with keeping_sources():
            yield documents
    finally:
        _DOCUMENTS.reset(token)


@contextmanager
def keeping_sources(is_keeping: bool = True) -> Iterator[None]:
    """Let decoded pods, nodes and pod templates keep their sources within the block."""
    token = _IS_KEEPING.set(is_keeping)
    try:
        yield
    finally:
        _IS_KEEPING.reset(token)


def is_keeping_sources() -> bool:
    """Whether this is within `keeping_sources`."""
    return _IS_KEEPING.get()


def with_source(obj: AnyObject, source: bytes) -> AnyObject:
    """The object with its source; kinds other than pods, nodes and workloads have none."""
    made: Any = obj
    if isinstance(obj, Pod | Node):
        kind = SourcedPod if isinstance(obj, Pod) else SourcedNode
        fields = {name: getattr(obj, name) for name in obj.__struct_fields__}
        made = kind(**{**fields, "source": source})
    else:
        template = pod_template(obj)
        if template is not None:
            tree = msgspec.json.decode(source)
            set_template_source(template, msgspec.json.encode(tree["spec"]["template"]))
    documents = _DOCUMENTS.get()
    if documents is not None:
        documents.add(made, source)
    found: AnyObject = made
    return found


def template_source(template: PodTemplateSpec) -> bytes | None:
    """The JSON of a template; None if it was not kept."""
    found: bytes | None = template.__dict__.get(_SOURCE)
    return found


def set_template_source(template: PodTemplateSpec, source: bytes | None) -> None:
    """Store the JSON of a template with it; a template is otherwise immutable."""
    if source is not None:
        template.__dict__[_SOURCE] = source
