"""Decoder: decode the objects of one text in order."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..api.wire.decode import NO_KIND, UnknownObject, decode_items, iter_objects
from ..api.wire.kinds import KINDS
from ..errors import DecodeError
from ..yaml_tree import RepeatedKey, UndefinedAliasError, YamlError, iter_trees
from .bay_format import is_bay
from .bay_objects import iter_bay_objects
from .field_check import ITEMS, MisfitField, unknown_in_document, unknown_in_items
from .foreign_documents import helm_fault, is_kustomization, kustomize, nameless_fault
from .kindless_objects import with_kind
from .object_check import InvalidObject
from .pieces import (
    JSON_PIECE,
    YAML_PIECE,
    ItemList,
    cut_documents,
    find_json_list,
    find_yaml_list,
)
from .sources import Source

REPARSE_UP_TO = 64 << 20
"""Texts up to this size are read again as a whole when a piece fails, since the cut may be wrong."""

LONG_LIST = 1 << 16
"""Objects of longer lists are not searched for unknown fields if an API server wrote all of them."""

CUTS = 8
"""Number of cuts in a row that are tried in a list without line breaks, before it is read as a whole."""

_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_PROBE = 4096
_SCHEDULER_POLICY = "expected a kind of v1; got Policy"
_TYPE_NAMES = {str: "text", list: "a list", bool: "a boolean"}
_NOT_SPACE = re.compile(r"\S")
_LOGS = re.compile(
    r"==== START logs for container .*?\n==== END logs for container [^\n]*", re.DOTALL
)
"""Logs of a container between the lists of `kubectl cluster-info dump`."""
_COMMA = re.compile(rb"\s*,")
_JSON_START = re.compile(rb"\s*[{\[]\s*[\"{\[]")


class Found(NamedTuple):
    """A part of a text, its document and item (-1 if it has none), and the position in the text.

    The content is an object, consecutive objects of a list from `item` on, an unknown field, an object that
    kube-apiserver refuses, or a note about the text of the document.
    """

    content: object
    document: int
    item: int
    position: int


class NotInPiecesError(Exception):
    """The text must be read as a whole."""


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that distinguish a list from other objects."""

    kind: str = ""
    api_version: str = ""


_HEADS = msgspec.json.Decoder(_Head)


def iter_source(source: Source, in_pieces: bool) -> Iterator[Found]:
    """Yield the objects of a source.

    Raises DecodeError with the place, and NotInPiecesError where reading piece by piece failed but
    reading as a whole might not.
    """
    start = source.data[:_PROBE].removeprefix(_BOM).lstrip(_SPACE)
    if is_bay(source.data):
        yield from _iter_bay(source)
    elif start[:1] in (b"{", b"["):
        yield from _iter_json(source, in_pieces)
    elif in_pieces:
        yield from _iter_yaml_pieces(source)
    else:
        yield from _iter_yaml(source, 0, len(source.data), before=0)


def _iter_bay(source: Source) -> Iterator[Found]:
    count = 0
    for objects, end in iter_bay_objects(source.data, source.name):
        yield Found(objects, 1, count, end)
        count += len(objects)


def _iter_json(source: Source, in_pieces: bool) -> Iterator[Found]:
    items = find_json_list(source.data) if in_pieces else None
    if items is not None:
        yield from _iter_json_items(source, items)
        return
    text = source.data[:].removeprefix(_BOM)
    try:
        yield from _decode(source, text, document=1)
    except DecodeError as error:
        if "trailing characters" in error.problem:
            yield from _iter_json_stream(source, text)
        elif error.problem.startswith("expected JSON") and "truncated" not in error.problem:
            yield from _iter_flow(source, 0, 0, error)
        else:
            raise


def _iter_flow(source: Source, start: int, before: int, error: DecodeError) -> Iterator[Found]:
    """Yield from YAML that begins like JSON, from `start` and after `before` documents.

    Raises `error` if the first document is no YAML either, and its start is that of JSON.
    """
    document, repeated = before, list[RepeatedKey]()
    text = source.data[start:].removeprefix(_BOM)
    try:
        for tree in iter_trees(text, repeated.append):
            document += 1
            yield from _notes(source, repeated, document, start)
            yield from _decode_tree(source, tree, document, start)
    except YamlError as fault:
        if document == before and _JSON_START.match(text):
            raise error from None
        raise _yaml_fault(source, fault, document + 1, start) from None


def _yaml_fault(source: Source, fault: YamlError, document: int, start: int) -> DecodeError:
    """The error for a fault in the YAML from `start` on."""
    line = fault.line + source.data[:start].count(b"\n") if fault.line else 0
    return DecodeError(_place(source, document), str(YamlError(fault.problem, line)))


