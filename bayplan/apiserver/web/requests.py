"""Requests: parse path, query, headers and body of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...api.wire.protobuf_fields import ProtobufError
from ...yaml_tree import YamlError, iter_trees
from ..registry.object_registry import DeleteOptions
from ..registry.status_errors import bad_request, not_acceptable, unsupported_media_type
from ..schema.json_patch import MAX_DEPTH, is_deeper
from ..schema.protobuf import MIME as PROTOBUF
from ..schema.protobuf import decode_object
from .http_requests import WholeRequest

JSON, YAML = "application/json", "application/yaml"
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_BODIES = (JSON, YAML, PROTOBUF)
MAX_DIGITS = 19
_FALSE = ("false", "0")
Tree = dict[str, Any]


class Options(msgspec.Struct, frozen=True):
    """The options in the query."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    version_match: str = ""
    timeout_s: float | None = None
    wants_bookmarks: bool = False
    sends_initial: bool = False
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool = False
    include_object: str = "Metadata"


NO_OPTIONS = Options()


def parse_options(query: Mapping[str, str]) -> Options:
    """Parse the query; raises StatusError (400) when it is invalid."""
    if not query:
        return NO_OPTIONS
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise bad_request(f'Invalid value: "{dry_run}": dryRun: expected All')
    timeout_s = float(_number(query, "timeoutSeconds"))
    return Options(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=_number(query, "limit"),
        continue_token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        version_match=query.get("resourceVersionMatch", ""),
        timeout_s=timeout_s if timeout_s > 0 else None,
        wants_bookmarks=is_true(query, "allowWatchBookmarks"),
        sends_initial=is_true(query, "sendInitialEvents"),
        dry_run=bool(dry_run),
        field_manager=query.get("fieldManager", ""),
        field_validation=query.get("fieldValidation", ""),
        force=is_true(query, "force"),
        include_object=query.get("includeObject") or "Metadata",
    )


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Whether an option is set; every value but these two sets it, as in Kubernetes."""
    return name in query and query[name].lower() not in _FALSE


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "0")
    if not is_number(text.removeprefix("-")):
        raise bad_request(f'Invalid value: "{text}": {name}: expected a number')
    return int(text)


def is_number(text: str) -> bool:
    """Whether this is a number without a sign that fits 64 bits."""
    return text.isascii() and text.isdecimal() and len(text) < MAX_DIGITS


def wanted_form(accept: str) -> str:
    """The form of the response that the client prefers: "", Table or PartialObjectMetadata(List).

    Raises StatusError (406) when it accepts no supported form.
    """
    if not accept or (accept.startswith(JSON) and ";" not in accept):
        return ""
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        if media not in (JSON, "*/*", "application/*"):
            continue
        given = dict(piece.partition("=")[::2] for piece in parameters)
        form = given.get("as", "")
        if not form or (form in (TABLE, PARTIAL, PARTIAL_LIST) and given.get("g") == "meta.k8s.io"):
            return form
    raise not_acceptable([JSON])


def read_body(request: WholeRequest) -> Tree:
    """The object in the body; raises StatusError when it is invalid."""
    # Without a type it is JSON. Types that a page of another site may send are not accepted.
    kind = request.content_type if request.has_header("content-type") else JSON
    if kind not in _BODIES:
        raise unsupported_media_type(_BODIES)
    data = request.body
    if kind == PROTOBUF:
        return parse_protobuf(data)
    tree = parse_yaml(data) if kind == YAML else parse_json(data)
    if not isinstance(tree, dict):
        raise bad_request("the body of the request is not an object")
    return tree


def parse_json(data: bytes) -> Any:
    """Decode JSON; raises StatusError (400) when it is malformed."""
    try:
        tree = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"the body of the request is no JSON: {error}") from None
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        check_depth(tree)
    return tree


def check_depth(tree: Any) -> None:
    """Reject an object that is nested too deeply; raises StatusError (400)."""
    if is_deeper(tree, MAX_DEPTH):
        raise bad_request(f"the body of the request has more than {MAX_DEPTH} levels")


def parse_protobuf(data: bytes) -> Tree:
    """Decode protocol buffers; raises StatusError (400) when they are malformed."""
    try:
        tree = decode_object(data)
    except ProtobufError as error:
        raise bad_request(f"the body of the request is no object: {error}") from None
    check_depth(tree)
    return tree


def parse_yaml(data: bytes) -> Any:
    """Decode YAML, or JSON; raises StatusError (400) when it is malformed."""
    if data[:1] == b"{" and _is_json(data):
        return parse_json(data)
    try:
        trees = list(iter_trees(data))
    except YamlError as error:
        raise bad_request(f"the body of the request is no YAML: {error}") from None
    if len(trees) > 1:
        raise bad_request("the body of the request has more than one YAML document")
    return trees[0] if trees else None


def _is_json(data: bytes) -> bool:
    """False for YAML in flow style, which begins like JSON; True for JSON that is nested too deeply."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    except RecursionError:
        return True
    return True


def parse_delete_options(body: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    """The deletion options, from the body or else from the query."""
    conditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        grace = _number(query, "gracePeriodSeconds")
    propagation = str(body.get("propagationPolicy") or query.get("propagationPolicy") or "")
    if not propagation and body.get("orphanDependents") is not None:
        propagation = "Orphan" if body["orphanDependents"] else "Background"
    if propagation not in ("", "Orphan", "Background", "Foreground"):
        raise bad_request(f'Invalid value: "{propagation}": propagationPolicy: unknown')
    return DeleteOptions(
        grace_s=grace if isinstance(grace, int) else None,
        propagation=propagation,
        uid=str(conditions.get("uid") or ""),
        resource_version=str(conditions.get("resourceVersion") or ""),
        dry_run=bool(body.get("dryRun") or query.get("dryRun")),
    )
