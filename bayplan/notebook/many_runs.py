"""Many runs: many simulations at once, from scripts and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..sim.settings import OnProgress
from ..sweeps import Sweep, SweepResults, read_sweep
from ..sweeps.document import parse_sweep
from .arguments import expect, expect_number


def sweep(
    document: str | Path | Mapping[str, Any],
    *,
    results: str | Path | None = None,
    jobs: int | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
    on_progress: OnProgress | None = None,
) -> SweepResults:
    """Simulate every input of a sweep with every configuration and seed, in processes or on Ray.

    `document` is a file of kind Sweep, or the same as plain data, whose paths are relative to the current folder. With
    `results`, a file that ends in .csv or .parquet, finished runs are not repeated the next time. `jobs` is the
    number of runs at a time, one per core without it; `ray` is the address of a Ray cluster, or "local".
    """
    expect("sweep", "document", document, (str, Path, Mapping), "a file, or a sweep as plain data")
    expect("sweep", "results", results, (str, Path, type(None)), "a file, or None")
    expect("sweep", "ray", ray, (str, type(None)), 'an address, "local" or None')
    expect_number("sweep", "jobs", jobs, optional=True)
    if isinstance(document, Mapping):
        read = parse_sweep(document, "sweep", Path())
    else:
        read = read_sweep(document)
    path = None if results is None else Path(results)
    found = Sweep(read, path, retry_failed=retry_failed)
    return found.run(jobs=jobs, ray=ray, on_progress=on_progress)
