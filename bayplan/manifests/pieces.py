"""Pieces: cut a long text of manifests into short ones that can be parsed separately.

Long lists are cut between items, so that neither the text nor its tree need be in memory as a
whole. Cutting uses indentation, or in compact JSON the first key of an item, and may be wrong; then a
piece does not parse, and the reader tries the next cut or falls back to the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from .input_bytes import Buffer

LIST_FROM = 1 << 16
YAML_PIECE = 1 << 18
JSON_PIECE = 1 << 20

_DOCUMENT = b"\n---"
_YAML_ITEMS = re.compile(rb"(?:^|\n)items:[ \t]*\r?\n(?=(?P<indent> *)- )")
_YAML_AFTER = re.compile(rb"\n(?=[^\s#-])")
_JSON_ITEMS = re.compile(rb'"items": ?\[\r?\n(?=(?P<indent>[ \t]+)\{\r?\n)')
_COMPACT_ITEMS = re.compile(rb'"items"\s*:\s*\[\s*(?=\{)')
_COMPACT_CUT = re.compile(rb'(?<=\})\s*,\s*\{\s*"(?:apiVersion|kind|metadata)"\s*:')
_HEAD = 1 << 16


class ItemList(msgspec.Struct, frozen=True):
    """A list cut apart: its text without the items, and the position of the items."""

    shell: bytes
    separator: bytes | re.Pattern[bytes]
    start: int
    end: int
    """End of the last item."""

    def pieces(self, data: Buffer, size: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of pieces of about `size` bytes, each of whole items."""
        start = self.start
        while start < self.end:
            end = self.cut(data, start + size)
            yield start, end
            start = end

    def cut(self, data: Buffer, position: int) -> int:
        """The end of the item at `position`: that of the last one if none ends before."""
        if isinstance(self.separator, bytes):
            found = data.find(self.separator, position, self.end)
            return self.end if found < 0 else found
        match = self.separator.search(data, position, self.end)
        return self.end if match is None else match.start()


def cut_documents(data: Buffer) -> Iterator[tuple[int, int]]:
    """Yield start and end of the documents of a YAML stream, their `---` included."""
    start, position = 0, 0
    while (found := data.find(_DOCUMENT, position)) >= 0:
        position = found + len(_DOCUMENT)
        if data[position : position + 1] in (b"", b" ", b"\t", b"\r", b"\n"):
            yield start, found + 1
            start = found + 1
    yield start, len(data)


def find_yaml_list(data: Buffer, start: int, end: int) -> ItemList | None:
    """The position of the items of a long YAML list, or None if the document is no such list."""
    if end - start < LIST_FROM:
        return None
    found = _YAML_ITEMS.search(data[start : start + _HEAD])
    if found is None:
        return None
    first = start + found.end()
    separator = b"\n" + found["indent"] + b"- "
    last = max(data.rfind(separator, first, end), first)
    after = _YAML_AFTER.search(data[last:end])
    stop = last + after.start() + 1 if after else end
    # The `items:` line keeps its key, with an empty list in place of the items.
    shell = data[start : start + found.end()].rstrip() + b" []\n" + data[stop:end]
    return ItemList(shell, separator, first, stop)


def find_json_list(data: Buffer) -> ItemList | None:
    """The position of the items of a long JSON list, or None if it is no such list."""
    if len(data) < LIST_FROM:
        return None
    found = _JSON_ITEMS.search(data[:_HEAD])
    if found is None:
        return _find_compact_list(data)
    indent = found["indent"]
    newline = b"\r\n" if b"\r\n" in found[0] else b"\n"
    closing = newline + indent + b"}"
    last = data.rfind(closing)
    if last < found.end():
        return None
    stop = last + len(closing)
    shell = data[: found.end()] + data[stop:]
    return ItemList(shell, b"," + newline + indent + b"{" + newline, found.end(), stop)


def _find_compact_list(data: Buffer) -> ItemList | None:
    found = _COMPACT_ITEMS.search(data[:_HEAD])
    stop = data.rfind(b"]")
    if found is None or stop < found.end():
        return None
    return ItemList(data[: found.end()] + data[stop:], _COMPACT_CUT, found.end(), stop)
