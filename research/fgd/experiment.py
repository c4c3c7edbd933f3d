"""The default experiment of "Beware of Fragmentation" (ATC'23): one policy fills the openb cluster with one workload.

The pods of the trace arrive in random order, then more of them, drawn with repetition, until they ask for 130 % of
the GPUs. Pods only arrive; one that does not fit is not tried again. Of equally good nodes, the first in a random order
wins, which is the same for the whole run. The seed determines all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bayplan.api.gpus import GPU_MILLI
from bayplan.config.load import load_config
from bayplan.scheduler import FirstByName
from bayplan.sim import Simulation
from bayplan.sim.measures.run_measures import arrival_course
from bayplan.sim.traces import decoded_objects, find_openb

FOLDER = Path(__file__).resolve().parent
DEMAND = 1.3
FIRST_SEED = 42

POLICIES = {
    "FGD": "fgd",
    "BestFit": "best-fit",
    "Packing": "packing",
    "Clustering": "clustering",
    "DotProd": "dot-product",
    "Random": "random",
}
"""The policies by their names in the paper, with their files."""


class Arrival(NamedTuple):
    """After one pod: the demand that has arrived, and what is allocated, as parts of all GPUs."""

    arrived: float
    allocated: float


def run(folder: Path, policy: str, seed: int) -> list[Arrival]:
    """Fill the cluster of the trace in `folder` by `policy`; an entry per pod, in the order of arrival."""
    objects = list(decoded_objects(find_openb(folder).objects(DEMAND, seed, shuffled=True)))
    config = load_config(FOLDER / "policies" / f"{POLICIES[policy]}.yaml")
    report = Simulation(objects, config, seed=seed, ties=FirstByName()).run()
    arrived, allocated = arrival_course(report.pods, report.nodes, GPU_MILLI)
    return [Arrival(*entry) for entry in zip(arrived.tolist(), allocated.tolist(), strict=True)]


def by_percent(course: Iterable[Arrival]) -> dict[int, float]:
    """The allocation in percent when so many percent had arrived: the mean over arrivals that round to it."""
    found: dict[int, list[float]] = {}
    for entry in course:
        found.setdefault(round(100 * entry.arrived), []).append(100 * entry.allocated)
    return {percent: sum(values) / len(values) for percent, values in found.items()}
