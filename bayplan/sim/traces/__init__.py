"""Traces: convert published tables of nodes and pods to manifests.

Contents: reading tables (`table_rows.py`), one importer per published trace, one for custom tables (`own_tables.py`),
what importers share (`published.py`, `trace_manifests.py`, `shapes.py`), and writing the manifests. Imports: what may
enter sim. Never: a decision about placement, or printing. Callers: cli, and users' scripts.
"""

from .alibaba_2018 import Alibaba2018
from .alibaba_2020 import Alibaba2020
from .alibaba_2025 import Alibaba2025
from .alibaba_2026 import Alibaba2026, find_alibaba_2026
from .azure_packing import AzurePacking
from .azure_vms import AzureVms
from .google_2019 import Google2019
from .open_trace import decoded_objects
from .openb import OpenbTrace, find_openb
from .own_tables import read_own_tables
from .published import PublishedTrace, TraceWindow
from .shapes import parse_shape
from .trace_manifests import write_list

__all__ = [
    "Alibaba2018",
    "Alibaba2020",
    "Alibaba2025",
    "Alibaba2026",
    "AzurePacking",
    "AzureVms",
    "Google2019",
    "OpenbTrace",
    "PublishedTrace",
    "TraceWindow",
    "decoded_objects",
    "find_alibaba_2026",
    "find_openb",
    "parse_shape",
    "read_own_tables",
    "write_list",
]
