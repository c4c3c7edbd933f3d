"""OpenAPI: the documents over HTTP, each built on first use."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b

import msgspec

from ..registry.resource_table import ApiResource
from ..registry.served_resources import ResourceCatalog
from ..registry.status_errors import no_such_path, not_acceptable
from ..schema.openapi_documents import Served, document_v2, document_v3
from ..schema.openapi_proto import MIME, RETURNED_MIME, encode_v2
from .http_server import HttpResponse
from .requests import JSON
from .responses import respond, respond_tree

_ENCODER = msgspec.json.Encoder(order="deterministic")


class OpenApiDocuments:
    """The documents of a catalog. They are built anew after a change of the custom resources."""

    def __init__(self, catalog: ResourceCatalog) -> None:
        self._catalog = catalog
        self._revision = -1
        self._served: dict[str, list[Served]] = {}
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
            one = served_of(resource)
            self._served.setdefault(one.root, []).append(one)

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


def served_of(resource: ApiResource) -> Served:
    """What the documents say of a resource."""
    return Served(
        resource.group,
        resource.version,
        resource.kind,
        resource.plural,
        resource.schema,
        resource.is_namespaced,
        "list" in resource.verbs,
        resource.custom.schema.tree if resource.custom is not None else None,
        resource.list_kind,
    )


def _mark(served: list[Served]) -> str:
    """A hash of what a document is built from: of custom schemas; the others do not change."""
    names = [(one.plural, one.kind, one.is_namespaced, one.custom) for one in served]
    return blake2b(_release() + _ENCODER.encode(names), digest_size=16).hexdigest().upper()


@cache
def _release() -> bytes:
    from ... import __version__

    return __version__.encode()
