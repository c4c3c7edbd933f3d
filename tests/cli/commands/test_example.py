"""Example: the files are written once, are those of the repository, and work with the commands that are named."""

import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bayplan.cli.commands import example
from bayplan.cli.main import app

ROOT = Path(__file__).resolve().parents[3]


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_the_files_are_those_of_the_repository(tmp_path: Path) -> None:
    result = run("example", tmp_path / "demo")

    assert result.exit_code == 0, result.output
    found = {file.name: file.read_bytes() for file in (tmp_path / "demo").iterdir()}
    assert found == {
        name: (ROOT / "examples" / path).read_bytes() for name, path in example.FILES.items()
    }


def test_the_commands_that_it_names_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = run("example", "my demo").stdout.splitlines()
    commands = [line.strip() for line in lines if line.startswith("  ")]

    assert len(commands) == 5
    for command in commands:
        program, *args = shlex.split(command)
        result = run(*args)
        assert program == "bayplan"
        assert result.exit_code in (0, 1), f"{command}\n{result.output}"
        assert result.stderr == ""


def test_files_that_are_there_are_named_and_kept(tmp_path: Path) -> None:
    for name in ("workload.yaml", "prefer_zone.py"):
        (tmp_path / name).write_text("mine")

    result = run("example", tmp_path)

    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {tmp_path}: expected no such files (--force overwrites them); "
        "got workload.yaml, prefer_zone.py\n"
    )
    assert (tmp_path / "workload.yaml").read_text() == "mine"
    assert not (tmp_path / "cluster.yaml").exists()
    assert run("example", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "workload.yaml").read_text() != "mine"


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")

    result = run("example", tmp_path / "file")

    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {tmp_path / 'file'}: expected a folder to write to; got File exists\n"
    )


def test_an_installed_package_has_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel is laid out as in pyproject.toml; its own files are preferred to those of a checkout."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    for path in example.FILES.values():
        assert f"examples/{path}" in wheel["only-include"]
        packaged = tmp_path / wheel["sources"]["examples"] / path
        packaged.parent.mkdir(parents=True, exist_ok=True)
        packaged.write_text(f"packaged {path}")
    monkeypatch.setattr(example, "PACKAGE", tmp_path / "bayplan")

    for path in example.FILES.values():
        assert example.find_example(path).read_text() == f"packaged {path}"


def test_a_package_without_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "PACKAGE", tmp_path / "bayplan")

    result = run("example", tmp_path / "demo")

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / 'bayplan' / 'examples' / 'cluster.yaml'}:")
