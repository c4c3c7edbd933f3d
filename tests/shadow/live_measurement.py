"""Live measurement: a real control plane with a scheduler at work, and `bayplan shadow` beside it.

`python -m tests.shadow.live_measurement --nodes 50 --pods 300` prints the report. The binaries are those of
`tests/rig/live/control_plane.py`. With `--scheduler bayplan` the scheduler is `bayplan run`; with `--faults SEED` a
proxy between shadow and API server makes requests fail; with `--extender` an extender that the shadow's configuration
does not have prefers some nodes and refuses others.
"""

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.rig.faults import Faults
from tests.rig.live.client import LiveClient, RefusedError
from tests.rig.live.cluster import node_tree, pod_tree
from tests.rig.live.control_plane import LiveControlPlane
from tests.rig.live.fault_proxy import FaultProxy
from tests.rig.live.kinds import path_of, with_head
from tests.rig.live.kubelets import LiveKubelets
from tests.rig.live.schedulers import make_config, start_scheduler
from tests.rig.live.volumes import Volumes

Tree = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
NAMESPACE = "default"
PRIORITIES = {"low": -10, "high": 1000}


def nodes(count: int, scale: float) -> Iterator[Tree]:
    """Nodes of four sizes in three zones; some have a taint, some a disk."""
    for number in range(count):
        cores = max(1, round((4, 8, 16, 32)[number % 4] * scale))
        labels = {ZONE: f"z{number % 3}", "pool": f"p{number % 5}"}
        if number % 4 == 1:
            labels["disk"] = "ssd"
        spec: Tree = {}
        if number % 10 == 9:
            spec["taints"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
        elif number % 10 == 8:
            spec["taints"] = [{"key": "spot", "value": "yes", "effect": "PreferNoSchedule"}]
        room = {"cpu": str(cores), "memory": f"{cores * 4}Gi", "pods": "110"}
        yield with_head("Node", node_tree(f"n-{number:04}", labels, room, **spec))


def pods(count: int, draw: random.Random, classes: int = 120) -> Iterator[Tree]:
    """Pods of many classes: amounts, selectors, tolerations, spread, affinity, priorities, volumes."""
    kinds = [_pod_class(number, draw) for number in range(classes)]
    for number in range(count):
        kind = kinds[number % classes] if number < classes else draw.choice(kinds)
        labels, requests, spec = kind
        spec = dict(spec)
        if spec.pop("claim", False):
            claim = {"claimName": f"claim-{number}"}
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
        tree = pod_tree(f"pod-{number:05}", requests, labels, **spec)
        yield with_head("Pod", tree)


def _pod_class(number: int, draw: random.Random) -> tuple[dict[str, str], dict[str, str], Tree]:
    app = f"app-{number}"
    labels = {"app": app, "tier": f"t{number % 6}"}
    requests = {
        "cpu": f"{draw.choice((50, 100, 200, 500, 1000))}m",
        "memory": f"{draw.choice((64, 128, 256, 512, 1024))}Mi",
    }
    spec: Tree = {}
    selector = {"matchLabels": {"app": app}}
    match number % 12:
        case 1:
            hard = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**hard, "labelSelector": selector}]
        case 2:
            soft = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
            spec["topologySpreadConstraints"] = [{**soft, "labelSelector": selector}]
        case 3:
            term = {"labelSelector": selector, "topologyKey": HOSTNAME}
            soft_term = [{"weight": 50, "podAffinityTerm": term}]
            preferred = {"preferredDuringSchedulingIgnoredDuringExecution": soft_term}
            spec["affinity"] = {"podAntiAffinity": preferred}
        case 4:
            tier = {"matchLabels": {"tier": labels["tier"]}}
            term = {"labelSelector": tier, "topologyKey": ZONE}
            soft_term = [{"weight": 20, "podAffinityTerm": term}]
            preferred = {"preferredDuringSchedulingIgnoredDuringExecution": soft_term}
            spec["affinity"] = {"podAffinity": preferred}
        case 5:
            spec["nodeSelector"] = {"disk": "ssd"}
        case 6:
            dedicated = {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}
            spec["tolerations"] = [dedicated]
        case 7:
            spec["priorityClassName"] = "high"
        case 8:
            spec["priorityClassName"] = "low"
            requests["cpu"] = "1500m"
        case 9:
            spec["claim"] = True
        case 10:
            wanted = {"key": "pool", "operator": "In", "values": [f"p{number % 5}"]}
            soft_node = {"weight": 30, "preference": {"matchExpressions": [wanted]}}
            preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [soft_node]}
            spec["affinity"] = {"nodeAffinity": preferred}
        case 11:
            spec["nodeSelector"] = {"pool": "does-not-exist"} if number % 24 == 11 else {}
    return labels, requests, spec


