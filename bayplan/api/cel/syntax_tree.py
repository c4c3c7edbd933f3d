"""Syntax tree: an expression as a tree, read from the form in which cel-expr-python serializes it.

That form is the protocol buffer cel.expr.CheckedExpr (github.com/google/cel-spec, checked.proto and syntax.proto), of
which the few fields are read that contain the names and fields in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from ..wire.protobuf_fields import iter_fields

Piece: TypeAlias = tuple[int, int | bytes]
"""A field of a message: its number and its value."""


class CelIdent(msgspec.Struct, frozen=True):
    """A name."""

    number: int
    name: str


class CelSelect(msgspec.Struct, frozen=True):
    """A field of `operand`."""

    number: int
    operand: CelNode
    field: str


class CelCall(msgspec.Struct, frozen=True):
    """A function or an operator; a method's target is the first of `args`."""

    number: int
    function: str
    args: tuple[CelNode, ...]


class CelLoop(msgspec.Struct, frozen=True):
    """A macro as `all`: `names` are bound to the elements of `over`."""

    number: int
    names: tuple[str, ...]
    over: CelNode
    result_name: str
    start: CelNode
    steps: tuple[CelNode, ...]
    result: CelNode


class CelLiteral(msgspec.Struct, frozen=True):
    """A constant, a list or a map; only texts have their value."""

    number: int
    parts: tuple[CelNode, ...] = ()
    text: str | None = None


CelNode: TypeAlias = CelIdent | CelSelect | CelCall | CelLoop | CelLiteral


class CelTree(msgspec.Struct, frozen=True):
    """An expression, and the positions of its numbered parts in the text."""

    root: CelNode
    positions: dict[int, int]


def read_tree(data: bytes) -> CelTree:
    """The tree of a serialized expression."""
    checked = _bytes(iter_fields(data), 2)
    parts = list(iter_fields(checked))
    positions = {}
    for number, value in iter_fields(_bytes(parts, 5)):
        if number == 4 and isinstance(value, bytes):
            entry = list(iter_fields(value))
            positions[_int(entry, 1)] = _int(entry, 2)
    return CelTree(_node(_bytes(parts, 4)), positions)


def _node(data: bytes) -> CelNode:
    parts = list(iter_fields(data))
    number = _int(parts, 2)
    for field, value in parts:
        if isinstance(value, bytes) and field in _MAKERS:
            return _MAKERS[field](number, list(iter_fields(value)))
    return CelLiteral(number)


def _const(number: int, parts: Sequence[Piece]) -> CelNode:
    texts = [value.decode() for field, value in parts if field == 6 and isinstance(value, bytes)]
    return CelLiteral(number, text=texts[0] if texts else None)


def _call(number: int, parts: Sequence[Piece]) -> CelNode:
    return CelCall(number, _text(parts, 2), (*_nodes(parts, 1), *_nodes(parts, 3)))


def _map(number: int, parts: Sequence[Piece]) -> CelNode:
    entries = [
        list(iter_fields(value))
        for field, value in parts
        if field == 2 and isinstance(value, bytes)
    ]
    return CelLiteral(
        number, tuple(node for entry in entries for key in (3, 4) for node in _nodes(entry, key))
    )


def _loop(number: int, parts: Sequence[Piece]) -> CelNode:
    names = tuple(filter(None, (_text(parts, 1), _text(parts, 8))))
    over, start, result = (_node(_bytes(parts, field)) for field in (2, 4, 7))
    steps = (_node(_bytes(parts, 5)), _node(_bytes(parts, 6)))
    return CelLoop(number, names, over, _text(parts, 3), start, steps, result)


_MAKERS: Mapping[int, Callable[[int, Sequence[Piece]], CelNode]] = {
    3: _const,
    4: lambda number, parts: CelIdent(number, _text(parts, 1)),
    5: lambda number, parts: CelSelect(number, _node(_bytes(parts, 1)), _text(parts, 2)),
    6: _call,
    7: lambda number, parts: CelLiteral(number, tuple(_nodes(parts, 1))),
    8: _map,
    9: _loop,
}


def _nodes(parts: Sequence[Piece], field: int) -> Iterator[CelNode]:
    return (_node(value) for number, value in parts if number == field and isinstance(value, bytes))


def _bytes(parts: Sequence[Piece] | Iterator[Piece], field: int) -> bytes:
    for number, value in parts:
        if number == field and isinstance(value, bytes):
            return value
    return b""


def _text(parts: Sequence[Piece], field: int) -> str:
    return _bytes(parts, field).decode()


def _int(parts: Sequence[Piece], field: int) -> int:
    for number, value in parts:
        if number == field and isinstance(value, int):
            return value
    return 0
