"""OpenAPI: the documents over HTTP, each built on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec

from ..registry.resource_table import ApiResource, ResourceCatalog
from ..registry.status_errors import no_such_path, not_acceptable
from ..schema.openapi_documents import document_v2, document_v3, root_of
from .http_server import HttpResponse
from .requests import JSON
from .responses import respond, respond_tree

_ENCODER = msgspec.json.Encoder(order="deterministic")


class OpenApiDocuments:
    """The documents of a catalog. They are built anew after a change of the custom resources."""

    def __init__(self, catalog: ResourceCatalog) -> None:
        self._catalog = catalog
        self._revision = -1
        self._served: dict[str, list[ApiResource]] = {}
        self._built: dict[str, bytes] = {}

    def answer(self, path: str, accept: str) -> HttpResponse:
        """The document at `path`, below /openapi."""
        self._refresh()
        if path == "/openapi/v2":
            if "proto-openapi" in accept:
                return HttpResponse(self._v2("proto"), 200, {"Content-Type": RETURNED_MIME})
            if accept and JSON not in accept and "*/*" not in accept:
                raise not_acceptable([JSON, MIME])
            return respond(self._v2("json"))
        if path == "/openapi/v3":
            return respond_tree({"paths": self._index()})
        root = path.removeprefix("/openapi/v3/")
        if root not in self._served:
            raise no_such_path()
        if root not in self._built:
            self._built[root] = msgspec.json.encode(document_v3(self._served[root]))
        return respond(self._built[root])

    def _refresh(self) -> None:
        if self._revision == self._catalog.revision:
            return
        self._revision = self._catalog.revision
        self._served, self._built = {}, {}
        for resource in self._catalog.resources:
            self._served.setdefault(root_of(resource), []).append(resource)

    def _v2(self, form: str) -> bytes:
        if form not in self._built:
            document = document_v2(one for served in self._served.values() for one in served)
            encode = encode_v2 if form == "proto" else msgspec.json.encode
            self._built[form] = encode(document)
        return self._built[form]

    def _index(self) -> dict[str, dict[str, str]]:
        """The index of documents; the hash lets clients cache them."""
        return {
            root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={_mark(served)}"}
            for root, served in self._served.items()
        }


def _mark(served: list[ApiResource]) -> str:
    """A hash of the custom schemas in a document; the others do not change."""
    custom = [one.custom and one.custom.schema.tree for one in served]
    names = [
        (one.plural, one.kind, one.is_namespaced, tree)
        for one, tree in zip(served, custom, strict=True)
    ]
    return blake2b(_release() + _ENCODER.encode(names), digest_size=16).hexdigest().upper()


@cache
def _release() -> bytes:
    from ... import __version__

    return __version__.encode()


Tree = Mapping[str, Any]
_YES = b"\x10\x01"
"""The second field of a message, a boolean, as true."""
MIME = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
RETURNED_MIME = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Content type of the response: a media type must not have an @, though clients request one."""


def encode_v2(document: Tree) -> bytes:
    """The document in the wire format of protocol buffers."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    numbers = {"put": 3, "post": 4, "patch": 8}
    paths = b""
    for path, item in document["paths"].items():
        verbs = (_message(numbers[verb], _operation(one)) for verb, one in item.items())
        paths += _message(2, _text(1, path) + _message(2, b"".join(verbs)))
    definitions = b"".join(
        _message(1, _text(1, name) + _message(2, _schema(schema)))
        for name, schema in document["definitions"].items()
    )
    return (
        _text(1, document["swagger"])
        + _message(2, info)
        + _message(8, paths)
        + _message(9, definitions)
    )


def _schema(schema: Tree) -> bytes:
    out = [_text(1, schema.get("$ref", "")), _text(2, schema.get("format", ""))]
    out.append(_text(4, schema.get("description", "")))
    out += [_text(19, name) for name in schema.get("required", ())]
    if "additionalProperties" in schema:
        more = schema["additionalProperties"]
        allows = _message(1, _schema(more)) if isinstance(more, Mapping) else _YES * bool(more)
        out.append(_message(21, allows))
    if "type" in schema:
        out.append(_message(22, _text(1, schema["type"])))
    if "items" in schema:
        out.append(_message(23, _message(1, _schema(schema["items"]))))
    if "properties" in schema:
        properties = b"".join(
            _message(1, _text(1, name) + _message(2, _schema(value)))
            for name, value in schema["properties"].items()
        )
        out.append(_message(25, properties))
    out.append(_extensions(31, schema))
    return b"".join(out)


def _operation(operation: Tree) -> bytes:
    out = [_text(5, operation["operationId"])]
    out += [_text(7, kind) for kind in operation.get("consumes", ())]
    for parameter in operation["parameters"]:
        query = _text(2, "query") + _text(4, parameter["name"]) + _text(6, parameter["type"])
        out.append(_message(8, _message(1, _message(2, _message(3, query)))))
    response = _message(1, _text(1, "200") + _message(2, _message(1, _text(1, "OK"))))
    out.append(_message(9, response))
    out.append(_extensions(13, operation))
    return b"".join(out)


def _extensions(number: int, tree: Tree) -> bytes:
    return b"".join(
        _message(
            number, _text(1, name) + _message(2, _text(2, msgspec.json.encode(value).decode()))
        )
        for name, value in tree.items()
        if name.startswith("x-")
    )


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode()) if text else b""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
