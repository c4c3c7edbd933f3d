"""Lenient: read an object with fields that cannot be read, without those fields.

A running pod with an unknown value takes its room all the same. The path of the decode error names
the field to drop; the rest is decoded again, a limited number of times.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ..pod import Pod
from .decode import build_from_tree
from .kinds import FieldError, Kind
from .nulls import without_nulls

MAX_FAULTS = 16
"""An object with more faults than this is not read."""
IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion"})
"""The metadata that identifies an object."""


class LenientObject(NamedTuple):
    """The readable part of an object."""

    obj: Any | None
    """None if it has no identity, or too many faults, or is a pod that must not be placed."""
    faults: list[str]
    """Problems, one line per field; empty for an object without faults."""


def decode_leniently(data: "bytes | msgspec.Raw", kind: Kind) -> LenientObject:
    """Read one object of a given kind from JSON, without the fields that cannot be read.

    A pod without a node whose spec has a fault is not returned: without the dropped rule it could be
    placed where it must not run.
    """
    try:
        tree = without_nulls(msgspec.json.decode(data))
    except msgspec.DecodeError as error:
        return LenientObject(None, [f"expected JSON; got malformed text: {error}"])
    faults: list[FieldError] = []
    obj: Any | None = None
    while obj is None and len(faults) < MAX_FAULTS:
        try:
            obj = build_from_tree(kind, tree)
        except FieldError as error:
            faults.append(error)
            if not drop_field(tree, error.path):
                break
    is_pending = isinstance(obj, Pod) and not obj.node_name
    if is_pending and any(fault.path.startswith("spec") for fault in faults):
        obj = None
    return LenientObject(obj, [str(fault) for fault in faults])


def drop_field(tree: Any, path: str) -> bool:
    """Remove the field at `path`, or the innermost part on the way to it; False if that is the object itself.

    The name of an entry may have dots; `[...]` stands for any entry, and all are removed.
    """
    steps: list[tuple[Any, Any]] = []
    found, rest = tree, path
    while rest:
        key, rest = _next_step(found, rest)
        if key is None:
            break
        steps.append((found, key))
        found = found[key]
    names = [key for _, key in steps]
    if not names or names == ["metadata"] or (names[0] == "metadata" and names[1] in IDENTITY):
        return False
    holder, key = steps[-1]
    del holder[key]
    return True


def _next_step(found: Any, rest: str) -> tuple[Any, str]:
    """The first key or index of a path, and the rest; None if there is no such part."""
    if isinstance(found, list):
        index, _, after = rest.removeprefix("[").partition("]")
        is_there = index.isdecimal() and int(index) < len(found)
        return (int(index), after.removeprefix(".")) if is_there else (None, rest)
    if isinstance(found, Mapping):
        for key in sorted(found, key=len, reverse=True):
            if rest.startswith(key) and rest[len(key) :][:1] in ("", ".", "["):
                return key, rest[len(key) :].removeprefix(".")
    return None, rest
