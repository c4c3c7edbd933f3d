"""Help: whole on a terminal of 80 columns, with an example, in words that people know."""

import re
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bayplan.cli.command_table import FORMER, GROUPS, walk_commands
from bayplan.cli.flags.command import FlagCommand
from bayplan.cli.flags.table import BY_NAME
from bayplan.cli.kubectl import app as kubectl_app
from bayplan.cli.kubectl import completions
from bayplan.cli.main import app

WIDTH = 80
ALL = [
    pytest.param(path, found, id=" ".join(("bayplan", *path)))
    for path, found in walk_commands(get_command(app))
]
PYTHON_TYPE = re.compile(r"<[A-Za-z_]+(?:\[|>| range>)|list\[|default: None")
BRACES = re.compile(r"\{|\.{4}|\[\[")
PERSONS = re.compile(
    r"\b(whom|so often|anew)\b",
    re.I,
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERMINAL_WIDTH", str(WIDTH))


def help_of(path: tuple[str, ...]) -> str:
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(("path", "command"), ALL)
def test_help_is_whole_at_80_columns(path: tuple[str, ...], command: Any) -> None:
    shown = help_of(path)

    lines = shown.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert "…" not in shown
    cut = [line for line in lines if line.endswith("...") and not line.startswith("Usage")]
    assert [line for line in cut if not line.strip().isupper()] == []
    words = shown.replace(",", " ").split()
    options = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
    dashed = [name for name in options if name.startswith("-")]
    assert [name for name in dashed if name not in words] == []


@pytest.mark.parametrize(("path", "command"), ALL)
def test_help_has_an_example_that_can_be_copied(path: tuple[str, ...], command: Any) -> None:
    examples = [
        line.strip().removeprefix("Example: ")
        for line in help_of(path).splitlines()
        if line.startswith("  Example: bayplan ")
    ]

    source = command.help + "\n" + (command.epilog or "")
    assert examples == re.findall(r"^Example: (.*)$", source, re.M)  # each on one line, whole
    assert len(examples) == 1
    assert examples[0].startswith(" ".join(("bayplan", *path)))


@pytest.mark.parametrize(("path", "command"), ALL)
def test_the_options_of_an_example_exist(path: tuple[str, ...], command: Any) -> None:
    [example] = re.findall(r"^  Example: (.*)$", help_of(path), re.M)
    first = example.split(" && ")[0].split(" > ")[0]
    own = " ".join(("bayplan", *path))
    words = first.removeprefix(own).split()
    if hasattr(command, "commands"):
        assert not words or words[0] in command.commands
        return
    known = {name for param in command.params for name in param.opts}
    if isinstance(command, FlagCommand):
        known |= {f"--{name}" for name in BY_NAME}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize(("path", "command"), ALL)
def test_help_has_words_that_people_know(path: tuple[str, ...], command: Any) -> None:
    shown = help_of(path)

    assert PYTHON_TYPE.findall(shown) == []
    assert BRACES.findall(shown) == []
    assert PERSONS.findall(shown) == []
    for param in command.params:
        if param.param_type_name == "option" and not param.is_flag and not param.count:
            assert param.metavar, f"{param.opts}: expected a metavar such as FILE"
        elif param.param_type_name == "argument":
            assert param.metavar, f"{param.name}: expected a metavar such as NODE"
            assert "..." not in param.metavar


@pytest.mark.parametrize(("path", "command"), ALL)
def test_usage_names_the_arguments(path: tuple[str, ...], command: Any) -> None:
    usage = " ".join(help_of(path).partition("\n\n")[0].split())
    words = usage.removeprefix(" ".join(("Usage: bayplan", *path))).split()

    if hasattr(command, "commands"):
        assert words == ["[OPTIONS]", "COMMAND", "[ARGS]..."]
        return
    expected = []
    for param in command.params:
        if param.param_type_name == "argument":
            name = param.metavar + ("" if param.nargs == 1 else "...")
            expected.append(name if param.required else f"[{name}]")
    assert words == ["[OPTIONS]", *expected]


def test_a_legend_explains_the_signs_of_the_tables() -> None:
    shown = " ".join(help_of(("simulate",)).split())

    assert "50→77%" in shown
    assert "- means that the node has none of the resource" in shown


def test_the_plugin_of_kubectl_has_the_same_commands() -> None:
    plugin: Any = get_command(kubectl_app)
    command: Any = get_command(app)
    assert set(plugin.commands) == set(command.commands)


def test_the_list_of_commands_fits_on_one_screen() -> None:
    shown = help_of(())

    assert len(shown.splitlines()) <= 24
    for title, group in GROUPS.items():
        assert title in shown
        assert all(f" {name} " in shown for name in group)


@pytest.mark.parametrize("name", FORMER)
def test_a_former_name_still_works_and_is_not_listed(name: str) -> None:
    assert help_of((name,)).startswith(f"Usage: bayplan {name} ")
    assert not re.search(rf"^\S* +{name} ", help_of(()), re.M)


def test_the_commands_below_another_are_completed() -> None:
    assert completions(["up", "d"]) == ["down"]
    assert completions(["research", ""]) == ["trace", "sweep", "bench"]
    assert "--all" in completions(["up", "down", "--"])
