"""Help: nothing of it is cut short on a terminal of 80 columns."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bayplan.cli.main import app

WIDTH = 80


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group, with the words that lead to it."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


ALL = [
    pytest.param(path, found, id=" ".join(("bayplan", *path)))
    for path, found in commands(get_command(app))
]


@pytest.mark.parametrize(("path", "command"), ALL)
def test_help_is_whole_at_80_columns(
    path: tuple[str, ...], command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERMINAL_WIDTH", str(WIDTH))

    result = CliRunner().invoke(app, [*path, "--help"])

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "…" not in result.stdout
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage")] == []
    words = result.stdout.replace(",", " ").split()
    options = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
    shown = [name for name in options if name.startswith("-")]
    assert [name for name in shown if name not in words] == []
