"""Responses: objects on the wire, in the requested form and version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...clock import Clock
from ..registry.conversion import from_stored
from ..registry.custom.values import set_defaults
from ..registry.resource_table import ApiResource
from ..registry.status_errors import StatusError
from ..store.records import Record
from .http_server import HttpResponse
from .printer_columns import make_table
from .requests import JSON, PARTIAL, PARTIAL_LIST, TABLE

HEADERS = {"Cache-Control": "no-cache, private"}
JSON_HEADERS = {**HEADERS, "Content-Type": JSON}
_ENCODER = msgspec.json.Encoder()


def warning_headers(texts: Sequence[str]) -> dict[str, str]:
    """The header with warnings; none without texts."""
    if not texts:
        return {}
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return {"Warning": ", ".join(f'299 - "{text}"' for text in quoted)}


def respond(
    data: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """A response with JSON bytes."""
    return HttpResponse(data, status, {**JSON_HEADERS, **headers} if headers else JSON_HEADERS)


def respond_tree(tree: Any, status: int = 200) -> HttpResponse:
    """A response with a tree as JSON."""
    return respond(_ENCODER.encode(tree), status)


def respond_error(error: StatusError) -> HttpResponse:
    """An error response."""
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s is not None else None
    return respond(_ENCODER.encode(error.as_status()), error.code, headers)


def success(code: int, details: Mapping[str, Any] | None = None) -> HttpResponse:
    """The Status of a success without an object."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    more = {"details": details} if details else {"code": code}
    return respond_tree({**status, **more}, code)


class View:
    """The client's view of a resource's objects."""

    def __init__(
        self, resource: ApiResource, form: str, clock: Clock, include_object: str = "Metadata"
    ) -> None:
        self.resource = resource
        self.form = form
        self._clock = clock
        self._include_object = include_object
        custom = resource.custom
        self._schema = custom.schema if custom is not None and custom.schema.has_defaults else None
        self.is_plain = not form and not resource.stored_as and self._schema is None
        """Whether the stored form is the served form."""

    def object(self, record: Record) -> bytes:
        """One object."""
        if self.is_plain:
            return self.resource.head + record.data[1:]
        return _ENCODER.encode(self.tree(record))

    def tree(self, record: Record) -> dict[str, Any]:
        """One object, as a tree."""
        if self.form == TABLE:
            return self.table([record], {"resourceVersion": str(record.resource_version)})
        if self.form in (PARTIAL, PARTIAL_LIST):
            return partial(record.decode())
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return {**head, **self._served(record)}

    def _served(self, record: Record) -> dict[str, Any]:
        """An object in the version of the resource, with the defaults of its schema."""
        tree = from_stored(self.resource, record.decode())
        if self._schema is not None:
            set_defaults(tree, self._schema.tree)
        return tree

    def list(self, records: Sequence[Record], metadata: Mapping[str, Any]) -> bytes:
        """Many objects."""
        if self.form == TABLE:
            return _ENCODER.encode(self.table(records, metadata))
        if self.form in (PARTIAL, PARTIAL_LIST):
            items = [partial(record.decode()) for record in records]
            head = {"kind": PARTIAL_LIST, "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            return _ENCODER.encode({**head, "items": items})
        if self.is_plain:
            bodies = [record.data for record in records]
        else:
            bodies = [_ENCODER.encode(self._served(record)) for record in records]
        head_bytes = b'{"kind":"%s","apiVersion":"%s","metadata":%s,"items":[' % (
            self.resource.list_kind.encode(),
            self.resource.api_version.encode(),
            _ENCODER.encode(metadata),
        )
        return b"".join((head_bytes, b",".join(bodies), b"]}"))

    def table(
        self,
        records: Sequence[Record],
        metadata: Mapping[str, Any],
        with_columns: bool = True,
    ) -> dict[str, Any]:
        """Rows of cells, as kubectl prints them."""
        table = make_table(self.resource, records, self._clock.now(), self._include_object)
        table["metadata"] = dict(metadata)
        if not with_columns:
            table["columnDefinitions"] = []
        return table


def partial(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Only the metadata of an object."""
    return {"kind": PARTIAL, "apiVersion": "meta.k8s.io/v1", "metadata": tree["metadata"]}
