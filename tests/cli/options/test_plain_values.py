"""Plain values: options have the values that typer gives them, and the same errors."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from bayplan.cli.command_table import CommandApp


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"


def run(*arguments: str) -> tuple[int, str, dict[str, Any]]:
    """The exit status and the output of a command, and the values that it got."""
    app, found = CommandApp(), {}

    @app.command()
    def command(
        name: str,
        more: Annotated[list[str] | None, typer.Argument()] = None,
        text: str | None = None,
        form: Form = Form.TABLE,
        forms: list[Form] = [],  # noqa: B006
        file: Path | None = None,
        files: Annotated[list[Path] | None, typer.Option("-f")] = None,
        folder: Annotated[Path | None, typer.Option(file_okay=False)] = None,
        count: Annotated[int, typer.Option(min=1)] = 3,
        upper: Annotated[str, typer.Option(parser=str.upper)] = "",
        flag: bool = False,
        checked: Annotated[str, typer.Option(callback=lambda text: f"<{text}>")] = "",
    ) -> None:
        found.update(locals())
        del found["found"]

    result = CliRunner().invoke(app, [*arguments])
    return result.exit_code, result.output, found


CASES = [
    pytest.param(["n"], id="nothing but what is required"),
    pytest.param([], id="nothing at all"),
    pytest.param(["n", "a", "b"], id="several arguments"),
    pytest.param(["n", "--text", "t", "--flag"], id="text and a flag"),
    pytest.param(["n", "--form", "json"], id="a choice"),
    pytest.param(["n", "--form", "JSON"], id="a choice in other letters"),
    pytest.param(["n", "--forms", "json", "--forms", "table"], id="choices"),
    pytest.param(["n", "--forms", "json", "--forms", "xml"], id="one choice of two is wrong"),
    pytest.param(["n", "--file", "there"], id="a file"),
    pytest.param(["n", "--file", "not-there"], id="a file that does not exist"),
    pytest.param(["n", "-f", "there", "-f", "-"], id="files and standard input"),
    pytest.param(["n", "--folder", "there"], id="a file for a folder"),
    pytest.param(["n", "--folder", "."], id="a folder"),
    pytest.param(["n", "--count", "7"], id="a number"),
    pytest.param(["n", "--count", "0"], id="a number that is too low"),
    pytest.param(["n", "--count", "many"], id="no number"),
    pytest.param(["n", "--upper", "up"], id="a parser"),
    pytest.param(["n", "--checked", "c"], id="a callback"),
]


@pytest.mark.parametrize("arguments", CASES)
def test_values_and_errors_are_those_of_typer(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    ours = run(*arguments)
    monkeypatch.setattr("bayplan.cli.command_table.take_plain_values", lambda params: None)

    assert ours == run(*arguments)


@pytest.mark.parametrize("option", ["--file", "--folder"])
def test_a_path_that_cannot_be_read_is_an_error(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read everything

    status, output, _ = run("n", option, str(tmp_path))

    assert (status, "not readable" in output) == (2, True)
