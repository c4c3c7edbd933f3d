"""Dominance: options that another one replaces, because its nodes hold as much at no higher price.

A cloud has hundreds of types, of which a few dozen matter. With a node of the other option in the place of each one, a
fleet is as good and not dearer, so a bound without them holds for all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..table import Bools
from .attachments import DEVICES, UNLIMITED, room_for
from .fleet import NodeOption
from .node_types import NodeType
from .pools import NodePool


def without_replaceable(
    options: Sequence[NodeOption], needed: Collection[NodeType]
) -> list[NodeOption]:
    """The options that no other one replaces, and those of `needed` types; of equal ones the first."""
    replaces = np.array([_replaces(one, options) for one in options], dtype=np.bool_)
    replaces = replaces.reshape(len(options), len(options))
    first = np.arange(len(options))
    # Of two options that replace each other the first stays.
    goes: Bools = np.any(replaces & (~replaces.T | (first[:, None] < first)), axis=0)
    stays = {id(one) for one in needed}
    return [
        one for one, gone in zip(options, goes, strict=True) if not gone or id(one.type) in stays
    ]


def _replaces(one: NodeOption, options: Sequence[NodeOption]) -> Bools:
    """bool per option: whether a node of `one` can take the place of one of its nodes."""
    found = np.array(
        [
            one is not other
            and one.price <= other.price
            and set(one.zones) >= set(other.zones)
            and _attaches_as_much(one.type, other.type)
            and _counts_alike(one, other)
            for other in options
        ],
        dtype=np.bool_,
    )
    for i in np.flatnonzero(found).tolist():
        other = options[i]
        found[i] = (
            (one.free >= other.free).all()
            and (one.accepts >= other.accepts).all()
            and (one.caps >= other.caps)[other.accepts].all()
        )
    return found


def _attaches_as_much(one: NodeType, other: NodeType) -> bool:
    """Whether a node of one type takes as many volumes as one of the other, and has its devices."""
    room = room_for(other)
    return (not other.slices or one.slices == other.slices) and all(
        room.get(name, UNLIMITED) <= count
        for name, count in room_for(one).items()
        if name != DEVICES
    )


def _counts_alike(one: NodeOption, other: NodeOption) -> bool:
    """Whether a node of one option counts no more in its pool than one of the other does."""
    if one.pool is not other.pool:
        return _is_unlimited(one.pool) and _is_unlimited(other.pool)
    return all(
        one.type.capacity.get(name, 0) <= other.type.capacity.get(name, 0)
        for name in one.pool.limits
    )


def _is_unlimited(pool: NodePool) -> bool:
    return not pool.minimum and pool.maximum is None and not pool.limits
