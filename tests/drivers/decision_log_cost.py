"""Decision log cost: CPU time of `bayplan run` with and without `--decisions`, in turn.

`python -m tests.drivers.decision_log_cost --nodes 1000 --pods 5000 --rounds 3` prints the CPU seconds of each round.
The API server is that of `bayplan up`, in this process; all pods are there when the scheduler starts.
"""

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import yaml

from bayplan.apiserver.registry.resource_table import BY_STORAGE
from bayplan.apiserver.server import ApiServer, make_kubeconfig
from tests.shadow.live_measurement import NAMESPACE, cpu_s, nodes, pods
from tests.shadow.rate_measurement import load

POLL_S = 0.1
MOST_S = 120.0


async def cpu_of_run(arguments: argparse.Namespace, folder: Path, log: Path | None) -> float:
    """CPU seconds from the start of the scheduler until all pods that fit are bound."""
    server = ApiServer(None, controllers=False, runs_pods=False)
    await server.start()
    load(server, list(nodes(arguments.nodes, 1.0)))
    every = list(pods(arguments.pods, random.Random(arguments.seed)))
    trees = [tree for tree in every if "volumes" not in tree["spec"]]
    for tree in trees:
        server.registry.create(BY_STORAGE["pods"], NAMESPACE, tree)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(server.url, None, "")))
    command = [sys.executable, "-m", "bayplan.cli.main", "run", f"--kubeconfig={kubeconfig}"]
    command += ["--secure-port=0", "--leader-elect=false", "--v=0"]
    if log is not None:
        command.append(f"--decisions={log}")
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    first = before = server.store.resource_version
    end_s, quiet, spent_s = time.monotonic() + MOST_S, 0, 0.0
    while time.monotonic() < end_s and quiet < 15:
        await asyncio.sleep(POLL_S)
        now = server.store.resource_version
        quiet = quiet + 1 if now == before and now > first else 0
        if now != before:
            spent_s = cpu_s(process.pid)
        before = now
    process.send_signal(signal.SIGTERM)
    await process.wait()
    await server.stop()
    return spent_s


async def measure(arguments: argparse.Namespace, folder: Path) -> None:
    """Print the CPU time of each round, and the lowest of both."""
    found: dict[str, list[float]] = {"without": [], "with": []}
    for number in range(arguments.rounds):
        for name in found:
            log = folder / f"decisions-{number}.jsonl" if name == "with" else None
            found[name].append(await cpu_of_run(arguments, folder, log))
            lines = 0 if log is None else len(log.read_bytes().splitlines())
            print(json.dumps({name: round(found[name][-1], 2), "lines": lines}), flush=True)
    least = {name: min(values) for name, values in found.items()}
    print(json.dumps({"share": round(least["with"] / least["without"] - 1, 4), **least}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(arguments, Path(place)))


if __name__ == "__main__":
    main()