def _iter_json_items(source: Source, items: ItemList) -> Iterator[Found]:
    try:
        head = _HEADS.decode(items.shell.removeprefix(_BOM))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise NotInPiecesError from None
    known = KINDS.get(head.kind.removesuffix("List"))
    is_foreign = known is not None and head.api_version not in ("", known.api_version)
    if not head.kind.endswith("List") or is_foreign:
        raise NotInPiecesError
    count, start = 0, items.start
    while start < items.end:
        text, end, objects = _next_items(source, items, start, head.kind)
        for found in _found_items(source, text, head.kind, count, objects):
            yield found._replace(position=start)
            count += _objects_in(found)
        start = end


def _next_items(
    source: Source, items: ItemList, start: int, kind: str
) -> tuple[bytes, int, list[object] | None]:
    """The next items as a JSON array, their end, and the objects, or None if they must be decoded one by one.

    Raises NotInPiecesError if several cuts in a row leave no whole items.
    """
    comma = _COMMA.match(source.data, start)
    first, end = comma.end() if comma else start, start + JSON_PIECE
    for _ in range(CUTS):
        end = items.cut(source.data, end)
        with memoryview(source.data) as view:
            text = b"".join((b"[", view[first:end], b"]"))
        try:
            objects = decode_items(text, kind)
        except DecodeError:
            end += 1
            continue
        if objects is not None or _is_json(text):
            return text, end, objects
        end += 1
    raise NotInPiecesError


def _is_json(text: bytes) -> bool:
    try:
        ITEMS.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _found_items(
    source: Source, text: bytes, kind: str, first_item: int, objects: list[object] | None
) -> Iterator[Found]:
    """Yield some items, a JSON array, of a list of that kind; without `objects` they are decoded one by one."""
    if objects is None:
        whole = b"".join((b'{"kind":"', kind.encode(), b'","items":', text, b"}"))
        yield from _decode(source, whole, 1, first_item)
        return
    yield Found(objects, 1, first_item, 0)
    if len(source.data) <= LONG_LIST or not all(map(_is_stored, objects)):
        faults: Iterable[MisfitField | InvalidObject]
        faults = chain(unknown_in_items(text, kind), source.check.in_items(text, kind))
        for fault in faults:
            yield Found(fault, 1, first_item + fault.item, 0)


def _objects_in(found: Found) -> int:
    if isinstance(found.content, list):
        return len(found.content)
    return not isinstance(found.content, MisfitField | InvalidObject | str)


def _iter_json_stream(source: Source, data: bytes) -> Iterator[Found]:
    """Yield from concatenated JSON documents, as from `jq` or one per line; YAML may follow the first.

    Logs among them are skipped.
    """
    text = data.decode(errors="replace")
    decoder = json.JSONDecoder()
    position, document = 0, 0
    while True:
        found = _NOT_SPACE.search(text, position)
        if found is None:
            return
        position = found.start()
        logs = _LOGS.match(text, position)
        if logs is not None:
            position = logs.end()
            continue
        document += 1
        try:
            tree, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            problem = f"expected JSON; got {error.msg} (line {error.lineno})"
            fault = DecodeError(_place(source, document), problem)
            if document > 2:
                raise fault from None
            start = len(source.data) - len(text[position:].encode())
            yield from _iter_flow(source, start, document - 1, fault)
            return
        except RecursionError:
            raise DecodeError(_place(source, document), "expected less deep nesting") from None
        except ValueError as error:  # a number of very many digits
            raise DecodeError(_place(source, document), f"expected JSON; got {error}") from None
        yield from _decode_tree(source, tree, document, 0)


def _iter_yaml_pieces(source: Source) -> Iterator[Found]:
    document = 0
    for start, end in cut_documents(source.data):
        items = find_yaml_list(source.data, start, end)
        if items is None:
            document = yield from _iter_yaml(source, start, end, document)
        else:
            document += 1
            yield from _iter_yaml_items(source, items, document)


def _iter_yaml(source: Source, start: int, end: int, before: int) -> Generator[Found, None, int]:
    """Yield from YAML between two positions, after `before` documents; returns how many there are until its end."""
    document, repeated = before, list[RepeatedKey]()
    for tree in _parse(source, start, end, before, repeated):
        document += 1
        yield from _notes(source, repeated, document, start)
        yield from _decode_tree(source, tree, document, start)
    return document


def _notes(
    source: Source, repeated: list[RepeatedKey], document: int, start: int
) -> Iterator[Found]:
    """Yield a note for each key that was repeated in the text from `start` on, and clear the list."""
    own = [
        key for key in repeated if not key.is_merged
    ]  # entries next to a merge replace its entries
    repeated.clear()
    above = source.data[:start].count(b"\n") if own else 0
    for key in own:
        text = (
            f'line {above + key.line}: the key "{key.path[-1]}" is there twice; the last one counts'
        )
        yield Found(f"{_place(source, document)}: {text}", document, -1, start)


