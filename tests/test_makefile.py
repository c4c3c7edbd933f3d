"""Makefile: `make run` installs what running needs, the other targets the rest on top."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def planned(target: str, folder: Path) -> list[str]:
    """The installations that a target begins with in a fresh clone; nothing is run."""
    command = ["make", "-n", f"VENV={folder / 'venv'}", target]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in result.stdout.splitlines() if " pip " in line and " install " in line]


def test_run_installs_no_extras(tmp_path: Path) -> None:
    backend, package = planned("run", tmp_path)

    assert backend.endswith(" hatchling")
    assert package.endswith(" -e .")


@pytest.mark.parametrize("target", ["lint", "types", "unit", "test"])
def test_the_other_targets_install_the_rest_on_top(target: str, tmp_path: Path) -> None:
    base, rest = planned("run", tmp_path), planned(target, tmp_path)

    assert rest[:-1] == base
    assert rest[-1].endswith(" -e '.[dev,dra]'")


def test_nothing_is_installed_in_silence(tmp_path: Path) -> None:
    for line in planned("test", tmp_path):
        assert "-q" not in line.split()
        assert "--quiet" not in line.split()
        assert "-c constraints.txt" in line
