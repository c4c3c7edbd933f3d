"""OpenAPI: the documents over HTTP, each built on first use."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b

import msgspec
from aiohttp import web

from ..registry.errors import no_such_path, not_acceptable
from ..registry.resources import RESOURCES
from ..schema.openapi import Served, document_v2, document_v3
from ..schema.openapi_proto import MIME, RETURNED_MIME, encode_v2
from .answers import respond, respond_tree
from .requests import JSON


def _served() -> list[Served]:
    return [
        Served(r.group, r.version, r.kind, r.plural, r.schema, r.is_namespaced, "list" in r.verbs)
        for r in RESOURCES
    ]


@cache
def _v2() -> bytes:
    return msgspec.json.encode(document_v2(_served()))


@cache
def _v2_proto() -> bytes:
    return encode_v2(document_v2(_served()))


@cache
def _v3(root: str) -> bytes:
    served = [one for one in _served() if one.root == root]
    if not served:
        raise no_such_path()
    return msgspec.json.encode(document_v3(served))


def answer_openapi(path: str, accept: str) -> web.Response:
    """The document at `path`, below /openapi."""
    if path == "/openapi/v2":
        if "proto-openapi" in accept:
            return web.Response(body=_v2_proto(), headers={"Content-Type": RETURNED_MIME})
        if accept and JSON not in accept and "*/*" not in accept:
            raise not_acceptable([JSON, MIME])
        return respond(_v2())
    if path == "/openapi/v3":
        return respond_tree({"paths": _index()})
    root = path.removeprefix("/openapi/v3/")
    if root == path:
        raise no_such_path()
    return respond(_v3(root))


@cache
def _index() -> dict[str, dict[str, str]]:
    """The index of documents; the hash lets clients cache them."""
    index = {}
    for root in dict.fromkeys(one.root for one in _served()):
        mark = blake2b(_v3(root), digest_size=16).hexdigest().upper()
        index[root] = {"serverRelativeURL": f"/openapi/v3/{root}?hash={mark}"}
    return index
