"""Sweeps: many simulations that differ in input, configuration or seed, on many cores or machines.

Contents: the document (`document.py`), its expansion to runs, each with a hash of all that it
depends on, workers in processes and on Ray, and the results on disk. Imports: sim, config,
scheduler, cluster, api, answers. Never: a measure of its own, or printing. Callers: cli, notebook, and users' scripts.
"""

from .document import read_sweep
from .sweep import Sweep, SweepResults
from .sweep_run import SweepRun

__all__ = ["Sweep", "SweepResults", "SweepRun", "read_sweep"]
