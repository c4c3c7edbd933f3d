"""The README and the documentation show the real output of their commands, and their code runs.

A block of a page is checked when it has a `$ ` prompt (the commands are run, what is shown below is compared), a title
(it is written to a file of that name) or, on the pages that are WORKED through, when it is Python (it is executed).
"""

import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayplan.cli.main import app
from bayplan.cli.render import consoles

ROOT = Path(__file__).resolve().parent.parent
WORKED = ["docs/tutorial.md", "docs/plugins.md"]
"""Pages that are worked through from top to bottom in an empty folder; all others are run from the checkout."""
WRITES_FILES = ["docs/plan.md"]
"""Its commands write files that later ones read: tests/docs/test_plan_page.py runs them in a folder of their own."""
PROMPT = "$ "
LEFT_OUT = "..."


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str
    text: str

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yields each command after a prompt, with the lines under it."""
        for part in re.split(r"^(?=\$ )", self.text, flags=re.M):
            first, *lines = part.rstrip("\n").split("\n")
            if first.startswith(PROMPT):
                yield first.removeprefix(PROMPT), lines


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text()
    for found in re.finditer(r"^```(\w*)([^\n]*)\n(.*?)^```", text, re.M | re.S):
        title = re.search(r'title="([^"]*)"', found[2])
        yield Block(found[1], title[1] if title else "", found[3])


def shown_commands() -> Iterator[tuple[str, str, list[str]]]:
    """Yields each `bayplan` command of the pages that are run from the checkout: page, command, lines."""
    pages = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
    for page in pages:
        if page not in (*WORKED, *WRITES_FILES):
            for block in blocks(page):
                for command, lines in block.commands():
                    yield page, command, lines


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
            is_same = found.rstrip() == line.rstrip()
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


def run(command: str, folder: Path) -> str:
    """Runs a command as the reader would and returns its output; 1 is the exit status of `bayplan` for pending pods."""
    words = shlex.split(command)
    if words[0] == "bayplan":
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code in (0, 1), result.output
        return result.stdout
    if words[:2] == ["pip", "install"]:
        # Without a network, and not into the environment of the tests.
        offline = ["--no-deps", "--no-build-isolation", "--no-index", "--target", "installed"]
        words = [sys.executable, "-m", *words, *offline]
    elif words[0] == "python":
        words = [sys.executable, *words[1:]]
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    importlib.invalidate_caches()  # there may be a new package
    return done.stdout


@pytest.fixture(autouse=True)
def _width_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are whole; the answer comes last, as on the reader's terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(consoles, "answer_comes_first", lambda: False)


@pytest.mark.parametrize(
    ("page", "command", "shown"),
    [pytest.param(*each, id=f"{each[0]}: {each[1]}") for each in shown_commands()],
)
def test_a_page_shows_what_is_printed(
    page: str, command: str, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    printed = run(command, ROOT)

    missing = is_in(shown, printed.split("\n"))
    assert missing is None, f"{missing!r} is not where {page} shows it:\n{printed}"


def test_the_questions_of_the_readme_are_shown_with_their_answers() -> None:
    words = {command.split()[1] for page, command, _ in shown_commands() if page == "README.md"}

    assert words >= {"simulate", "explain", "what-if", "capacity", "compare", "rebalance"}


@pytest.mark.parametrize("page", WORKED)
def test_a_page_can_be_worked_through(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are written, Python is executed, commands are run and compared, in the order of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    modules, names = set(sys.modules), {"__name__": page}
    for block in blocks(page):
        if block.title:
            target = tmp_path / block.title
            target.parent.mkdir(exist_ok=True)
            target.write_text(block.text)
            if block.language == "python":
                compile(block.text, block.title, "exec")
        elif block.language == "python":
            exec(compile(block.text, page, "exec"), names)
        for command, shown in block.commands():
            if command.startswith("cd "):
                monkeypatch.chdir(command.removeprefix("cd "))
                continue
            printed = run(command, Path.cwd())
            missing = is_in(shown, printed.split("\n"))
            assert missing is None, f"{missing!r} is not where {page} shows it:\n{printed}"
    for module in set(sys.modules) - modules:
        if getattr(sys.modules[module], "__file__", None) and str(tmp_path) in str(
            sys.modules[module].__file__
        ):
            del sys.modules[module]


@pytest.mark.parametrize("page", WORKED)
def test_a_worked_page_has_no_block_that_nothing_checks(page: str) -> None:
    unchecked = [
        block.text.split("\n")[0]
        for block in blocks(page)
        if not (block.title or block.language == "python" or PROMPT in block.text)
        and not block.text.startswith("bayplan-cheap/")  # a tree of files
    ]

    assert unchecked == []


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
