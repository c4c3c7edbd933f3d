"""Measure `bayplan plan` on seeded web workloads: price against first fit decreasing, gap to the bound, times.

`make bench-plan` runs it; the command runs as a process of its own for each workload.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "examples" / "plan" / "instance-types.csv"
POOL = {
    "apiVersion": "bayplan.dev/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {"instanceTypes": ["*"]},
}
CPU = (100, 250, 500, 1000, 2000)
MEMORY = (128, 256, 512, 1024, 2048, 4096)


def make_workload(seed: int, deployments: int, replicas: int) -> list[dict[str, Any]]:
    """Deployments of random sizes; every third is spread over zones, every tenth has a node per pod."""
    draw = random.Random(seed)
    found = []
    for number in range(deployments):
        labels = {"app": f"web-{number}"}
        selector = {"matchLabels": labels}
        amounts = {"cpu": f"{draw.choice(CPU)}m", "memory": f"{draw.choice(MEMORY)}Mi"}
        spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": amounts}}]}
        count = draw.randint(1, 2 * replicas - 1)
        if number % 3 == 0:
            spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone"}
            spread |= {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            spec["topologySpreadConstraints"] = [spread]
        if number % 10 == 1:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": required}
            count = min(count, 3)
        template = {"metadata": {"labels": labels}, "spec": spec}
        body = {"replicas": count, "selector": selector, "template": template}
        metadata = {"name": f"web-{number}"}
        found.append(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": body}
        )
    return found


def measure(objects: list[dict[str, Any]], time_limit: str) -> dict[str, Any]:
    """What the command says about a workload."""
    with tempfile.TemporaryDirectory() as folder:
        workload, pools = Path(folder, "workload.yaml"), Path(folder, "pools.yaml")
        workload.write_text(yaml.safe_dump_all(objects))
        pools.write_text(yaml.safe_dump(POOL))
        options = ["-f", str(workload), "--pools", str(pools), "--instance-types", str(TABLE)]
        command = [sys.executable, "-m", "bayplan", "plan", *options, "--time-limit", time_limit]
        done = subprocess.run(
            [*command, "-o", "json"], stdout=subprocess.PIPE, check=True, cwd=ROOT
        )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def main() -> None:
    """Print a line per workload, and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=20)
    parser.add_argument("--deployments", type=int, default=200)
    parser.add_argument("--replicas", type=int, default=10, help="in the mean")
    parser.add_argument("--time-limit", default="60s")
    given = parser.parse_args()
    savings, gaps = [], []
    print("SEED    PODS   NODES     PRICE  FIRST FIT  SAVED    GAP  FIRST PLAN  SIMULATIONS")
    for seed in range(given.workloads):
        found = measure(make_workload(seed, given.deployments, given.replicas), given.time_limit)
        first = found["firstFitPrice"] or found["price"]
        savings.append(1 - found["price"] / first)
        gaps.append(1.0 if found["gap"] is None else found["gap"])
        print(
            f"{seed:4} {found['pods']:7,} {found['nodes']:7,} {found['price']:9.2f} {first:10.2f} "
            f"{savings[-1]:5.1%} {gaps[-1]:6.1%} {found['firstPlanSeconds']:9.1f} s {found['simulations']:12,}",
            flush=True,
        )
    print(f"mean: {mean(savings):.1%} cheaper than first fit, {mean(gaps):.1%} above the bound")


if __name__ == "__main__":
    main()
