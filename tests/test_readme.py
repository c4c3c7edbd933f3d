"""The README shows what its commands really print."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
PROMPT = "$ bayplan "
LEFT_OUT = "..."


def shown_commands() -> Iterator[tuple[str, list[str]]]:
    """Yields each command that is shown after a `$`, with the lines under it."""
    text = (ROOT / "README.md").read_text()
    for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^(?=\$ )", block, flags=re.M):
            first, *lines = part.rstrip("\n").split("\n")
            if first.startswith(PROMPT):
                yield first.removeprefix(PROMPT), lines


def is_in(shown: list[str], printed: list[str]) -> str | None:
    """Returns the first shown line that is not printed where it should be; `...` stands for any lines.

    A line that ends in `...` shows the beginning of one.
    """
    position, may_skip = 0, False
    for line in shown:
        if line == LEFT_OUT:
            may_skip = True
            continue
        while position < len(printed):
            found = printed[position]
            position += 1
            is_same = found == line
            if line.endswith(LEFT_OUT):
                is_same = found.startswith(line.removesuffix(LEFT_OUT).rstrip())
            if is_same:
                break
            if not may_skip:
                return line
        else:
            return line
        may_skip = False
    return None


@pytest.mark.parametrize(
    ("command", "shown"), [pytest.param(*each, id=each[0]) for each in shown_commands()]
)
def test_the_readme_shows_what_is_printed(
    command: str, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)

    result = CliRunner().invoke(app, shlex.split(command))

    assert result.exit_code in (0, 1), result.output
    missing = is_in(shown, result.stdout.split("\n"))
    assert missing is None, f"{missing!r} is not where the README shows it:\n{result.stdout}"


def test_the_questions_of_the_readme_are_shown_with_their_answers() -> None:
    words = {command.split()[0] for command, _ in shown_commands()}

    assert words >= {"simulate", "explain", "what-if", "capacity", "compare", "rebalance"}


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        pytest.param(["a", "b"], None, id="the same"),
        pytest.param(["a", "c"], "c", id="a line is missing without an ellipsis"),
        pytest.param(["a", "...", "c"], None, id="a line is replaced by an ellipsis"),
        pytest.param(["a", "be..."], "be...", id="another beginning"),
        pytest.param(["...", "d"], "d", id="a line that is not there"),
    ],
)
def test_missing_lines_are_found(shown: list[str], missing: str | None) -> None:
    assert is_in(shown, ["a", "b", "c"]) == missing
