"""Live measurement: a real control plane with a scheduler at work, and `bayplan shadow` beside it.

`python -m tests.shadow.live_measurement --nodes 50 --pods 300` prints the report. The binaries are those of
`tests/rig/live/control_plane.py`. With `--scheduler bayplan` the scheduler is `bayplan run`; with `--faults SEED` a
proxy between shadow and API server makes requests fail; with `--extender` an extender that the shadow's configuration
does not have prefers some nodes and refuses others, with `--webhook` a webhook moves bindings to other nodes, with
`--most-allocated` the scheduler scores otherwise, and with `--filter-plugin` it has a plugin that it was built with.
`--late` starts the scheduler when pods wait already, `--restart-api-server` and `--restart-shadow` interrupt the run at
half its time, and `--confirm` repeats the totals of sampled decisions with `bayplan explain` on the evidence.
`--record` records the cluster, for tests.shadow.confirmation.
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
from collections.abc import Callable, Iterator
from itertools import islice
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

from .confirmation import confirmed
from .strangers import MOST_ALLOCATED, BindingWebhook, Extender

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
        self._extra: list[str] = []
        self._added = 0

    def prepare(self, node_count: int, scale: float) -> None:
        client = self._client
        self._scale = scale
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

    def run(self, at_half: Callable[[], None] = lambda: None) -> None:
        """Create all pods; `at_half` is called once, in between."""
        client, draw = self._client, self._draw
        every = list(pods(self._count, draw))
        is_half = False
        while every:
            if not is_half and len(every) <= self._count // 2:
                is_half = True
                at_half()
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
            self._change_nodes()
        except RefusedError:
            pass  # the pod is gone already: preempted

    def _change_nodes(self) -> None:
        """Add a node, or remove one with its pods."""
        client, draw = self._client, self._draw
        chance = draw.random()
        if chance < 0.02:
            self._added += 1
            (tree,) = islice(nodes(self._added, self._scale), self._added - 1, self._added)
            tree["metadata"]["name"] = name = f"x-{self._added:04}"
            tree["metadata"]["labels"][HOSTNAME] = name
            client.create_all(path_of("Node"), [tree])
            self._extra.append(name)
        elif chance < 0.03 and self._extra:
            name = self._extra.pop(draw.randrange(len(self._extra)))
            client.delete(path_of("Node", name=name))


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


class Measurement:
    """One run with a control plane, players, a scheduler and a shadow."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self._arguments = arguments
        self._folder = folder
        self._plane = LiveControlPlane(folder / "plane")
        self._client = LiveClient(self._plane.kubeconfig)
        self._players: list[Any] = [LiveKubelets(self._client), Volumes(self._client)]
        self._started: list[Any] = []
        self._proxy: FaultProxy | None = None

    def run(self) -> Tree:
        """Run it all; returns the report of the shadow."""
        try:
            return self._run()
        finally:
            for process in self._started:
                process.kill()
            for player in reversed(self._players):
                player.stop()
            self._plane.stop()

    def _run(self) -> Tree:
        arguments, client = self._arguments, self._client
        workload = Workload(client, arguments.pods, arguments.rate, arguments.seed)
        workload.prepare(arguments.nodes, arguments.scale)
        self._kubeconfig = self._with_faults()
        settings = self._strangers()
        if not arguments.late:
            self._start_scheduler(settings)
        self._shadow = start_shadow(self._kubeconfig, self._folder, arguments)
        recorder = self._start_recorder() if arguments.record else None
        time.sleep(arguments.settle)
        begin = time.monotonic()
        if arguments.late:
            workload.run(lambda: self._start_scheduler(settings))
        else:
            workload.run(self._interrupt)
        bound, waiting = wait_until_quiet(client, 4, arguments.wait)
        seconds = time.monotonic() - begin
        print(f"{bound} bound, {waiting} waiting, {seconds:.0f} s", file=sys.stderr)
        if self._proxy is not None:
            print(f"faults: {dict(self._proxy.injected)}", file=sys.stderr)
        time.sleep(3)
        if recorder is not None:
            recorder.send_signal(signal.SIGTERM)
            recorder.wait(60)
        return self._report()

    def _start_scheduler(self, settings: Tree) -> None:
        config = make_config(self._plane.kubeconfig, **settings)
        place = self._folder / "scheduler"
        self._started.append(start_scheduler(self._arguments.scheduler, config, place))

    def _start_recorder(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "bayplan.cli.main", "record"]
        command += [
            f"--kubeconfig={self._plane.kubeconfig}",
            f"--to={self._folder / 'run.jsonl.gz'}",
        ]
        recorder = subprocess.Popen(command, text=True)
        self._started.append(recorder)
        return recorder

    def _with_faults(self) -> Path:
        arguments, kubeconfig = self._arguments, self._plane.kubeconfig
        if arguments.faults is None:
            return kubeconfig
        self._proxy = FaultProxy(kubeconfig, self._folder, faults_of(arguments.faults))
        self._players.append(self._proxy)
        # the second half shows whether it recovers
        half_s = arguments.settle + arguments.pods / arguments.rate / 2
        threading.Timer(half_s, self._proxy.end).start()
        return self._proxy.kubeconfig

    def _strangers(self) -> Tree:
        """Start what the shadow does not know of; returns settings of the scheduler."""
        arguments = self._arguments
        settings: Tree = {}
        if arguments.extender:
            extender = Extender()
            self._players.append(extender)
            settings["extenders"] = [extender.config]
        if arguments.most_allocated:
            settings["profiles"] = [MOST_ALLOCATED]
        if arguments.filter_plugin:
            enabled = {"filter": {"enabled": [{"name": arguments.filter_plugin}]}}
            settings["profiles"] = [{"schedulerName": "default-scheduler", "plugins": enabled}]
        if arguments.webhook:
            names = [f"n-{number:04}" for number in range(arguments.nodes)]
            webhook = BindingWebhook(self._folder, names)
            self._players.append(webhook)
            path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
            self._client.create(path, webhook.configuration())
        return settings

    def _interrupt(self) -> None:
        """Restart the API server, or the shadow."""
        if self._arguments.restart_api_server:
            self._plane.kill_api_server()
            time.sleep(2)
            self._plane.start_api_server()
        if self._arguments.restart_shadow:
            self._shadow.send_signal(signal.SIGTERM)
            out, _ = self._shadow.communicate(timeout=120)
            print("until its SIGTERM:", json.loads(out)["summary"], file=sys.stderr)
            self._shadow = start_shadow(self._kubeconfig, self._folder, self._arguments)
            time.sleep(self._arguments.settle)

    def _report(self) -> Tree:
        shadow = self._shadow
        memory, cpu = peak_memory_mb(shadow.pid), cpu_s(shadow.pid)
        shadow.send_signal(signal.SIGTERM)
        out, _ = shadow.communicate(timeout=120)
        report: Tree = json.loads(out)
        report["measured"] = {"memoryMB": memory, "cpuSeconds": cpu, "status": shadow.returncode}
        return report


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
        *(["--evidence-sampled"] if arguments.confirm else []),
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
    parser.add_argument("--filter-plugin", help="a plugin of a kube-scheduler that has one more")
    for name in ("extender", "webhook", "most-allocated", "late", "confirm", "record"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--restart-api-server", action="store_true")
    parser.add_argument("--restart-shadow", action="store_true")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plane").mkdir()
        report = Measurement(arguments, folder).run()
        show(report)
        if arguments.confirm:
            print(json.dumps(confirmed(folder / "evidence")))


def show(report: Tree) -> None:
    """Print the differences and the figures."""
    for difference in itertools.islice(report["differences"], 20):
        print(json.dumps(difference), file=sys.stderr)
    for name in ("summary", "schedulers", "skipped", "hints", "waits", "measured"):
        print(json.dumps({name: report[name]}))


if __name__ == "__main__":
    main()
