"""Train the weights of policy.py by evolution strategies, and compare with the best static weights and the default.

    python examples/learned/train.py --sweep    # look for the best static weights; writes them into static.yaml
    python examples/learned/train.py            # a few minutes; writes weights into policy.py that are better
    python examples/learned/train.py --test     # only the comparison, with the weights that are there

Training, and the sweep, draw small clusters and pods from one trace, the test larger ones from another. Training: a GPU
cluster of 2023 (openb) with shares of GPUs and many kinds of nodes. Test: nodes of 2026 and inference services of 2025,
two thirds of which ask for many cores and no GPU. The traces are cluster-trace-gpu-v2023, -v2025 and -v2026 of
github.com/alibaba/clusterdata. The measure is the number of pods that find no node, after pods have arrived that ask
for all of the cpu or all of the GPUs. All three schedulers have a filter on each GPU.
"""

import argparse
import csv
import gzip
import json
import re
import sys
import tempfile
from functools import cache, partial
from importlib import resources
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from fill import fill

import bayplan
from bayplan import Cluster, simulate
from bayplan.gym import WeightsEnv, make_vector
from bayplan.sim.measures import Metric, PairedDifference

POLICY = Path(__file__).with_name("policy.py")
CONFIG = Path(__file__).with_name("config.yaml")
STATIC = Path(__file__).with_name("static.yaml")
WEIGHED = ("NodeResourcesFit", "NodeResourcesAlignment", "GpuShare", "FGD")
GRID = (1, 4, 16)
DEFAULT = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "filter": {"enabled": [{"name": "GpuShare"}]},
                "reserve": {"enabled": [{"name": "GpuShare"}]},
            }
        }
    ],
}
GPU = "bayplan.dev/gpu-milli"
MEASURE = "pending"
DEMAND = 1.0
SPREAD, RATE, DECAY = 0.15, 0.1, 0.99


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
    return Cluster.of(*draw_manifests(random, trace, count))


def draw_manifests(random, trace, count):
    """The same as manifests."""
    nodes, pods = draw_amounts(random, trace, count)
    found = [
        make("Node", f"node-{i}", status={"allocatable": {**amounts(shape), "pods": "110"}})
        for i, shape in enumerate(nodes)
    ]
    for shape in pods:
        wanted = {"requests": amounts(shape), "limits": {GPU: str(shape[2])}}
        containers = [{"name": "main", "resources": wanted}]
        found.append(make("Pod", f"pod-{len(found)}", spec={"containers": containers}))
    return found


def draw_amounts(random, trace, count):
    """The same as amounts: of nodes, and of pods."""
    nodes, pods = trace()
    chosen = [nodes[place] for place in random.choice(len(nodes), count, replace=False)]
    offered, asked, drawn = np.array(chosen).sum(axis=0), np.zeros(3), []
    while max(asked[0] / offered[0], asked[2] / offered[2]) < DEMAND:
        drawn.append(pods[random.integers(len(pods))])
        asked += drawn[-1]
    return chosen, drawn


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
        config=CONFIG,
        reward=MEASURE,
        pods_per_step=0,
    )


def train(generations, pairs, nodes, workers, seed=0):
    """Evolution strategies: a step towards the directions that gave more than their opposites.

    Without `workers` the candidates fill clusters by fill.py, otherwise by the scheduler in environments. Every ten
    generations the weights are judged by other workloads of the training trace; the best ones are written and returned.
    """
    random = np.random.default_rng(seed)
    env = make_vector(partial(make_env, nodes), 2 * pairs, workers) if workers else None
    mean = best = np.array(start_weights())
    least = judged(best, nodes)
    print(f"start: {least:.2f} pods pending on the workloads to judge by")
    spread, rate = SPREAD, RATE
    for generation in range(generations):
        noise = random.standard_normal((pairs, len(mean)))
        tried = np.clip(np.concatenate([mean + spread * noise, mean - spread * noise]), -1, 1)
        # all are tried on the same workloads, or both of a pair on one
        rewards = filled(tried, nodes, random) if env is None else in_envs(env, tried, generation)
        gains = rewards[:pairs] - rewards[pairs:]
        mean = np.clip(mean + rate * (gains / (gains.std() + 1e-9)) @ noise / pairs, -1, 1)
        spread, rate = (each * DECAY for each in (spread, rate))
        if generation % 10 == 9 or generation + 1 == generations:
            found = judged(mean, nodes)
            print(f"generation {generation + 1}: {found:.2f} pods pending", flush=True)
            if found < least:
                least, best = found, mean.copy()
                write(best)
    if env is not None:
        env.close()
    return best


def judged(weights, nodes):
    """The mean of the measure on workloads of the training trace that are not trained on."""
    random = np.random.default_rng(77)
    return np.mean([-filled(weights[None], nodes, random)[0] for _ in range(6)])


def filled(tried, nodes, random):
    """The rewards of candidates on two workloads, in each of which some kinds of pods are more frequent, and nodes have
    fewer GPUs or more cores.
    """
    weights = tried.reshape(len(tried), 3, -1)
    rewards = np.zeros(len(tried))
    for _ in range(2):
        trace = partial(
            mixed_trace,
            random.dirichlet((2, 2, 2)),
            random.choice((1, 2, 8)),
            random.choice((1, 2)),
        )
        rewards -= fill(weights, *draw_amounts(random, trace, nodes))
    return rewards / 2


