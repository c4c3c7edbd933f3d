"""The shipped manifests, applied with the real kubectl to a fresh `bayplan up`."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bayplan.config.load import parse_config

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60
KUBECTL = shutil.which("kubectl")


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "bayplan.cli.main", "up", "--kubeconfig", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == f"export KUBECONFIG={path}\n"
    yield path
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0


def kubectl(kubeconfig: Path, *arguments: str) -> str:
    assert KUBECTL is not None
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}
    done = subprocess.run(
        [KUBECTL, *arguments], env=env, text=True, capture_output=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(KUBECTL is None, reason="not run: kubectl is not installed")
@pytest.mark.parametrize(("option", "folder"), [("-f", "examples"), ("-k", "deploy")])
def test_a_folder_is_applied_twice(kubeconfig: Path, option: str, folder: str) -> None:
    first = kubectl(kubeconfig, "apply", option, str(ROOT / folder))
    again = kubectl(kubeconfig, "apply", option, str(ROOT / folder))

    made = {line.split()[0]: line.split()[1] for line in first.splitlines()}
    assert set(made.values()) == {"created"}
    kept = {line.split()[0]: line.split()[1] for line in again.splitlines()}
    assert kept.keys() == made.keys()
    changed = {name for name, state in kept.items() if state != "unchanged"}
    assert changed <= {name for name in kept if name.startswith("pod/")}  # defaulted tolerations


@pytest.mark.skipif(KUBECTL is None, reason="not run: kubectl is not installed")
def test_the_deployment_comes_up(kubeconfig: Path) -> None:
    kubectl(kubeconfig, "apply", "-k", str(ROOT / "deploy"))

    done = kubectl(
        kubeconfig,
        *("-n", "kube-system", "rollout", "status", "deployment/bayplan-scheduler"),
        "--timeout=30s",
    )
    pods = json.loads(kubectl(kubeconfig, "-n", "kube-system", "get", "pods", "-o", "json"))

    assert "successfully rolled out" in done
    nodes = [pod["spec"]["nodeName"] for pod in pods["items"]]
    assert len(set(nodes)) == 2


def documents() -> dict[str, dict[str, object]]:
    found = {}
    for path in sorted((ROOT / "deploy").glob("*.yaml")):
        for tree in yaml.safe_load_all(path.read_text()):
            found[tree["kind"]] = tree
    return found


def test_the_shipped_configuration_is_valid_and_names_the_permitted_lease() -> None:
    trees = documents()
    config_map, role = trees["ConfigMap"], trees["Role"]
    config = parse_config(config_map["data"]["config.yaml"], "config.yaml")  # type: ignore[index]

    election = config.leader_election
    assert election.leader_elect
    assert config.profiles[0].scheduler_name == "bayplan-scheduler"
    named = [rule.get("resourceNames") for rule in role["rules"]]  # type: ignore[attr-defined]
    assert [election.resource_name] in named
    assert role["metadata"]["namespace"] == election.resource_namespace  # type: ignore[index]
