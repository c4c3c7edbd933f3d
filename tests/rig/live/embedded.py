"""Embedded: the API server of `bayplan up` as a separate process, without its scheduler."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from .client import LiveClient
from .control_plane import gate_arguments
from .processes import Process, free_port

START_S = 60.0


class EmbeddedServer:
    """`bayplan up --no-scheduler` with its data in `folder`; `gates` are feature gates to turn on,
    `arguments` further options."""

    has_controllers = True

    def __init__(
        self, folder: Path, gates: Sequence[str] = (), arguments: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self._arguments = tuple(arguments)
        self.gates = tuple(gates)
        self.kubeconfig = folder / "kubeconfig"
        self._port = free_port()
        self.start_api_server()

    def start_api_server(self) -> None:
        """Start it, or start it again on the same port with the same data."""
        command = [sys.executable, "-m", "bayplan.cli.main", "up", "--no-scheduler", "--nodes=0"]
        command += ["--grace", *self._arguments]
        options = [f"--port={self._port}", f"--data-dir={self.folder / 'data'}"]
        self.api_server = Process(
            [*command, *options, *gate_arguments(self.gates), f"--kubeconfig={self.kubeconfig}"],
            self.folder / "up.log",
        )
        self.api_server.wait_until(self._is_ready, "ready", START_S)

    def kill_api_server(self) -> None:
        """Kill it as in a crash; the data stays."""
        self.api_server.kill()

    def stop(self) -> None:
        """Stop it."""
        self.api_server.stop()

    def _is_ready(self) -> bool:
        return self.kubeconfig.exists() and LiveClient(self.kubeconfig).is_ready()