def _iter_yaml_items(source: Source, items: ItemList, document: int) -> Iterator[Found]:
    repeated: list[RepeatedKey] = []
    try:
        shells = list(iter_trees(items.shell))
    except YamlError:
        raise NotInPiecesError from None
    shell = shells[0] if len(shells) == 1 else None
    kind = shell.get("kind", "List") if isinstance(shell, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List"):
        raise NotInPiecesError
    count = 0
    for start, end in items.pieces(source.data, YAML_PIECE):
        trees = list(_parse(source, start, end, document - 1, repeated))
        if len(trees) != 1 or not isinstance(trees[0], list):
            raise NotInPiecesError
        yield from _notes(source, repeated, document, start)
        text = _encode({"kind": kind, "items": trees[0]})
        for found in _decode(source, text, document, count):
            yield found._replace(position=start)
            count += _objects_in(found)


def _parse(
    source: Source, start: int, end: int, before: int, repeated: list[RepeatedKey]
) -> Iterator[Any]:
    """Yield the documents in a piece of YAML; keys that a mapping has twice are added to `repeated`."""
    document = before
    try:
        for tree in iter_trees(source.data[start:end], repeated.append):
            document += 1
            yield tree
    except YamlError as error:
        is_piece = end - start < len(source.data)
        short = len(source.data) <= REPARSE_UP_TO or isinstance(error, UndefinedAliasError)
        if is_piece and short:
            raise NotInPiecesError from None
        raise _yaml_fault(source, error, document + 1, start) from None


def _decode_tree(source: Source, tree: Any, document: int, position: int) -> Iterator[Found]:
    if tree is None:
        return
    if not isinstance(tree, dict):
        problem = f"expected an object; got {_TYPE_NAMES.get(type(tree), 'a number')}"
        raise DecodeError(_place(source, document), problem)
    for found in _decode(source, _encode(tree), document):
        yield found._replace(position=position)


def _encode(tree: Any) -> bytes:
    return msgspec.json.encode(tree)


def _decode(
    source: Source, text: bytes, document: int, first_item: int | None = None
) -> Iterator[Found]:
    """Yield the objects of one JSON document; `first_item` numbers them in a list that was cut."""
    is_list = first_item is not None or _is_list(text)
    item = first_item or 0
    size = len(text) if first_item is None else len(source.data)
    is_dump = is_list and size > LONG_LIST
    try:
        for obj in iter_objects(text):
            _refuse_foreign(obj, source, b"" if is_list else text)
            yield Found(obj, document, item if is_list else -1, 0)
            item += 1
            is_dump = is_dump and _is_stored(obj)
        if not is_dump:
            first = (first_item or 0) if is_list else None
            yield from _findings(source, text, document, first)
    except DecodeError as error:
        if first_item is not None and error.problem.startswith("expected JSON"):
            raise NotInPiecesError from None
        place = _place(source, document, item if is_list else -1)
        where, problem = error.where, error.problem
        if problem == NO_KIND and not is_list:
            tree = msgspec.json.decode(text)
            completed = with_kind(tree)
            if completed is not None:
                yield from _decode(source, _encode(completed), document)
                return
            where, problem = "", nameless_fault(tree, source.name)
        elif problem == _SCHEDULER_POLICY:
            problem += ", which --config takes"
        raise DecodeError(f"{place}: {where}" if where else place, problem) from None
    except RecursionError:
        raise DecodeError(_place(source, document), "expected less deep nesting") from None


def _findings(
    source: Source, text: bytes, document: int, first_item: int | None
) -> Iterator[Found]:
    """Yield the unknown fields and the invalid objects of one JSON document; a list counts from `first_item`."""
    faults: Iterable[MisfitField | InvalidObject]
    faults = chain(unknown_in_document(text), source.check.in_document(text))
    for fault in faults:
        item = -1 if first_item is None else first_item + fault.item
        yield Found(fault, document, item, 0)


def _refuse_foreign(obj: object, source: Source, text: bytes) -> None:
    """Raise DecodeError for a kustomization, and for an object whose `text` has actions of a Helm template."""
    if isinstance(obj, UnknownObject):
        if is_kustomization(obj.api_version, obj.kind):
            folder = str(Path(source.name).parent) if source.name != "stdin" else "DIR"
            problem = f"expected a manifest; got a kustomization: {kustomize(folder)}"
            raise DecodeError("", problem)
    elif b"{{" in text:
        fault = helm_fault(text)
        if fault:
            raise DecodeError("", fault)


def _is_stored(obj: object) -> bool:
    """Whether an API server wrote the object; it has dropped fields that do not exist."""
    return bool(getattr(obj, "uid", ""))


def _is_list(text: bytes) -> bool:
    try:
        return _HEADS.decode(text).kind.endswith("List")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _place(source: Source, document: int, item: int = -1) -> str:
    place = f"{source.name}: document {document}"
    return place if item < 0 else f"{place}: items[{item}]"
