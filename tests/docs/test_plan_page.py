"""docs/plan.md: the commands of the how-to are run, and print the output on the page."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.cli.render import consoles

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plan.md").read_text()
HOW_TO = PAGE.split("\n## From a live cluster")[1].split("\n## ")[0]


def commands(text: str) -> list[tuple[list[str], str]]:
    """The arguments of each command after a prompt, and the output below it."""
    blocks = re.findall(r"^```\n(\$ bayplan .*?)^```", text, re.M | re.S)
    parts = [part for block in blocks for part in re.split(r"^\$ bayplan ", block, flags=re.M)[1:]]
    return [(line.split(), shown) for line, _, shown in (part.partition("\n") for part in parts)]


def matches(shown: str, printed: str) -> bool:
    """Whether a text is as shown, where dots stand for anything."""
    lines = [r"(.*\n)*" if line == "..." else _line(line) for line in shown.splitlines()]
    return re.fullmatch("".join(lines) + r"\n*", printed) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("...")) + r" *\n"


def test_the_commands_of_the_how_to_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(consoles, "answer_comes_first", lambda: False)  # as on a terminal
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    asked = commands(HOW_TO)

    assert len(asked) == 4
    for arguments, shown in asked:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert matches(shown, result.stdout), result.stdout
