"""`bayplan simulate --html`: the page that is written in addition to the result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILES = ["-f", str(EXAMPLES / "cluster.yaml"), "-f", str(EXAMPLES / "workload.yaml")]


def simulate(*args: str, code: int) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["simulate", *FILES, *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_the_page_is_written_and_what_is_printed_stays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "report.html"

    out, err = simulate("--html", str(file), "-o", "name", code=1)

    assert (out, err) == simulate("-o", "name", code=1)
    text = file.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "in-memory-index" in text
    assert "edge-proxy" in text
    assert "worker-a1" in text


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param("no/such/folder/a.html", "No such file or directory", id="no such folder"),
        pytest.param(".", "Is a directory", id="a folder"),
    ],
)
def test_a_path_that_cannot_be_written_is_told_before_the_run(path: str, problem: str) -> None:
    out, err = simulate("--html", path, code=2)

    assert out == ""
    assert err == f"error: --html: {path}: expected a file to write to; got {problem}\n"


def test_a_run_without_a_page_does_not_import_the_page() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from bayplan.cli.main import app;"
        f"CliRunner().invoke(app, ['simulate', *{FILES!r}]);"
        "sys.exit(any(name.startswith('bayplan.web') for name in sys.modules))"
    )

    ended = subprocess.run([sys.executable, "-c", code], env=os.environ, check=False)

    assert ended.returncode == 0
