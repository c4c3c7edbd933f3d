"""Runs on node pools with prices: an autoscaler launches and removes the nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from description import Suite
from results import RunEntry, kept_measures

import bayplan
from bayplan.sim.synthetic import generate, read_model


class PoolRun(NamedTuple):
    """One simulation with an autoscaler."""

    row: Mapping[str, Any]
    autoscaler: str
    seed: int
    pools: Path
    model: Path
    until: str

    @property
    def digest(self) -> str:
        """The hash of all that the result depends on."""
        own = (self.row.get("file"), *self.row.get("plugins", ()))
        files = [self.pools, self.model, *(Path(each) for each in own if each)]
        content = [bayplan.__version__, self.autoscaler, self.seed, self.until]
        content += [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:16]


def pool_runs(
    suite: Suite, rows: Sequence[Mapping[str, Any]], seeds: int | None
) -> Iterator[PoolRun]:
    """The runs of these rows; of the suite's own rows those that it names."""
    given = suite.tree.get("pools")
    if given is None:
        return
    others = {each["name"] for each in suite.tree["baselines"]} - {*given["baselines"]}
    pools, model = (suite.folder / given[name] for name in ("file", "model"))
    for autoscaler in given["autoscalers"]:
        for row in rows:
            if row["name"] not in others:
                for seed in given["seeds"][:seeds]:
                    yield PoolRun(row, autoscaler, seed, pools, model, given["until"])


def run_all(runs: Sequence[PoolRun], jobs: int) -> list[RunEntry]:
    """Do the runs in so many processes."""
    with ProcessPoolExecutor(jobs) as workers:
        return list(workers.map(run_one, runs))


def run_one(run: PoolRun) -> RunEntry:
    """Simulate."""
    cluster = bayplan.Cluster.of(*generate(read_model(run.model), run.seed))
    report = bayplan.simulate(
        cluster,
        config=run.row.get("file"),
        plugins=run.row.get("plugins", ()),
        seed=run.seed,
        until=run.until,
        pools=run.pools,
        autoscaler=run.autoscaler,
    )
    assert report.scaling is not None, "there are pools"
    found = report.measures() | report.scaling.measures()
    name = f"pools, {run.autoscaler}"
    return RunEntry(
        name, str(run.row["name"]), run.seed, run.digest, kept_measures(found), report.filters
    )
