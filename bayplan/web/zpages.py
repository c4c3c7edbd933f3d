"""Zpages: /statusz and /flagz, as kube-scheduler v1.36 serves them (gates ComponentStatusz and ComponentFlagz).

Plain text for people; JSON or YAML of `config.k8s.io` for programs that ask for it in full:
`Accept: application/json;v=v1beta1;g=config.k8s.io;as=Statusz`. CBOR as well with the gate CBORServingAndStorage.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml
from aiohttp import web

from ..clock import rfc3339
from .access import status_response, status_tree

SELF_DESCRIBED = bytes.fromhex("d9d9f7")
"""Tag 55799."""
COUNT, BYTES, LIST, MAP = 0, 2, 4, 5
"""Major types."""
SIZES = {24: 1, 25: 2, 26: 4, 27: 8}
"""Bytes of a number, by the code that stands in for it in the first byte."""


def encode_cbor(value: Any) -> bytes:
    """Encodes maps, lists, texts and numbers from 0 on."""
    return SELF_DESCRIBED + _item(value)


def _item(value: Any) -> bytes:
    match value:
        case str():
            text = value.encode()
            return _head(BYTES, len(text)) + text
        case int() if not isinstance(value, bool) and value >= 0:
            return _head(COUNT, value)
        case Mapping():
            pairs = (_item(key) + _item(held) for key, held in value.items())
            return _head(MAP, len(value)) + b"".join(pairs)
        case list():
            return _head(LIST, len(value)) + b"".join(map(_item, value))
    raise TypeError(f"cbor: expected a map, a list, a text or a number from 0 on; got {value!r}")


def _head(major: int, number: int) -> bytes:
    """Major type with a number: a value, a length in bytes, or a count of items."""
    if number < 24:
        return bytes((major << 5 | number,))
    code, size = next(pair for pair in SIZES.items() if number < 1 << 8 * pair[1])
    return bytes((major << 5 | code,)) + number.to_bytes(size)


GROUP = "config.k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")
DEPRECATED = "v1alpha1"
TEXT, JSON, YAML = "text/plain", "application/json", "application/yaml"
CBOR = "application/cbor"
MEDIA_TYPES = (JSON, YAML, TEXT)
FOR_PEOPLE = "For people, not for programs: this text may look different in any release."

Tree = dict[str, Any]


class Component(msgspec.Struct, frozen=True):
    """Facts about the process for /statusz and /flagz."""

    name: str
    version: str
    emulated_version: str
    flags: Mapping[str, str] | None = None
    """The flags with their values, given or not; None if there is no /flagz."""
    has_status: bool = True
    """Whether there is /statusz."""
    has_cbor: bool = False
    """Whether CBOR is served."""
    started: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))


class AcceptedForm(msgspec.Struct, frozen=True):
    """An accepted media type: `version` is that of the structured form, "" for text."""

    media_type: str
    version: str = ""


def zpage_routes(component: Component, paths: Sequence[str]) -> list[web.RouteDef]:
    """The two pages; /statusz lists the first element of `paths`, and /flagz."""
    flags, routes = component.flags, []
    every = {*paths, *(["/flagz"] if flags is not None else [])}
    listed = sorted({f"/{path.split('/')[1]}" for path in every} - {"/"})
    if component.has_status:
        read = lambda: _status(component, listed)  # noqa: E731
        routes.append(_page("Statusz", component, read, _status_text))
    if flags is not None:
        routes.append(_page("Flagz", component, lambda: {"flags": dict(flags)}, _flag_text))
    return routes


def _page(
    kind: str, component: Component, read: Callable[[], Tree], write: Callable[[Tree], str]
) -> web.RouteDef:
    path, name = f"/{kind.lower()}", component.name
    media_types = (*MEDIA_TYPES, CBOR) if component.has_cbor else MEDIA_TYPES

    async def answer(request: web.Request) -> web.Response:
        accept = request.headers.get("Accept", "")
        asked = negotiate(accept, kind, media_types)
        if asked is None:
            return _refusal(accept, media_types)
        tree = read()
        if not asked.version:
            text = f"\n{name} {path[1:]}\n{FOR_PEOPLE}\n\n{write(tree)}"
            return web.Response(text=text, content_type=TEXT, charset="utf-8")
        metadata = {"name": name}
        head = {"kind": kind, "apiVersion": f"{GROUP}/{asked.version}", "metadata": metadata}
        form = f"{asked.media_type};g={GROUP};v={asked.version};as={kind}"
        headers = {"Content-Type": form}
        if asked.version == DEPRECATED:
            headers["Warning"] = f'299 - "{GROUP}/{DEPRECATED} is deprecated: use {VERSIONS[0]}"'
        return web.Response(body=ENCODERS[asked.media_type]({**head, **tree}), headers=headers)

    return web.get(path, answer)


ENCODERS: dict[str, Callable[[Tree], bytes]] = {
    JSON: lambda tree: json.dumps(tree).encode(),
    YAML: lambda tree: yaml.safe_dump(tree).encode(),
    CBOR: encode_cbor,
}


def _refusal(accept: str, media_types: Sequence[str]) -> web.Response:
    """Names the media types, in CBOR where that was asked for and is one of them."""
    refusal = (
        406,
        "NotAcceptable",
        f"only the following media types are accepted: {', '.join(media_types)}",
    )
    if CBOR in media_types and CBOR in (_clause(text)[0] for text in accept.split(",")):
        return web.Response(status=406, body=encode_cbor(status_tree(*refusal)), content_type=CBOR)
    return status_response(*refusal)


def negotiate(
    accept: str, kind: str, media_types: Sequence[str] = MEDIA_TYPES
) -> AcceptedForm | None:
    """The first media type of an Accept header that can be served, the best quality first; None if none can."""
    if not accept.strip():
        return AcceptedForm(TEXT)
    clauses = sorted(map(_clause, accept.split(",")), key=lambda one: -one[1])
    for media_type, _, parameters in clauses:
        if media_type in (TEXT, "text/*", "*/*"):
            return AcceptedForm(TEXT)
        if media_type in media_types and _is_known(parameters, kind):
            return AcceptedForm(media_type, parameters["v"])
    return None


def _clause(text: str) -> tuple[str, float, dict[str, str]]:
    media_type, *rest = [part.strip() for part in text.split(";")]
    parameters = dict(part.partition("=")[::2] for part in rest)
    quality = parameters.pop("q", "1")
    return media_type, float(quality) if quality.replace(".", "", 1).isdigit() else 0.0, parameters


def _is_known(parameters: Mapping[str, str], kind: str) -> bool:
    asked = parameters.get("g"), parameters.get("as")
    return asked == (GROUP, kind) and parameters.get("v") in VERSIONS


def _status(component: Component, paths: Sequence[str]) -> Tree:
    uptime = datetime.now(UTC) - component.started
    return {
        "startTime": rfc3339(component.started),
        "uptimeSeconds": int(uptime.total_seconds()),
        "goVersion": f"none: {platform.python_implementation()} {platform.python_version()}",
        "binaryVersion": component.version,
        "emulationVersion": component.emulated_version,
        "paths": list(paths),
    }


def _status_text(tree: Tree) -> str:
    hours, seconds = divmod(tree["uptimeSeconds"], 3600)
    lines = {
        "Started": tree["startTime"],
        "Up": f"{hours} hr {seconds // 60:02} min {seconds % 60:02} sec",
        "Runtime": tree["goVersion"].removeprefix("none: "),
        "Binary version": tree["binaryVersion"],
        "Emulation version": tree["emulationVersion"],
        "Paths": " ".join(tree["paths"]),
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items())


def _flag_text(tree: Tree) -> str:
    return "".join(f"{name}={value}\n" for name, value in sorted(tree["flags"].items()))
