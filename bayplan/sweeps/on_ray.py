"""On Ray: workers as actors on the machines of a Ray cluster, or on a Ray that is started here."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import InputError, package_needed
from ..manifests.input_bytes import input_limit
from ..scheduler import names_module
from .dispatch import CrewLostError, WorkerReport
from .sweep_run import SweepRun
from .worker import Worker

LOCAL = "local"
CONNECT_S = 10.0
CHECK_S = 5.0
"""Interval of checks that the head of the cluster responds, while no run ends."""
STARTS = 3
TOO_SLOW = "timed out during startup"
"""Ray's message when its processes did not start in 30 s."""

END_S = 2.0
"""Seconds that actors may take to remove their files."""


class RayCrew:
    """Workers as actors. The files of the runs are put into Ray's object store, so machines need not share a disk."""

    def __init__(self, address: str, runs: Iterable[SweepRun], jobs: int | None) -> None:
        with package_needed("--ray", "Ray", "ray"):
            import ray
        self._ray: Any = ray
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:  # otherwise the caller's own connection is used
            _connect(self._ray, address, jobs)
        # modules are installed on the machines of the cluster, as Bayplan is
        paths = {path for run in runs for path in run.digests if not names_module(path)}
        files = {path: Path(path).read_bytes() for path in sorted(paths)}
        self._files = self._ray.put(files)
        self._make = self._ray.remote(num_cpus=1, max_restarts=0)(Worker)
        self._actors: dict[int, Any] = {}
        self._pending: dict[Any, int] = {}
        self._started = 0
        self._head = str(self._ray.get_runtime_context().gcs_address)
        self._is_lost = False

    @property
    def cpus(self) -> int:
        """The cores of the cluster."""
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    def start(self) -> int:
        """Start an actor."""
        number, self._started = self._started, self._started + 1
        self._actors[number] = self._make.remote(self._files, __version__, input_limit())
        return number

    def give(self, worker: int, run: SweepRun) -> None:
        """Call the actor."""
        self._pending[self._actors[worker].run.remote(run)] = worker

    def next_report(self) -> WorkerReport:
        """Wait for a call to end."""
        done: list[Any] = []
        while not done:
            done, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=CHECK_S)
            if not done:
                self._check_there()
        worker = self._pending.pop(done[0])
        try:
            return WorkerReport(worker, self._ray.get(done[0]))
        except self._ray.exceptions.RayError as error:
            del self._actors[worker]
            return WorkerReport(worker, None, f"on Ray: {type(error).__name__}")

    def _check_there(self) -> None:
        """Raise CrewLostError when the head of the cluster is gone; Ray would end this process a minute later."""
        host, _, port = self._head.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except OSError as error:
            self._is_lost = True
            text = error.strerror or str(error)
            raise CrewLostError(
                f"--ray: the head of the cluster at {self._head} is gone: {text}"
            ) from None

    def close(self) -> None:
        """End the actors, and the connection if it was made here; with it ends a Ray that was started here."""
        if self._is_lost:
            return  # every call would wait for the head
        actors = list(self._actors.values())
        if actors:
            self._ray.wait(
                [a.close.remote() for a in actors], num_returns=len(actors), timeout=END_S
            )
        for actor in actors:
            self._ray.kill(actor)
        if self._is_ours:
            self._ray.shutdown()


def _connect(ray: Any, address: str, jobs: int | None) -> None:
    """Connect to a cluster, or start one on this machine. A busy machine may need several attempts for that."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == LOCAL:
        options |= {"num_cpus": jobs, "include_dashboard": False}
    else:
        _check_reachable(address)
        options["address"] = address
    for attempt in range(1, STARTS + 1):
        try:
            ray.init(**options)
            return
        except (ConnectionError, ValueError, RuntimeError) as error:
            text = str(error).strip().partition("\n")[0]
            raise InputError(f"--ray: {address}: expected a Ray cluster; got {text}") from None
        except Exception as error:  # Ray has no type of its own for this
            if TOO_SLOW not in str(error) or attempt == STARTS:
                raise
            ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise InputError when nothing listens at the address; Ray would try for minutes."""
    host, separator, port = address.rpartition("://")[2].rpartition(":")
    if not separator:
        return  # "auto", which Ray finds
    try:
        if not port.isdigit():
            raise InputError(f"--ray: {address}: expected HOST:PORT, auto or local")
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError as error:
        text = error.strerror or str(error)
        raise InputError(f"--ray: {address}: expected a Ray cluster; got {text}") from None
