"""Control plane: a real kube-apiserver with its etcd, on free ports of the loopback, for a test.

The binaries are searched where envtest does: in the folder that KUBEBUILDER_ASSETS names, else in
/usr/local/kubebuilder/bin. There is no controller manager: `kubelets.py` simulates its controllers
and the kubelets, and admission plugins that depend on them are off.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_urlsafe

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cluster.certificates import make_certificate

from ..groups import ALL_GROUP_GATES
from .client import LiveClient
from .processes import Process, free_port

DEFAULT_ASSETS = Path("/usr/local/kubebuilder/bin")
NEEDED = ("etcd", "kube-apiserver")
NOT_RUN = "NOT RUN against a real kube-apiserver"
START_S = 90.0
# Without a controller manager, service accounts would not be created, the taint of new nodes would
# not be removed, and protected claims and volumes would not be released.
ADMISSION_OFF = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection"

POD_GROUP_GATES = tuple(ALL_GROUP_GATES)
"""Gates of a server and its scheduler for pod groups with all features."""
DEVICE_GATES = ("DRADeviceTaintRules", "DRANodeAllocatableResources")
"""Gates of device allocation that are off by default."""
ALPHA_VERSIONS = {
    "CoordinatedLeaderElection": "coordination.k8s.io/v1beta1",
    "DRADeviceTaintRules": "resource.k8s.io/v1beta2",
    "GenericWorkload": "scheduling.k8s.io/v1alpha2",
}
"""The versions of the API that are not served by default, by the gate that needs them."""


def assets_folder() -> Path:
    """The folder of the binaries."""
    return Path(os.environ.get("KUBEBUILDER_ASSETS") or DEFAULT_ASSETS)


def find_asset(name: str) -> Path | None:
    """The path of one binary, None when it is missing."""
    path = assets_folder() / name
    return path if os.access(path, os.X_OK) else None


def missing_assets() -> list[str]:
    """The missing binaries of a control plane."""
    return [name for name in NEEDED if find_asset(name) is None]


def need_assets(*more: str) -> None:
    """Skip the test unless all binaries of a control plane are there, and `more`."""
    missing = [*missing_assets(), *(name for name in more if find_asset(name) is None)]
    if missing:
        pytest.skip(f"{NOT_RUN}: no {', '.join(missing)} in {assets_folder()}")


@contextmanager
def real_client(folder: Path, gates: Sequence[str] = ()) -> Iterator[LiveClient]:
    """A client of a real kube-apiserver; without its binaries the test is skipped."""
    need_assets()
    plane = LiveControlPlane(folder, gates=gates)
    try:
        yield LiveClient(plane.kubeconfig)
    finally:
        plane.stop()


def gate_arguments(gates: Iterable[str]) -> list[str]:
    """The flag that turns feature gates on; none without gates."""
    settings = ",".join(f"{gate}=true" for gate in gates)
    return [f"--feature-gates={settings}"] if settings else []


class LiveControlPlane:
    """etcd and kube-apiserver with their data in `folder`. `kubeconfig` is that of an administrator.

    `gates` are feature gates to turn on; the alpha versions of the API that they need are served, too.
    """

    has_controllers = False

    def __init__(self, folder: Path, *arguments: str, gates: Sequence[str] = ()) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.gates = tuple(gates)
        versions = {ALPHA_VERSIONS[gate]: None for gate in gates if gate in ALPHA_VERSIONS}
        served = ",".join(f"{version}=true" for version in versions)
        self._arguments = [
            *gate_arguments(gates),
            *([f"--runtime-config={served}"] if served else []),
            *arguments,
        ]
        self._port, self._etcd_port, self._peer_port = free_port(), free_port(), free_port()
        self._write_credentials()
        self.etcd = Process(self._etcd_command(), folder / "etcd.log")
        self.api_server = Process(self._command(), folder / "kube-apiserver.log")
        self._wait()

    def stop(self) -> None:
        """Stop both, the API server first."""
        try:
            self.api_server.stop()
        finally:
            self.etcd.stop()

    def kill_api_server(self) -> None:
        """Kill the API server as in a crash; etcd, and so the data, stays."""
        self.api_server.kill()

    def start_api_server(self) -> None:
        """Start the API server again, on the same port with the same data."""
        self.api_server = Process(self._command(), self.folder / "kube-apiserver.log")
        self._wait()

    def _wait(self) -> None:
        client = LiveClient(self.kubeconfig)
        self.api_server.wait_until(client.is_ready, "ready", START_S)

    def _write_credentials(self) -> None:
        serving, token = make_certificate(), token_urlsafe(24)
        for name, content in {
            "serving.crt": serving.cert,
            "serving.key": serving.key,
            "service-account.key": make_certificate().key,
            "tokens.csv": f'{token},admin,admin,"system:masters"\n'.encode(),
        }.items():
            path = self.folder / name
            path.touch(mode=0o600)
            path.write_bytes(content)
        config = make_kubeconfig(f"https://127.0.0.1:{self._port}", serving.cert, token)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def _etcd_command(self) -> list[str]:
        peers = f"http://127.0.0.1:{self._peer_port}"
        clients = f"http://127.0.0.1:{self._etcd_port}"
        return [
            str(assets_folder() / "etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--log-level=error",
        ]

    def _command(self) -> list[str]:
        folder = self.folder
        return [
            str(assets_folder() / "kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={folder / 'certificates'}",
            f"--tls-cert-file={folder / 'serving.crt'}",
            f"--tls-private-key-file={folder / 'serving.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'service-account.key'}",
            f"--service-account-signing-key-file={folder / 'service-account.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            f"--disable-admission-plugins={ADMISSION_OFF}",
            *self._arguments,
        ]
