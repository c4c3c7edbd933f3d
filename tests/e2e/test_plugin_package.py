"""Plugins from packages: installed with pip, found by their entry point, configured by name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from bayplan.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "examples" / "plugin-package"
COMMAND = [sys.executable, "-c", "from bayplan.cli.main import main; main()"]


def node(name: str, price: str) -> dict[str, object]:
    metadata = {"name": name, "labels": {"example.com/price": price}}
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"allocatable": allocatable},
    }


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, installed into a separate folder."""
    folder = tmp_path_factory.mktemp("package")
    source, target = folder / "source", folder / "site"
    shutil.copytree(PACKAGE, source)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--no-index"),
            *("--target", str(target), str(source)),
        ],
        check=True,
        timeout=120,
    )
    return target


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        list(command), env=environment, capture_output=True, text=True, timeout=120
    )


def test_an_installed_plugin_is_configured_by_name(site: Path, tmp_path: Path) -> None:
    manifests = tmp_path / "all.yaml"
    manifests.write_text(yaml.safe_dump_all([node("a-dear", "2.00"), node("cheap", "0.10"), POD]))
    config = str(PACKAGE / "config.yaml")
    arguments = ["simulate", "-f", str(manifests), "-o", "json"]

    with_plugin = run(site, *COMMAND, *arguments, "--config", config)
    without = run(tmp_path, *COMMAND, *arguments, "--config", config)

    assert with_plugin.returncode == 0, with_plugin.stderr
    (pod,) = json.loads(with_plugin.stdout)["pods"]
    assert pod["node"] == "cheap"
    assert without.returncode == 2
    assert "Cheap" in without.stderr, "without the package the name means nothing"


def test_the_package_passes_its_own_tests(site: Path, tmp_path: Path) -> None:
    tests = str(PACKAGE / "tests")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull]

    result = run(site, sys.executable, "-m", "pytest", *options, tests)

    assert result.returncode == 0, result.stdout


NAMES_BROKEN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: Broken
"""


def offer(folder: Path, module: str, source: str | None) -> None:
    """A handmade package with `Broken` from `module`."""
    if source is not None:
        (folder / f"{module}.py").write_text(source)
    info = folder / "broken_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[bayplan.plugins]\nBroken = {module}:Broken\n")


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        pytest.param(
            "not_there_at_all",
            None,
            "plugin Broken (not_there_at_all:Broken) cannot be loaded: "
            "ModuleNotFoundError: No module named 'not_there_at_all'",
            id="no such module",
        ),
        pytest.param(
            "broken_a", "1/0", "broken_a.py:1: ZeroDivisionError: division by zero", id="fails"
        ),
        pytest.param("broken_b", "x = 1", "AttributeError", id="without the class"),
        pytest.param(
            "broken_c", "Broken = 1", "broken_c:Broken is not a Plugin class", id="a number"
        ),
    ],
)
def test_a_plugin_that_fails_to_import_is_reported_with_the_reason(
    module: str,
    source: str | None,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(tmp_path, module, source)
    monkeypatch.syspath_prepend(str(tmp_path))
    manifests = tmp_path / "all.yaml"
    manifests.write_text(yaml.safe_dump_all([node("n", "1"), POD]))

    config = tmp_path / "config.yaml"
    config.write_text(NAMES_BROKEN)

    by_name = CliRunner().invoke(app, ["simulate", "-f", str(manifests), "--config", str(config)])
    listed = CliRunner().invoke(app, ["plugins"])
    unnamed = CliRunner().invoke(app, ["simulate", "-f", str(manifests)])

    for result in (by_name, listed):
        assert result.exit_code == 2
        assert "broken-package: " in result.stderr
        assert reason in result.stderr
    assert unnamed.exit_code == 0, "without a plugin of a package, no package is loaded"
