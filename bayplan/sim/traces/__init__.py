"""Traces: convert published tables of nodes and pods to manifests.

What lives here: reading CSV files, one importer per known trace (`openb.py`), one for custom tables
(`own_tables.py`), and writing the manifests. What may enter: what may enter sim. What must not
happen: a decision about placement, or printing. Who calls it: cli, and users' scripts.
"""

from ...api.gpus import GPU_MILLI, GPU_MODEL
from .openb import OpenbTrace, find_openb
from .own_tables import TraceColumns, parse_columns, read_own_tables
from .rows import Row, read_rows
from .writing import write_list

__all__ = [
    "TraceColumns",
    "GPU_MILLI",
    "GPU_MODEL",
    "OpenbTrace",
    "Row",
    "find_openb",
    "parse_columns",
    "read_own_tables",
    "read_rows",
    "write_list",
]