def mixed_trace(mix, most_gpus, cores):
    """The training trace with these shares of pods without GPUs, with a share of one, and with whole ones.

    All pods of the trace have GPUs: those without are the same pods, which ask for two to eight times as much cpu and
    memory instead. Nodes have at most so many GPUs, and so many times the cores and memory.
    """
    nodes, pods = training_trace()
    nodes = [(cpu * cores, m * cores, min(gpu, 1000 * most_gpus)) for cpu, m, gpu in nodes]
    kinds = [[], [], []]
    for i, (cpu, memory, milli) in enumerate(pods):
        more = 2 << i % 3
        kinds[0].append((cpu * more, memory * more, 0))
        kinds[1 if milli < 1000 else 2].append((cpu, memory, milli))
    most = max(map(len, kinds))
    weighed = [int(share * most) + 1 for share in mix]
    return nodes, [
        kind[i % len(kind)] for kind, n in zip(kinds, weighed, strict=True) for i in range(n)
    ]


def in_envs(env, tried, generation):
    """The rewards in environments; both of a pair are tried on one workload."""
    pairs = len(tried) // 2
    seeds = [generation * pairs + i for i in range(pairs)]
    env.reset(seed=seeds + seeds)
    return env.step(tried)[1]


def start_weights():
    """The weights in the file of the plugin, from which training goes on."""
    found = {}
    exec(POLICY.read_text(), found)
    return found["WEIGHTS"]


def write(weights):
    """Put the weights into the file of the plugin, a line for each kind of pods."""
    lines = [
        f"    *({', '.join(f'{weight:.3f}' for weight in part)}),\n"
        for part in np.split(np.asarray(weights), 3)
    ]
    text = re.sub(
        r"^WEIGHTS = \(.*?^\)$",
        f"WEIGHTS = (\n{''.join(lines)})",
        POLICY.read_text(),
        flags=re.M | re.S,
    )
    POLICY.write_text(text)


def find_static(seeds, nodes, jobs=None, results=None):
    """Try every combination of weights on the training trace by a sweep; returns them by the mean of the measure.

    With `results`, a CSV file, a sweep that was interrupted goes on from there.
    """
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for seed in range(seeds):
            file = Path(folder) / f"{seed}.json"
            items = draw_manifests(np.random.default_rng(500 + seed), training_trace, nodes)
            file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            inputs.append({"name": str(seed), "files": [str(file)]})
        vary = {f"weight.{name}": list(GRID) for name in WEIGHED}
        static = {"name": "static", "file": str(STATIC.absolute()), "vary": vary}
        document = {"inputs": inputs, "configurations": [static], "measures": [MEASURE]}
        frame = bayplan.sweep(document, jobs=jobs, results=results).to_frame()
    by_weights = frame.groupby([f"weight.{name}" for name in WEIGHED])[MEASURE].mean()
    return by_weights.sort_values()


def write_static(weights):
    """Put the weights into the configuration."""
    text = STATIC.read_text()
    for name, weight in zip(WEIGHED, weights, strict=True):
        text = re.sub(rf"(name: {name}, weight: )\d+", rf"\g<1>{weight}", text)
    STATIC.write_text(text)


def compare(seeds, nodes, trace=test_trace):
    """The measure with the three schedulers on the other trace; returns the differences of the learned one."""
    schedulers = {
        "default": {"config": DEFAULT},
        "static": {"config": STATIC},
        "learned": {"config": CONFIG, "plugins": [str(POLICY)]},
    }
    values = {name: [] for name in schedulers}
    for seed in range(seeds):
        cluster = draw(np.random.default_rng(1000 + seed), trace, nodes)
        for name, options in schedulers.items():
            report = simulate(cluster, seed=seed, **options)
            values[name].append(report.measures()[MEASURE])
    metrics = {name: Metric(MEASURE, tuple(numbers)) for name, numbers in values.items()}
    for name, metric in metrics.items():
        print(f"{name}: {metric.mean:.1f} ± {metric.margin:.1f} pods pending")
    found = {}
    for name in ("default", "static"):
        found[name] = PairedDifference.of(metrics["learned"], metrics[name])
        mean, margin = found[name].mean, found[name].margin
        print(f"learned - {name}: {mean:+.1f} ± {margin:.1f} (95 %, {seeds} paired runs)")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", action="store_true", help="only compare")
    parser.add_argument("--sweep", action="store_true", help="only look for static weights")
    parser.add_argument("--results", help="a CSV file for the sweep")
    parser.add_argument("--generations", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--workers", help="train by the scheduler in processes, none or ray, not by fill.py"
    )
    asked = parser.parse_args()
    if asked.sweep:
        tried = find_static(asked.seeds, asked.nodes, results=asked.results)
        print(tried.head(10))
        write_static(tried.index[0])
        raise SystemExit
    if not asked.test:
        train(asked.generations, asked.pairs, asked.nodes, asked.workers)
    compare(asked.seeds, 3 * asked.nodes)
