"""`kubectl apply -k deploy/` against `bayplan up`. Runs with the kubectl on the path; without one it is skipped."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
KUBECTL = shutil.which("kubectl")
TIMEOUT_S = 60

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="not run: kubectl is not installed")


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Runs kubectl in a new cluster."""
    kubeconfig = tmp_path / "kubeconfig"
    up = [sys.executable, "-m", "bayplan.cli.main", "up", "--no-page", "--kubeconfig"]
    process = subprocess.Popen([*up, str(kubeconfig)], stdout=subprocess.PIPE, text=True)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(KUBECTL), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    assert process.stdout is not None
    assert process.stdout.readline() == f"export KUBECONFIG={kubeconfig}\n"
    yield run
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0
    process.stdout.close()


def test_apply_makes_every_object_and_the_replicas_run(kubectl: Callable[..., str]) -> None:
    manifests = [
        f"{tree['kind'].lower()}/{tree['metadata']['name']}"
        for path in sorted(DEPLOY.glob("[0-9]*.yaml"))
        for tree in yaml.safe_load_all(path.read_text())
    ]

    first = kubectl("apply", "-k", str(DEPLOY), "-o", "json")
    kubectl(
        "-n", "kube-system", "rollout", "status", "deployment/bayplan-scheduler", "--timeout=30s"
    )
    again = kubectl("apply", "-k", str(DEPLOY))

    made = [
        f"{tree['kind'].lower()}/{tree['metadata']['name']}" for tree in json.loads(first)["items"]
    ]
    assert sorted(made) == sorted(manifests)
    assert all(line.endswith(" unchanged") for line in again.splitlines())


def test_the_image_can_be_set(kubectl: Callable[..., str], tmp_path: Path) -> None:
    copy = shutil.copytree(DEPLOY, tmp_path / "deploy")
    file = copy / "kustomization.yaml"
    image = {"name": "bayplan", "newName": "registry.example.com/bayplan", "newTag": "1"}
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "images": [image]}))

    kubectl("apply", "-k", str(copy))

    path = "jsonpath={.spec.template.spec.containers[0].image}"
    found = kubectl("-n", "kube-system", "get", "deployment", "bayplan-scheduler", "-o", path)
    assert found == "registry.example.com/bayplan:1"
