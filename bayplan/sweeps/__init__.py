"""Sweeps: many simulations that differ in input, configuration or seed, on many cores or machines.

What lives here: the document (`document.py`), its expansion to runs, each with a hash of all that it
depends on, workers in processes and on Ray, and the results on disk. What may enter: sim, config,
scheduler, cluster, api, answers. What must not happen: a measure of its own, or printing. Who calls it:
cli, notebook, and users' scripts.
"""

from .document import SweepDocument, read_sweep
from .sweep import Sweep, SweepResults
from .sweep_run import SweepRun

__all__ = ["Sweep", "SweepDocument", "SweepResults", "SweepRun", "read_sweep"]
