"""Node selection: node selectors and required node affinity, judged on label columns.

Mirrors staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity, for many nodes at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..api.pod import PodSpec
from ..api.selectors import NAME_FIELD, NodeSelector, NodeSelectorTerm, Requirement
from .columns import Bools, Rows
from .node_table import NodeTable


def match_labels(table: NodeTable, wanted: Mapping[str, str], rows: Rows) -> Bools:
    """bool per row of `rows`: the node has every label of `wanted` with that value."""
    matched = np.ones(table.count(rows), dtype=np.bool_)
    for key, value in wanted.items():
        matched &= table.labels.equal(key, value, rows)
    return matched


def match_term(table: NodeTable, term: NodeSelectorTerm, rows: Rows) -> Bools:
    """bool per row of `rows`: the node satisfies `term`; a term that cannot be parsed matches nothing."""
    if not term.is_usable:
        return np.zeros(table.count(rows), dtype=np.bool_)
    matched = np.ones(table.count(rows), dtype=np.bool_)
    for requirement in term.expressions:
        matched &= table.labels.match(requirement, rows)
    for requirement in term.fields:
        matched &= _match_name(table, requirement, rows)
    return matched


def match_selector(table: NodeTable, selector: NodeSelector, rows: Rows) -> Bools:
    """bool per row of `rows`: one of the terms of `selector` matches the node."""
    matched = np.zeros(table.count(rows), dtype=np.bool_)
    for term in selector.terms:
        matched |= match_term(table, term, rows)
    return matched


def match_required(table: NodeTable, spec: PodSpec, rows: Rows) -> Bools:
    """bool per row of `rows`: the node satisfies the nodeSelector and the required node affinity of a pod."""
    matched = match_labels(table, spec.node_selector or {}, rows)
    required = spec.required_node_selector
    if required is not None:
        matched &= match_selector(table, required, rows)
    return matched


def _match_name(table: NodeTable, requirement: Requirement, rows: Rows) -> Bools:
    """bool per row: a condition on a field; only the node's name is one."""
    if requirement.key != NAME_FIELD:
        return np.full(table.count(rows), requirement.matches_value(""), dtype=np.bool_)
    named = np.zeros(len(table), dtype=np.bool_)
    for value in requirement.values or ():
        row = table.row_of.get(value)
        if row is not None:
            named[row] = True
    return named[rows] if requirement.operator == "In" else ~named[rows]
