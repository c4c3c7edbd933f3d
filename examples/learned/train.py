"""Train the weights of policy.py by evolution strategies, and compare the result with the default scheduler.

    python examples/learned/train.py            # a few minutes on two cores; writes the weights into policy.py
    python examples/learned/train.py --test     # only the comparison, with the weights that are there

Training draws small clusters and pods from the first half of a trace; the test runs on the second half, with three
times as many nodes. The measure is fragmentation as the FGD paper (ATC'23) defines it: the share of the free GPUs that
a pod of the workload is expected to be unable to use, after pods have arrived that ask for 80 % of all GPUs.
"""

import argparse
import csv
import gzip
import re
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np

from bayplan import Cluster, simulate
from bayplan.gym import WeightsEnv, make_vector
from bayplan.sim.measures import Metric, PairedDifference

POLICY = Path(__file__).with_name("policy.py")
GPU = "bayplan.dev/gpu-milli"
MEASURE = f"{GPU}Fragmentation"
DEMAND = 0.8


def read_trace(half):
    """The nodes of the trace, and the first (0) or second (1) half of its pods, as rows of numbers."""
    folder = resources.files("bayplan") / "sim/bench/workloads/openb"
    tables = []
    for name in ("nodes", "pods"):
        with gzip.open(str(folder / f"{name}.csv.gz"), "rt") as file:
            tables.append(list(csv.DictReader(file)))
    nodes, pods = tables
    middle = len(pods) // 2
    return nodes, pods[:middle] if half == 0 else pods[middle:]


def draw(random, half, count):
    """A cluster of `count` nodes of the trace, with pods that ask for this part of its GPUs."""
    nodes, pods = read_trace(half)
    objects, offered, asked = [], 0, 0
    for i, place in enumerate(random.choice(len(nodes), count, replace=False)):
        row = nodes[place]
        offered += int(row["gpu"]) * 1000
        amounts = {**amounts_of(row), "pods": "110", GPU: str(int(row["gpu"]) * 1000)}
        objects.append(make("Node", f"node-{i}", status={"allocatable": amounts}))
    while asked < offered * DEMAND:
        row = pods[random.integers(len(pods))]
        gpus = int(row["num_gpu"]) * int(row["gpu_milli"])
        asked += gpus
        requests = {**amounts_of(row), GPU: str(gpus)}
        container = {
            "name": "main",
            "resources": {"requests": requests, "limits": {GPU: str(gpus)}},
        }
        objects.append(make("Pod", f"pod-{len(objects)}", spec={"containers": [container]}))
    return Cluster.of(*objects)


def amounts_of(row):
    return {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}


def make(kind, name, **more):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def make_env(nodes):
    """One episode is one step: all pods with one vector of weights. Less of the measure is better: it is negative."""
    return WeightsEnv(
        partial(draw, half=0, count=nodes),
        plugin="Learned",
        plugins=[str(POLICY)],
        reward=MEASURE,
        pods_per_step=0,
    )


def train(generations, pairs, nodes, workers, seed=0):
    """Evolution strategies: a step towards the directions that gave more than their opposites."""
    random = np.random.default_rng(seed)
    env = make_vector(partial(make_env, nodes), 2 * pairs, workers)
    mean = np.zeros(env.single_action_space.shape[0])
    spread, rate = 0.3, 0.25
    for generation in range(generations):
        noise = random.standard_normal((pairs, len(mean)))
        tried = np.clip(np.concatenate([mean + spread * noise, mean - spread * noise]), -1, 1)
        seeds = [generation * pairs + i for i in range(pairs)]
        env.reset(seed=seeds + seeds)  # both of a pair are tried on one workload
        rewards = env.step(tried)[1]
        gains = rewards[:pairs] - rewards[pairs:]
        mean = np.clip(mean + rate * (gains / (gains.std() + 1e-9)) @ noise / pairs, -1, 1)
        print(
            f"generation {generation + 1}: {-rewards.mean():.2%} of the free GPUs lost on average"
        )
    env.close()
    return mean


def write(weights):
    """Put the weights into the file of the plugin."""
    numbers = ", ".join(f"{weight:.3f}" for weight in weights)
    text = re.sub(r"^WEIGHTS = .*", f"WEIGHTS = ({numbers})", POLICY.read_text(), flags=re.M)
    POLICY.write_text(text)


def test(seeds, nodes):
    """The measure with the default scheduler and with the plugin, on the second half of the trace."""
    values = {"default": [], "learned": []}
    for seed in range(seeds):
        cluster = draw(np.random.default_rng(1000 + seed), half=1, count=nodes)
        for name, plugins in (("default", []), ("learned", [str(POLICY)])):
            report = simulate(cluster, plugins=plugins, seed=seed)
            values[name].append(report.measures()[MEASURE])
    default, learned = (Metric(MEASURE, tuple(values[name])) for name in values)
    for name, metric in (("default", default), ("learned", learned)):
        print(f"{name}: {metric.mean:.2%} ± {metric.margin:.2%}")
    difference = PairedDifference.of(learned, default)
    print(
        f"difference: {difference.mean:+.2%} ± {difference.margin:.2%} (95 %, {seeds} paired runs)"
    )
    return difference


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", action="store_true", help="only compare")
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", default="processes", help="processes, none or ray")
    asked = parser.parse_args()
    if not asked.test:
        write(train(asked.generations, asked.pairs, asked.nodes, asked.workers))
    test(asked.seeds, 3 * asked.nodes)
