"""Pod text: make pods from JSON text, where each part that many pods have in common is decoded once.

The pods of a workload have equal specs, labels and owners, and most of their statuses are equal once fields that do not
affect placement are left out. So these parts are left as text at first, and texts that were decoded before are not
decoded again. Two things in a spec differ between the pods of a workload: the name of the node, and the name of the
volume that the API server adds for the service account, which has no effect on placement.
"""

from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import force_setattr as _set

from ..meta import DEFAULT_NAMESPACE, EMPTY_META, NO_STRINGS, ObjectMeta, OwnerReference, Wire
from ..pod import Pod
from ..pod_spec import EMPTY_SPEC, BoundPodSpec, PodSpec, share_spec, shared_spec, spec_key
from ..pod_status import EMPTY_STATUS, ContainerStatus, PodStatus
from ..rules.object_faults import (
    container_status_problems,
    pod_level_status_problems,
    spec_problems,
)
from .field_error import FieldError, refuse
from .interning import shared, shared_map, shared_text
from .sourced import SourcedPod

T = TypeVar("T")

SHORT_STATUS = 512
"""Bytes up to which the text of a status may be that of other pods; longer ones have addresses and times."""

_NODE_KEY = b'"nodeName"'
_ACCESS = b"kube-api-access-"
_ACCESS_SIZE = len(_ACCESS) + 5
_GAP = b"\0"
"""Stands in a key for the text that differs; JSON has no such byte."""


class TextMemo(Generic[T]):
    """Values by the text that they were decoded from; emptied when the texts have more than `limit` bytes."""

    __slots__ = ("_known", "_limit", "_size", "get")

    def __init__(self, limit: int) -> None:
        self._known: dict[bytes, T] = {}
        self._limit = limit
        self._size = 0
        self.get = self._known.get

    def put(self, text: bytes, value: T) -> T:
        """Keep a value; returns it."""
        self._size += len(text)
        if self._size > self._limit:
            self._known.clear()
            self._size = len(text)
        self._known[text] = value
        return value


