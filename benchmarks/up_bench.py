"""Bench up: pods created on `bayplan up` by several clients, until all of them run (`make bench-up`).

Measured are pods per second from the first creation to the last pod that is Running, processor time
and memory of the server, and how long after the response to its creation a watch shows a pod. The
clients send one request at a time over a connection each, as kubectl does; they are in this process.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml

from tests.rig.live.processes import Process

PODS = "/api/v1/namespaces/default/pods"
START_S, TIMEOUT_S = 120.0, 1800.0
HEAD_END = b"\r\n\r\n"


class _Name(msgspec.Struct):
    name: str = ""


class _Phase(msgspec.Struct):
    phase: str = ""


class _WatchedPod(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    status: _Phase = msgspec.field(default_factory=_Phase)


class _PodEvent(msgspec.Struct):
    type: str = ""
    object: _WatchedPod = msgspec.field(default_factory=_WatchedPod)


class UpMeasurement(NamedTuple):
    """The measurements."""

    pods: int
    seconds: float
    pods_per_s: float
    server_cpu_s: float
    pods_per_cpu_s: float
    """Pods per second of the server's processor time, which does not depend on other load of the machine."""
    peak_mib: float
    latency_ms: dict[str, float]
    """From the response to a creation to the event of a watch: percentiles."""


class PodWatch(threading.Thread):
    """Notes when a watch shows pods, and when they run."""

    def __init__(self, address: tuple[str, int], total: int) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._total = total
        self.seen: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.is_open, self.is_done = threading.Event(), threading.Event()

    def run(self) -> None:
        """Watch until all pods run."""
        decoder = msgspec.json.Decoder(_PodEvent)
        with socket.create_connection(self._address, TIMEOUT_S) as connection:
            connection.sendall(_head("GET", f"{PODS}?watch=true"))
            file = connection.makefile("rb", 1 << 20)
            while file.readline() != b"\r\n":
                pass
            self.is_open.set()
            while len(self.running) < self._total:
                size = int(file.readline(), 16)
                data, _ = file.read(size), file.readline()
                now = time.monotonic()
                for line in data.splitlines():
                    event = decoder.decode(line)
                    self.seen.setdefault(event.object.metadata.name, now)
                    if event.object.status.phase == "Running":
                        self.running.setdefault(event.object.metadata.name, now)
        self.is_done.set()


def create(address: tuple[str, int], numbers: Sequence[int], answered: dict[str, float]) -> None:
    """Create the pods with these numbers one after the other."""
    with socket.create_connection(address, TIMEOUT_S) as connection:
        for number in numbers:
            connection.sendall(_creation(number))
            read = b""
            while HEAD_END not in read:
                read += connection.recv(1 << 16)
            head, _, body = read.partition(HEAD_END)
            assert head.startswith(b"HTTP/1.1 201"), read.decode(errors="replace")
            length = int(head.lower().partition(b"content-length:")[2].split()[0])
            while len(body) < length:
                body += connection.recv(1 << 16)
            answered[f"p-{number}"] = time.monotonic()


def _creation(number: int) -> bytes:
    requests = {"cpu": "100m", "memory": "200Mi"}
    spec = {"containers": [{"name": "a", "image": "app:1", "resources": {"requests": requests}}]}
    body = json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{number}"}, "spec": spec}
    ).encode()
    return _head("POST", PODS, len(body)) + body


def _head(method: str, path: str, length: int = 0) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


def measure(nodes: int, pods: int, clients: int, folder: Path) -> UpMeasurement:
    """Run a cluster of this size, and create the pods."""
    kubeconfig = folder / "kubeconfig"
    options = ["--http", "--no-page", f"--nodes={nodes}", "--like=cpu=32,memory=128Gi"]
    command = [sys.executable, "-m", "bayplan.cli.main", "up", *options]
    server = Process([*command, f"--kubeconfig={kubeconfig}"], folder / "up.log")
    try:
        server.wait_until(kubeconfig.exists, "ready", START_S)
        config = yaml.safe_load(kubeconfig.read_text())
        url = urlsplit(config["clusters"][0]["cluster"]["server"])
        address = (str(url.hostname), int(url.port or 0))
        watch = PodWatch(address, pods)
        watch.start()
        watch.is_open.wait(START_S)
        answered: dict[str, float] = {}
        threads = [
            threading.Thread(target=create, args=(address, range(first, pods, clients), answered))
            for first in range(clients)
        ]
        before_s, began = server.cpu_s(), time.monotonic()
        for thread in threads:
            thread.start()
        is_done = watch.is_done.wait(TIMEOUT_S)
        assert is_done, f"{len(watch.running)} of {pods} pods run. {server.last_words()}"
        cpu_s, seconds = server.cpu_s() - before_s, max(watch.running.values()) - began
        late = sorted(max(watch.seen[name] - when, 0) * 1000 for name, when in answered.items())
        return UpMeasurement(
            pods,
            round(seconds, 2),
            round(pods / seconds, 1),
            round(cpu_s, 2),
            round(pods / cpu_s, 1),
            round(server.memory_mib()["peak"], 1),
            {f"p{share}": round(late[len(late) * share // 100], 2) for share in (50, 90, 99)},
        )
    finally:
        server.stop()


def main() -> int:
    """Measure pods per second from creation to Running on `bayplan up`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=4, help="connections that create pods")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments.nodes, arguments.pods, arguments.clients, Path(folder))
    print(json.dumps(found._asdict(), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
