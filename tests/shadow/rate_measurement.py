"""Rate measurement: `bayplan shadow` beside a scheduler that binds at a given rate, on one core.

`python -m tests.shadow.rate_measurement --nodes 5000 --pods 15000 --rate 500` prints the CPU time of the shadow per
binding, its lag and its verdicts. The API server is that of `bayplan up`, in this process; the bindings are decided
before, one after the other, and become visible at the rate. With `--sampled SHARE` that part of the pods goes to the
best of as many nodes as kube-scheduler compares, drawn at random. With `--patient` the shadow never skips, however long
it waits for a core, and is in a hurry from the start: so its CPU time per binding can be measured on a busy machine.
"""

import argparse
import asyncio
import json
import math
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from bayplan.api.wire.decode import decode_object
from bayplan.apiserver.registry.resource_table import BY_STORAGE
from bayplan.apiserver.server import ApiServer, make_kubeconfig
from bayplan.cli.main import app
from bayplan.scheduler import RandomTies
from bayplan.scheduler.assessment import choose
from bayplan.scheduler.find_nodes import num_feasible_nodes_to_find
from bayplan.shadow import live_shadow
from bayplan.trials import TrialCluster

from .live_measurement import NAMESPACE, PRIORITIES, cpu_s, nodes, peak_memory_mb, pods

Tree = dict[str, Any]
SLICE_S = 0.02


def plan(node_trees: list[Tree], pod_trees: list[Tree], sampled: float) -> list[str]:
    """The node of each pod, decided in order; "" for a pod without one."""
    nodes: list[Any] = [decode_object(tree) for tree in node_trees]
    view = TrialCluster(nodes)
    ties, draw, names = RandomTies(0), random.Random(0), []
    most = num_feasible_nodes_to_find(0, len(node_trees))
    for number, tree in enumerate(pod_trees):
        spec = dict(tree["spec"])
        value = PRIORITIES.get(spec.pop("priorityClassName", ""), 0)
        meta = {**tree["metadata"], "namespace": NAMESPACE, "uid": f"u{number}"}
        pod: Any = decode_object({**tree, "metadata": meta, "spec": {**spec, "priority": value}})
        inquiry = view.ask(pod)
        name = choose(inquiry, ties)
        if name and draw.random() < sampled:
            totals = inquiry.decision().ranked.totals().tolist()
            feasible = [row for row, total in enumerate(totals) if total >= 0]
            compared = draw.sample(feasible, min(most, len(feasible)))
            name = inquiry.table.names[max(compared, key=lambda row: totals[row])]
        names.append(name)
        if name:
            view.replace_object(None, pod.replace(node_name=name))
    return names


def load(server: ApiServer, trees: list[Tree]) -> None:
    """Create the nodes and what pods name."""
    for tree in trees:
        status = tree.pop("status")
        record = server.registry.create(BY_STORAGE["nodes"], "", tree)
        server.registry.write(BY_STORAGE["nodes"], record, {**record.decode(), "status": status})
    for name, value in PRIORITIES.items():
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        tree = {**head, "metadata": {"name": name}, "value": value}
        server.registry.create(BY_STORAGE["priorityclasses.scheduling.k8s.io"], "", tree)


async def bind_all(
    server: ApiServer, trees: list[Tree], names: list[str], rate: float
) -> tuple[int, float]:
    """Create each pod and bind it a moment later, at the rate; the number of bindings and the seconds."""
    start, done, bound = time.monotonic(), 0, 0
    while done < len(trees):
        due = min(len(trees), int((time.monotonic() - start) * rate) + 1)
        for number in range(done, due):
            server.registry.create(BY_STORAGE["pods"], NAMESPACE, trees[number])
            if names[number]:
                name = trees[number]["metadata"]["name"]
                target = {"kind": "Node", "name": names[number]}
                binding = {"metadata": {"name": name}, "target": target}
                server.registry.bind(NAMESPACE, name, binding)
                bound += 1
        done = due
        await asyncio.sleep(SLICE_S)
    return bound, time.monotonic() - start


async def until_idle(pid: int) -> None:
    """Wait until a process uses next to no CPU time."""
    before_s = -1.0
    while cpu_s(pid) - before_s > 0.2:
        before_s = cpu_s(pid)
        await asyncio.sleep(3)


def run_patient_shadow() -> None:
    """The command `bayplan`, with a shadow that never skips a decision and is always in a hurry."""
    live_shadow.BEHIND_S = live_shadow.LATE_S = math.inf
    live_shadow.MOST_OPEN = 10**9
    live_shadow.HURRIED = -1
    app()


async def measure(arguments: argparse.Namespace, folder: Path) -> Tree:
    """Run it all; the report of the shadow with its figures."""
    draw = random.Random(arguments.seed)
    node_trees = list(nodes(arguments.nodes, 1.0))
    trees = [tree for tree in pods(arguments.pods, draw) if "volumes" not in tree["spec"]]
    names = plan(node_trees, trees, arguments.sampled)
    print(f"{sum(map(bool, names))} of {len(names)} pods have a node", file=sys.stderr)
    server = ApiServer(None, controllers=False, runs_pods=False)
    await server.start()
    load(server, node_trees)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(server.url, None, "")))
    module = "tests.shadow.rate_measurement" if arguments.patient else "bayplan.cli.main"
    command = [sys.executable, "-m", module, "shadow", f"--kubeconfig={kubeconfig}"]
    process = await asyncio.create_subprocess_exec(
        *command, "-o", "json", f"--state={folder / 's.json'}", stdout=asyncio.subprocess.PIPE
    )
    await asyncio.sleep(arguments.settle)
    before_s, own_s = cpu_s(process.pid), time.process_time()
    bound, seconds = await bind_all(server, trees, names, arguments.rate)
    during_s = cpu_s(process.pid) - before_s
    await until_idle(process.pid)
    total_s, memory = cpu_s(process.pid) - before_s, peak_memory_mb(process.pid)
    process.send_signal(signal.SIGTERM)
    out, _ = await process.communicate()
    await server.stop()
    report: Tree = json.loads(out)
    report["measured"] = {
        "bindings": bound,
        "seconds": round(seconds, 1),
        "perSecond": round(bound / seconds),
        "shadowCpuWhileBinding": round(during_s, 1),
        "shadowCpu": round(total_s, 1),
        "shareOfOneCore": round(during_s / seconds, 2),
        "bindingsPerCpuSecond": round(bound / total_s),
        "memoryMB": round(memory),
        "serverCpu": round(time.process_time() - own_s, 1),
    }
    return report


def main() -> None:
    if sys.argv[1:2] == ["shadow"]:
        run_patient_shadow()
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=100.0, help="bindings per second")
    parser.add_argument("--sampled", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patient", action="store_true")
    parser.add_argument("--settle", type=float, default=6.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        report = asyncio.run(measure(arguments, Path(place)))
    for name in ("summary", "schedulers", "skipped", "measured"):
        print(json.dumps({name: report[name]}))


if __name__ == "__main__":
    main()
