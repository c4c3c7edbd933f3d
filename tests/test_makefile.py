"""Makefile: `make run` installs the requirements of running, the other targets the rest on top."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def commands(target: str, folder: Path) -> list[str]:
    """The commands of a target in a fresh clone; nothing is run."""
    command = ["make", "-n", f"VENV={folder / 'venv'}", target]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def planned(target: str, folder: Path) -> list[str]:
    """The installations that a target begins with in a fresh clone."""
    return [line for line in commands(target, folder) if " pip " in line and " install " in line]


def test_run_installs_no_extras(tmp_path: Path) -> None:
    needs, package = planned("run", tmp_path)

    assert needs.endswith(" -r locks/run.txt")
    assert package.endswith(" --no-deps --no-build-isolation -e .")


@pytest.mark.parametrize("target", ["lint", "types", "unit", "test"])
def test_the_other_targets_install_the_rest_on_top(target: str, tmp_path: Path) -> None:
    base, rest = planned("run", tmp_path), planned(target, tmp_path)

    assert rest[:-1] == base
    assert rest[-1].endswith(" -r locks/test.txt")


def test_nothing_is_installed_in_silence(tmp_path: Path) -> None:
    for line in planned("test", tmp_path):
        assert "-q" not in line.split()
        assert "--quiet" not in line.split()


@pytest.mark.parametrize("target", ["test", "docs", "dist", "lint-github", "actionlint"])
def test_every_package_is_installed_by_its_hash(target: str, tmp_path: Path) -> None:
    lines = [line for line in commands(target, tmp_path) if " pip " in line and "install " in line]

    assert lines
    for line in lines:
        assert ("--require-hashes" in line) is ("-r locks/" in line)
        assert "--no-deps" in line


USES_KERNEL = ["unit", "test", "life", "e2e", "conformance", "counterfactuals", "bench"]


@pytest.mark.parametrize("target", [*USES_KERNEL, "bench-apiserver", "test-page"])
def test_the_kernel_is_compiled_before_it_is_used(target: str, tmp_path: Path) -> None:
    lines = commands(target, tmp_path)

    (place,) = (i for i, line in enumerate(lines) if line.endswith("bin/python hatch_build.py"))
    before, after = "\n".join(lines[:place]), "\n".join(lines[place + 1 :])
    assert "-r locks/test.txt" in before  # which installs Cython
    assert "pytest" in after or "bayplan" in after


@pytest.mark.parametrize("target", ["run", "lint", "types", "docs", "format"])
def test_other_targets_need_no_compiler(target: str, tmp_path: Path) -> None:
    assert not [line for line in commands(target, tmp_path) if "hatch_build" in line]


def test_clean_removes_the_compiled_kernel_of_every_python(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    folder = tmp_path / "bayplan" / "amounts"
    folder.mkdir(parents=True)
    names = [
        "_kernel.cpython-311-x86_64-linux-gnu.so",
        "_kernel.cp313-win_amd64.pyd",
        "_kernel.pyx",
    ]
    for name in names:
        (folder / name).touch()

    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)

    assert [path.name for path in folder.iterdir()] == ["_kernel.pyx"]


@pytest.mark.parametrize(
    ("mypy", "pytest_status", "status"),
    [
        pytest.param(0, 0, 0, id="all is well"),
        pytest.param(1, 0, 2, id="types are wrong"),
        pytest.param(0, 1, 2, id="a test fails"),
    ],
)
def test_types_are_checked_beside_the_tests_and_count(
    mypy: int, pytest_status: int, status: int, tmp_path: Path
) -> None:
    """The recipe runs on stubs of the tools; each prints its name."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    stubs = {
        "python": f'case "$*" in *pytest*) echo tests; exit {pytest_status};; esac',
        "mypy": f'echo "types, bytecode: $PYTHONDONTWRITEBYTECODE."; exit {mypy}',
        "ruff": "exit 0",
    }
    for name, body in stubs.items():
        (venv / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (venv / "bin" / name).chmod(0o755)
    for name in ("locks/run.txt", "locks/test.txt", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / "Makefile", tmp_path)

    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("MAKE")
    }  # as if make was not started by another make

    done = subprocess.run(
        ["make", "VENV=venv", "test"],
        cwd=tmp_path,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == status
    assert done.stdout.splitlines()[-2:] == ["tests", "types, bytecode: ."], done.stderr