class Workload:
    """Creates the pods in bursts, with churn of nodes and pods in between."""

    def __init__(self, client: LiveClient, count: int, per_s: float, seed: int) -> None:
        self._client = client
        self._count = count
        self._per_s = per_s
        self._draw = random.Random(seed)
        self._made: list[str] = []

    def prepare(self, node_count: int, scale: float) -> None:
        client = self._client
        for name, value in PRIORITIES.items():
            tree = {"metadata": {"name": name}, "value": value}
            client.create(path_of("PriorityClass"), with_head("PriorityClass", tree))
        tree = {
            "metadata": {"name": "local"},
            "provisioner": "example.com/local",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        client.create(path_of("StorageClass"), with_head("StorageClass", tree))
        client.create_all(path_of("Node"), nodes(node_count, scale))
        self._nodes = node_count

    def run(self) -> None:
        client, draw = self._client, self._draw
        every = list(pods(self._count, draw))
        while every:
            size = min(len(every), draw.choice((1, 5, 20, 40)))
            burst, every = every[:size], every[size:]
            for pod in burst:
                for volume in pod["spec"].get("volumes", ()):
                    self._claim(volume["persistentVolumeClaim"]["claimName"])
            client.create_all(path_of("Pod", NAMESPACE), burst)
            self._made += [pod["metadata"]["name"] for pod in burst]
            self._churn()
            time.sleep(size / self._per_s)

    def _claim(self, name: str) -> None:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        tree = with_head("PersistentVolumeClaim", {"metadata": {"name": name}, "spec": spec})
        self._client.create(path_of("PersistentVolumeClaim", NAMESPACE), tree)

    def _churn(self) -> None:
        client, draw = self._client, self._draw
        try:
            if draw.random() < 0.25 and len(self._made) > 20:
                name = self._made.pop(draw.randrange(len(self._made)))
                client.delete(path_of("Pod", NAMESPACE, name))
            if draw.random() < 0.1:
                node = path_of("Node", name=f"n-{draw.randrange(self._nodes):04}")
                client.patch(node, {"spec": {"unschedulable": draw.random() < 0.5}})
            if draw.random() < 0.05:
                node = path_of("Node", name=f"n-{draw.randrange(self._nodes):04}")
                client.patch(node, {"metadata": {"labels": {"pool": f"p{draw.randrange(5)}"}}})
        except RefusedError:
            pass  # the pod is gone already: preempted


class Extender:
    """Refuses nodes of one pool for some pods, and prefers those of another one."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                arguments = json.loads(self.rfile.read(size))
                answer = json.dumps(answer_of(self.path, arguments)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def config(self) -> Tree:
        return {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_address[1]}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "nodeCacheCapable": True,
        }

    def stop(self) -> None:
        self._server.shutdown()


def answer_of(path: str, arguments: Tree) -> Any:
    """Odd nodes are refused for pods of tier t3; nodes that end with 4 get ten points."""
    names = arguments.get("NodeNames") or arguments.get("nodenames") or []
    pod = arguments.get("Pod") or arguments.get("pod") or {}
    if path.endswith("prioritize"):
        return [{"Host": name, "Score": 10 if name.endswith("4") else 0} for name in names]
    tier = pod["metadata"].get("labels", {}).get("tier")
    refused = [name for name in names if tier == "t3"]
    kept = [name for name in names if name not in refused]
    return {
        "NodeNames": kept,
        "FailedNodes": dict.fromkeys(refused, "node(s) had no licence left"),
    }


def wait_until_quiet(client: LiveClient, quiet_s: float, most_s: float) -> tuple[int, int]:
    """Wait until the number of bound pods stays the same; returns bound and waiting pods."""
    end, since, before = time.monotonic() + most_s, time.monotonic(), -1
    while time.monotonic() < end:
        items = client.get(path_of("Pod"))["items"]
        bound = sum(bool(item["spec"].get("nodeName")) for item in items)
        if bound != before:
            since, before = time.monotonic(), bound
        if time.monotonic() - since > quiet_s:
            return bound, len(items) - bound
        time.sleep(0.5 if len(items) < 1000 else 2)
    return before, len(items) - before


def faults_of(seed: int) -> Faults:
    """Refusals, lost and torn responses; watches that are cut, stall or expire."""
    return Faults(
        seed,
        refused=0.05,
        delayed=0.1,
        cut=0.03,
        lost=0.03,
        torn=0.05,
        watch_cut=0.1,
        watch_stalled=0.1,
        watch_expired=0.1,
    )


def measure(arguments: argparse.Namespace, folder: Path) -> Tree:
    """Run it all; returns the report of the shadow."""
    plane = LiveControlPlane(folder / "plane")
    client = LiveClient(plane.kubeconfig)
    players: list[Any] = [LiveKubelets(client), Volumes(client)]
    started: list[Any] = []
    try:
        workload = Workload(client, arguments.pods, arguments.rate, arguments.seed)
        workload.prepare(arguments.nodes, arguments.scale)
        kubeconfig = plane.kubeconfig
        if arguments.faults is not None:
            proxy = FaultProxy(kubeconfig, folder, faults_of(arguments.faults))
            players.append(proxy)
            kubeconfig = proxy.kubeconfig
            # the second half shows whether it recovers
            half = threading.Timer(
                arguments.settle + arguments.pods / arguments.rate / 2, proxy.end
            )
            half.start()
        settings: Tree = {}
        if arguments.extender:
            extender = Extender()
            players.append(extender)
            settings["extenders"] = [extender.config]
        config = make_config(plane.kubeconfig, **settings)
        started.append(start_scheduler(arguments.scheduler, config, folder / "scheduler"))
        shadow = start_shadow(kubeconfig, folder, arguments)
        time.sleep(arguments.settle)
        begin = time.monotonic()
        workload.run()
        bound, waiting = wait_until_quiet(client, 4, arguments.wait)
        print(
            f"{bound} bound, {waiting} waiting, {time.monotonic() - begin:.0f} s", file=sys.stderr
        )
        if arguments.faults is not None:
            print(f"faults: {dict(proxy.injected)}", file=sys.stderr)
        time.sleep(3)
        memory = peak_memory_mb(shadow.pid)
        cpu = cpu_s(shadow.pid)
        shadow.send_signal(signal.SIGTERM)
        out, _ = shadow.communicate(timeout=120)
        report: Tree = json.loads(out)
        report["measured"] = {"memoryMB": memory, "cpuSeconds": cpu, "status": shadow.returncode}
        return report
    finally:
        for process in started:
            process.kill()
        for player in reversed(players):
            player.stop()
        plane.stop()


def start_shadow(
    kubeconfig: Path, folder: Path, arguments: argparse.Namespace
) -> subprocess.Popen[str]:
    """Start `bayplan shadow` as a process."""
    command = [sys.executable, "-m", "bayplan.cli.main", "shadow", f"--kubeconfig={kubeconfig}"]
    command += [
        f"--evidence={folder / 'evidence'}",
        f"--state={folder / 'state.json'}",
        "-o",
        "json",
    ]
    if arguments.scheduler == "bayplan":
        (folder / "all-nodes.yaml").write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "percentageOfNodesToScore: 100\n"
        )
        command.append(f"--config={folder / 'all-nodes.yaml'}")
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def peak_memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--pods", type=int, default=300)
    parser.add_argument("--rate", type=float, default=40.0, help="pods per second")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settle", type=float, default=6.0)
    parser.add_argument("--wait", type=float, default=120.0)
    parser.add_argument(
        "--scheduler", choices=("kube-scheduler", "bayplan"), default="kube-scheduler"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="size of the nodes")
    parser.add_argument("--faults", type=int)
    parser.add_argument("--extender", action="store_true")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plane").mkdir()
        report = measure(arguments, folder)
    for difference in itertools.islice(report["differences"], 20):
        print(json.dumps(difference), file=sys.stderr)
    for name in ("summary", "schedulers", "skipped", "hints", "waits", "measured"):
        print(json.dumps({name: report[name]}))


if __name__ == "__main__":
    main()
