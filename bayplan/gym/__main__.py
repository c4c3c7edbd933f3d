"""Steps of an environment per second of CPU time: python -m bayplan.gym [--nodes 1000] [--pods 5000]."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from ..notebook.cluster import Cluster
from .environment import PlacementEnv


def workload(nodes: int, pods: int) -> Iterator[dict[str, Any]]:
    """Equal nodes, and pods with forty different requests."""
    offered = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for i in range(nodes):
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i}"},
            "status": {"allocatable": offered},
        }
    for i in range(pods):
        requests = {"cpu": f"{100 * (1 + i % 8)}m", "memory": f"{256 * (1 + i % 5)}Mi"}
        container = {"name": "main", "image": "app", "resources": {"requests": requests}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{i}"},
            "spec": {"containers": [container]},
        }


def main() -> None:
    """Measure one episode in which the agent chooses the first of the best nodes."""
    parser = argparse.ArgumentParser(prog="python -m bayplan.gym", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    asked = parser.parse_args()
    cluster = Cluster.of(*workload(asked.nodes, asked.pods))
    for copies in (True, False):
        env = PlacementEnv(cluster, copies=copies)
        started = time.process_time()
        observation, _ = env.reset(seed=0)
        began, steps, is_end = time.process_time(), 0, False
        while not is_end:
            action = int(observation["scores"].argmax())
            observation, _, is_end, _, _ = env.step(action)
            steps += 1
        seconds = time.process_time() - began
        print(
            f"{asked.nodes:,} nodes, copies={copies}: {steps / seconds:,.0f} steps/s, "
            f"reset {began - started:.2f} s"
        )


if __name__ == "__main__":
    main()
