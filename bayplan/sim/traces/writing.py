"""Writing: manifests as one JSON List, one object per line, which `bayplan simulate -f` reads fast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def write_list(stream: SupportsWrite[str], objects: Iterable[dict[str, Any]]) -> int:
    """Write the objects to `stream`; return their number."""
    count = 0
    stream.write('{"apiVersion":"v1","kind":"List","items":[')
    for obj in objects:
        stream.write("\n" if count == 0 else ",\n")
        stream.write(msgspec.json.encode(obj).decode())
        count += 1
    stream.write("\n]}\n")
    return count
