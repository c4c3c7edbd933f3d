"""The field corpus on `bayplan up` with the real kubectl: applied, listed and described without an error.

kubectl is found as in tests/e2e: on the path, beside the binaries that KUBEBUILDER_ASSETS names, or by BAYPLAN_KUBECTL.
"""

import gzip
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.live.control_plane import find_asset

FIELD = Path(__file__).resolve().parents[3] / "shared" / "field"
NAMESPACES = {"argo-cd-ha.yaml.gz": "argocd"}
TIMEOUT_S = 600


def find_kubectl() -> str:
    """The first installed kubectl; empty if there is none."""
    named = os.environ.get("BAYPLAN_KUBECTL", "").split(":")[0]
    found = named or shutil.which("kubectl") or find_asset("kubectl")
    return str(found or "")


pytestmark = [
    pytest.mark.skipif(not find_kubectl(), reason="not run: kubectl is not installed"),
    pytest.mark.skipif(not FIELD.exists(), reason="not run: no ../shared/field"),
    pytest.mark.slow,
]


class FieldKubectl:
    """kubectl for one cluster."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def __call__(self, *arguments: str, given: bytes = b"") -> str:
        command = [find_kubectl(), *arguments]
        done = subprocess.run(
            command, env=self._env, input=given, capture_output=True, timeout=TIMEOUT_S, check=False
        )
        problem = f"kubectl {' '.join(arguments)}: {done.stderr.decode()[-2000:]}"
        assert done.returncode == 0, problem
        assert b"panic" not in done.stderr, problem
        return done.stdout.decode()


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FieldKubectl]:
    """kubectl, for a cluster with the nodes and all manifests of the corpus."""
    folder = tmp_path_factory.mktemp("up")
    config = folder / "kubeconfig"
    command = [sys.executable, "-m", "bayplan.cli.main", "up", "--kubeconfig", str(config)]
    process = subprocess.Popen(
        [*command, "-f", str(FIELD / "cluster.yaml")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"export KUBECONFIG={config}\n"
        run = FieldKubectl(config, folder)
        for namespace in ("argocd", "istio-system"):
            run("create", "namespace", namespace)
        files = sorted((FIELD / "manifests").glob("*.yaml.gz"), key=lambda p: "setup" not in p.name)
        for path in files:
            where = [f"--namespace={NAMESPACES[path.name]}"] if path.name in NAMESPACES else []
            text = gzip.decompress(path.read_bytes())
            run("apply", "--server-side", *where, "-f", "-", given=text)
        yield run
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0


def test_every_object_is_listed_and_described(kubectl: FieldKubectl) -> None:
    kinds = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    described = 0
    for kind in kinds:
        if not kind.endswith("metrics.k8s.io"):
            kubectl("get", kind, "-A", "-o", "wide")
            described += bool(kubectl("describe", kind, "-A"))

    assert described > 30
    assert "GRPC" in kubectl("describe", "pods", "-A").upper()
