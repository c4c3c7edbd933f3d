"""Measures: the measures of a run: use of resources, fragmentation, waiting times, counts.

Contents: a description of each measure (`description.py`), the measures as pure functions of node amounts or of a
report, their values over time, and statistics over seeds. Imports: the results of `sim`, table, cluster, api. Never:
I/O, or a change of what is measured. Callers: the report of a simulation, answers (compare), sweeps, notebook, and
users' scripts.
"""

from .amounts import NodeAmounts
from .description import Measure, MeasureUnit, measure_of
from .fragmentation import RequestMix, fragmentation, stranded_share, unusable
from .metric import Metric, PairedDifference
from .run_measures import measure_run

__all__ = [
    "Measure",
    "MeasureUnit",
    "Metric",
    "NodeAmounts",
    "PairedDifference",
    "RequestMix",
    "fragmentation",
    "measure_of",
    "measure_run",
    "stranded_share",
    "unusable",
]
