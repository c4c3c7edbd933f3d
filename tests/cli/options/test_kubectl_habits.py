"""Options that people know from kubectl: -n, -A, -R, -k, addresses, and the forms of output."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bayplan.cli.main import app

NODE = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: web:1}]}
"""


def ask(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    (folder / "below").mkdir(parents=True)
    (folder / "nodes.yaml").write_text(NODE)
    (folder / "below" / "web.yaml").write_text(WEB)
    return folder


def test_folders_below_a_folder_are_read_with_r(cluster: Path) -> None:
    assert ask("simulate", "-f", cluster, "-o", "name").stdout == ""
    assert ask("simulate", "-f", cluster, "-R", "-o", "name").stdout.count("pod/default/web-") == 2
    only = ask("simulate", "-f", cluster.parent)
    assert only.exit_code == 2
    assert "-R reads folders below it, too" in only.stderr


def test_manifests_without_a_namespace_are_in_that_of_n(cluster: Path) -> None:
    given: list[str | Path] = ["-f", cluster, "-R", "-n", "shop"]

    assert ask("simulate", *given, "-o", "name").stdout.count("pod/shop/web-") == 2
    assert ask("explain", "deployment/web", *given, "-o", "name").stdout.count("node/a") == 2


def test_a_namespace_and_all_of_them_exclude_each_other(cluster: Path) -> None:
    result = ask("simulate", "-f", cluster, "-n", "shop", "-A")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "expected -n or -A; got both" in result.stderr


def test_manifests_of_another_namespace_are_not_applied(cluster: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(WEB.replace("{name: web}", "{name: web, namespace: shop}", 1))

    result = ask("what-if", "apply", "-f", new, "--cluster", cluster, "-n", "other")

    assert result.exit_code == 2
    assert 'object "shop" does not match the namespace "other"' in result.stderr


@pytest.mark.parametrize("address", ["https://example.com/web.yaml", "http://x/y"])
def test_an_address_is_refused_with_a_way_out(address: str) -> None:
    result = ask("simulate", "-f", address)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {address}: expected a file or folder; got an address")
    assert "-f -" in result.stderr
