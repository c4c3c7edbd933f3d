"""Nodes as columns: one row per node, one NumPy column per quantity that plugins read.

Lives here: the node table (read side), its writer, columns and vocabularies, counts of pods per term. May enter: `api`.
Must not happen: a rule about where a pod may go; writing outside `writer.py`. Called by: `cache` (the only writer),
plugins and `runtime` (readers).
"""

from .carried import CarriedTerm, TermKind, term_selects
from .changes import ChangeLog, RowLog
from .columns import ALL, FIRST_ROW, Bools, Column, Ints, ResourceColumns, Rows, RowValues, Size
from .labels import ABSENT, LabelColumn
from .node_table import AmountColumns, AmountsCopy, NodeInfo, NodeTable, shares_of
from .terms import DomainCounts, PodTerm, marks_of_domains

__all__ = [
    "ABSENT",
    "ALL",
    "FIRST_ROW",
    "AmountColumns",
    "AmountsCopy",
    "Bools",
    "CarriedTerm",
    "ChangeLog",
    "Column",
    "DomainCounts",
    "Ints",
    "LabelColumn",
    "NodeInfo",
    "NodeTable",
    "PodTerm",
    "ResourceColumns",
    "RowLog",
    "RowValues",
    "Rows",
    "Size",
    "TermKind",
    "marks_of_domains",
    "shares_of",
    "term_selects",
]
