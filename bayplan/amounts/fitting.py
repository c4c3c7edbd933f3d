"""Fitting: the shortages of a row for a pod, as bits: resources that are short, and those of which the node never has
enough.

Mirrors fitsRequest of pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..table import ALL, AmountColumns, Bools, Ints, NodeTable, Rows
from .rules import POD_COUNT, FitRule

NOTHING: Mapping[str, int] = {}


def shortages(table: AmountColumns, rows: Rows, rule: FitRule) -> Ints:
    """int64 per row of `rows`: 0 where the pod fits.

    Bit 2i: the i-th resource of the rule is short; bit 2i+1: even the empty node does not offer that much.
    """
    bits = np.zeros(table.count(rows), dtype=np.int64)
    for place, (resource, wanted) in enumerate(rule.amounts.items()):
        capacity = table.allocatable[resource][rows]
        is_count = resource == POD_COUNT
        used = (table.pod_count_column.view if is_count else table.requested[resource])[rows]
        short: Bools = capacity - used < wanted
        if resource in rule.left_to_devices:
            short &= capacity > 0
        if not np.count_nonzero(short):
            continue
        bits |= short.astype(np.int64) << (2 * place)
        if resource != POD_COUNT:
            bits |= (short & (wanted > capacity)).astype(np.int64) << (2 * place + 1)
    return bits


def free_amounts(table: NodeTable, resource: str, rows: Rows = ALL) -> Ints:
    """int64 per row of `rows`: allocatable less the use of its pods; for POD_COUNT, the number of pods that may still
    come.
    """
    used = table.pod_count if resource == POD_COUNT else table.requested[resource]
    free: Ints = table.allocatable[resource][rows] - used[rows]
    return free


def copies_that_fit(table: NodeTable, rule: FitRule, rows: Rows) -> Ints:
    """int64 per row of `rows`: the number of pods of the rule that fit together, if nothing else refuses them."""
    found: Ints | None = None
    for resource, wanted in rule.amounts.items():
        if wanted > 0:
            free = free_amounts(table, resource, rows)
            if wanted > 1:
                free //= wanted
            found = free if found is None else np.minimum(found, free, out=found)
    if found is None:
        return np.full(table.count(rows), np.iinfo(np.int64).max)
    fitting: Ints = np.maximum(found, 0, out=found)
    return fitting


def shortage_at(
    table: NodeTable, row: int, rule: FitRule, more: Mapping[str, int] = NOTHING
) -> int:
    """The shortages of one row; `more` has amounts that count as used in addition."""
    bits = 0
    offered, requested = table.allocatable, table.requested
    for place, (resource, wanted) in enumerate(rule.amounts.items()):
        capacity = offered.amount(resource, row)
        if resource == POD_COUNT:
            used = len(table.pods[row])
        else:
            used = requested.amount(resource, row)
        if capacity - used - more.get(resource, 0) >= wanted:
            continue
        if resource in rule.left_to_devices and not capacity:
            continue
        never = wanted > capacity and resource != POD_COUNT
        bits |= (3 if never else 1) << (2 * place)
    return bits
