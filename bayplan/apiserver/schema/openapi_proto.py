"""OpenAPI as protocol buffers: the form in which clients read the OpenAPI v2 document.

Mirrors OpenAPIv2.proto of github.com/google/gnostic: the field numbers used by our document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Tree = Mapping[str, Any]
_YES = b"\x10\x01"
"""The second field of a message, a boolean, as true."""
MIME = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
RETURNED_MIME = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Content type of the response: a media type must not have an @, though clients request one."""


def encode_v2(document: Tree) -> bytes:
    """The document in the wire format of protocol buffers."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(
        _message(2, _text(1, path) + _message(2, _path_item(item)))
        for path, item in document["paths"].items()
    )
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


def _path_item(item: Tree) -> bytes:
    numbers = {"put": 3, "post": 4, "patch": 8}
    return b"".join(_message(numbers[name], _operation(value)) for name, value in item.items())


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
        _message(number, _text(1, name) + _message(2, _text(2, _yaml(value))))
        for name, value in tree.items()
        if name.startswith("x-")
    )


def _yaml(value: Any) -> str:
    """The value as YAML; JSON is YAML."""
    return msgspec.json.encode(value).decode()


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