class PodMetaText(Wire, frozen=True):
    """The `metadata` of a pod, partly as text."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: msgspec.Raw = msgspec.Raw(b"")
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: msgspec.Raw = msgspec.Raw(b"")
    resource_version: str = ""
    generation: int = 0


class PodText(Wire, frozen=True):
    """A pod whose spec and status are text."""

    metadata: PodMetaText = PodMetaText()
    spec: msgspec.Raw = msgspec.Raw(b"")
    status: msgspec.Raw = msgspec.Raw(b"")


_SPECS: TextMemo[PodSpec] = TextMemo(8 << 20)
_STATUSES: TextMemo[PodStatus] = TextMemo(1 << 19)
_LABELS: TextMemo[dict[str, str]] = TextMemo(1 << 20)
_OWNERS: TextMemo[tuple[OwnerReference, ...]] = TextMemo(1 << 20)

_SPEC_DECODER = msgspec.json.Decoder(BoundPodSpec)
_STATUS_DECODER = msgspec.json.Decoder(PodStatus)
_LABEL_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(dict[str, str] | None)
_OWNER_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(tuple[OwnerReference, ...] | None)


class PodWire(Wire, frozen=True):
    """A pod on the wire, decoded as a whole: for parsed trees."""

    metadata: ObjectMeta = EMPTY_META
    spec: BoundPodSpec = msgspec.field(default_factory=BoundPodSpec)
    status: PodStatus = EMPTY_STATUS


def build_pod(wire: PodWire | PodText, source: bytes | None = None) -> Pod:
    """Make a pod, with its source if given; its spec, labels and similar parts are shared between equal pods."""
    if not wire.metadata.name and not wire.metadata.generate_name:
        raise FieldError("metadata.name", "expected a name; got none")
    if isinstance(wire, PodText):
        meta = wire.metadata
        text = bytes(meta.labels)
        labels = _LABELS.get(text)
        if labels is None:
            labels = _LABELS.put(text, read_labels(text))
        text = bytes(meta.owner_references)
        owners = _OWNERS.get(text)
        if owners is None:
            owners = _OWNERS.put(text, read_owners(text))
        spec, node_name = read_spec(bytes(wire.spec))
        return _make(meta, labels, owners, spec, node_name, read_status(bytes(wire.status)), source)
    node_name = wire.spec.node_name
    return assemble_pod(wire.metadata, _share_spec(wire.spec), node_name, wire.status, source)


def assemble_pod(
    meta: ObjectMeta, spec: PodSpec, node_name: str, status: PodStatus, source: bytes | None
) -> Pod:
    """Make a named pod of its parts; `spec` is interned."""
    labels, owners = shared_map(meta.labels), meta.owner_references
    shared_owners = shared(owners) if owners else ()
    return _make(meta, labels, shared_owners, spec, node_name, _share_status(status), source)


def _make(
    meta: ObjectMeta | PodMetaText,
    labels: dict[str, str],
    owners: tuple[OwnerReference, ...],
    spec: PodSpec,
    node_name: str,
    status: PodStatus,
    source: bytes | None,
) -> Pod:
    pod_type: Any = Pod if source is None else SourcedPod
    created = meta.creation_timestamp
    made: Pod = pod_type(  # in the order of the fields, which is faster than by name
        meta.name,
        shared_text(meta.namespace or DEFAULT_NAMESPACE.get()),
        meta.uid,
        labels,
        shared_map(meta.annotations) if meta.annotations else NO_STRINGS,
        owners,
        created and shared_text(created),
        meta.deletion_timestamp,
        meta.resource_version,
        meta.generation,
        shared_text(meta.generate_name) if meta.generate_name else "",
        shared_text(node_name),
        spec,
        status,
    )
    if source is not None:
        _set(made, "source", source)
    return made


def read_labels(text: bytes) -> dict[str, str]:
    """The labels in a text, or another map of texts; an empty text is an absent one."""
    return shared_map(_LABEL_DECODER.decode(text)) if text else NO_STRINGS


def read_owners(text: bytes) -> tuple[OwnerReference, ...]:
    """The owners in a text; an empty text is an absent one."""
    decoded = _OWNER_DECODER.decode(text) if text else None
    return shared(decoded) if decoded else ()


def read_spec(text: bytes) -> tuple[PodSpec, str]:
    """The shared spec in a text, and the name of the node; raises FieldError for an invalid one."""
    if not text:
        return EMPTY_SPEC, ""
    key, node_name = _split(text)
    known = _SPECS.get(key)
    if known is not None:
        return known, node_name
    decoded = _SPEC_DECODER.decode(text)
    found = decoded.node_name
    spec = _share_spec(decoded)
    if found == node_name and (_ACCESS not in text or _ACCESS not in spec.key):
        _SPECS.put(key, spec)
    return spec, found


def _split(text: bytes) -> tuple[bytes, str]:
    """The name of the node in the text of a spec, after the text with gaps for it and for the service account's volume.

    A text that may have several names of nodes has no gap for one.
    """
    node_name = ""
    head, found, tail = text.partition(_NODE_KEY)
    if found and _NODE_KEY not in tail:
        colon, *rest = tail.split(b'"', 2)
        if len(rest) == 2 and colon.strip() == b":" and b"\\" not in rest[0]:
            node_name = rest[0].decode()
            text = b"".join((head, _GAP, rest[1]))
    at = text.find(_ACCESS)
    if at >= 0:
        text = text.replace(text[at : at + _ACCESS_SIZE], _GAP)
    return text, node_name


def _share_spec(spec: BoundPodSpec) -> PodSpec:
    """The shared spec of this content, without the node; raises FieldError for an invalid one."""
    key = spec_key(spec)
    common = shared_spec(key)
    if common is None:
        refuse(spec_problems(spec))
        common = share_spec(key)
    return common


def read_status(text: bytes) -> PodStatus:
    """The status in a text; the same one for the same text, if that is short."""
    if not text:
        return EMPTY_STATUS
    known = _STATUSES.get(text)
    if known is None:
        known = _share_status(_STATUS_DECODER.decode(text))
        if len(text) <= SHORT_STATUS:
            _STATUSES.put(text, known)
    return known


def _share_status(status: PodStatus) -> PodStatus:
    """Share the parts of a decoded status that many pods have in common."""
    if status == EMPTY_STATUS:
        return EMPTY_STATUS
    _set(status, "phase", shared_text(status.phase))
    if status.start_time:
        _set(status, "start_time", shared_text(status.start_time))
    if status.resources is not None or status.allocated_resources is not None:
        refuse(pod_level_status_problems(status))
    if status.conditions:
        _set(status, "conditions", shared(status.conditions))
    if status.container_statuses:
        statuses = shared(status.container_statuses, _check_container_statuses)
        _set(status, "container_statuses", statuses)
    if status.init_container_statuses:
        statuses = shared(status.init_container_statuses, _check_init_container_statuses)
        _set(status, "init_container_statuses", statuses)
    return status


def _check_container_statuses(statuses: tuple[ContainerStatus, ...]) -> None:
    refuse(container_status_problems(statuses, "status.containerStatuses"))


def _check_init_container_statuses(statuses: tuple[ContainerStatus, ...]) -> None:
    refuse(container_status_problems(statuses, "status.initContainerStatuses"))
