"""Train the weights of policy.py by evolution strategies, and compare the result with the default scheduler.

    python examples/learned/train.py            # a few minutes on two cores; writes the weights into policy.py
    python examples/learned/train.py --test     # only the comparison, with the weights that are there

Training draws small clusters and pods from one trace, the test larger ones from another. Training: a GPU cluster of
2023 (openb) with shares of GPUs and many kinds of nodes. Test: nodes of 2026 and inference services of 2025, two thirds
of which ask for many cores and no GPU. The traces are cluster-trace-gpu-v2023, -v2025 and -v2026 of
github.com/alibaba/clusterdata. The measure is the number of pods that find no node, after pods have arrived that ask
for all of the cpu or all of the GPUs.
"""

import argparse
import csv
import gzip
import re
from functools import cache, partial
from importlib import resources
from pathlib import Path

import numpy as np

from bayplan import Cluster, simulate
from bayplan.gym import WeightsEnv, make_vector
from bayplan.sim.measures import Metric, PairedDifference

POLICY = Path(__file__).with_name("policy.py")
GPU = "bayplan.dev/gpu-milli"
MEASURE = "pending"
DEMAND = 1.0


@cache
def training_trace():
    """Nodes and pods of the trace of 2023, each as cpu (milli), memory (MiB) and GPUs (thousandths)."""
    folder = resources.files("bayplan") / "sim/bench/workloads/openb"
    tables = {}
    for name in ("nodes", "pods"):
        with gzip.open(str(folder / f"{name}.csv.gz"), "rt") as file:
            tables[name] = list(csv.DictReader(file))
    nodes = [
        (int(row["cpu_milli"]), int(row["memory_mib"]), 1000 * int(row["gpu"]))
        for row in tables["nodes"]
    ]
    pods = [
        (int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]) * int(row["gpu_milli"]))
        for row in tables["pods"]
    ]
    return nodes, pods


@cache
def test_trace():
    """The same of the traces of 2025 and 2026, from how often each shape occurs; nodes have 8 GiB per core."""
    nodes, pods = [], []
    for row in read_shapes("nodes"):
        cpu = int(row["cpu"])
        nodes += [(1000 * cpu, 8 * 1024 * cpu, 1000 * int(row["gpu"]))] * int(row["count"])
    for row in read_shapes("pods"):
        memory = round(1024 * float(row["memory_gib"]))
        pods += [(1000 * int(row["cpu"]), memory, 1000 * int(row["gpu"]))] * int(row["count"])
    return nodes, pods


def read_shapes(name):
    with (POLICY.with_name("other") / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def draw(random, trace, count):
    """A cluster of `count` nodes of the trace, with pods that ask for this part of its cpu or GPUs."""
    nodes, pods = trace()
    chosen = [nodes[place] for place in random.choice(len(nodes), count, replace=False)]
    objects = [
        make("Node", f"node-{i}", status={"allocatable": {**amounts(shape), "pods": "110"}})
        for i, shape in enumerate(chosen)
    ]
    offered, asked = np.array(chosen).sum(axis=0), np.zeros(3)
    while max(asked[0] / offered[0], asked[2] / offered[2]) < DEMAND:
        shape = pods[random.integers(len(pods))]
        asked += shape
        wanted = {"requests": amounts(shape), "limits": {GPU: str(shape[2])}}
        containers = [{"name": "main", "resources": wanted}]
        objects.append(make("Pod", f"pod-{len(objects)}", spec={"containers": containers}))
    return Cluster.of(*objects)


def amounts(shape):
    cpu, memory, gpu = shape
    return {"cpu": f"{cpu}m", "memory": f"{memory}Mi", GPU: str(gpu)}


def make(kind, name, **more):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def make_env(nodes):
    """One episode is one step: all pods with one vector of weights. Less of the measure is better: it is negative."""
    return WeightsEnv(
        partial(draw, trace=training_trace, count=nodes),
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
        print(f"generation {generation + 1}: {-rewards.mean():.2f} pods pending on average")
    env.close()
    return mean


def write(weights):
    """Put the weights into the file of the plugin."""
    numbers = ", ".join(f"{weight:.3f}" for weight in weights)
    text = re.sub(r"^WEIGHTS = .*", f"WEIGHTS = ({numbers})", POLICY.read_text(), flags=re.M)
    POLICY.write_text(text)


def test(seeds, nodes):
    """The measure with the default scheduler and with the plugin, on the other trace."""
    values = {"default": [], "learned": []}
    for seed in range(seeds):
        cluster = draw(np.random.default_rng(1000 + seed), test_trace, nodes)
        for name, plugins in (("default", []), ("learned", [str(POLICY)])):
            report = simulate(cluster, plugins=plugins, seed=seed)
            values[name].append(report.measures()[MEASURE])
    default, learned = (Metric(MEASURE, tuple(values[name])) for name in values)
    for name, metric in (("default", default), ("learned", learned)):
        print(f"{name}: {metric.mean:.1f} ± {metric.margin:.1f} pods pending")
    difference = PairedDifference.of(learned, default)
    print(
        f"difference: {difference.mean:+.1f} ± {difference.margin:.1f} (95 %, {seeds} paired runs)"
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
