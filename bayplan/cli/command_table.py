"""Command table: the table of all commands, and how one is loaded.

A command's module is imported when the command is used: help, completion and the version need none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from .failures import failures_reported
from .options.plain_values import take_plain_values

Function = TypeVar("Function", bound=Callable[..., Any])

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class CommandEntry(NamedTuple):
    """One command: the module of `commands` and the name in it, and what the list of commands says."""

    module: str
    attribute: str
    summary: str


COMMANDS: Mapping[str, CommandEntry] = {
    "simulate": CommandEntry("simulate", "app", "Place pods on a cluster, and show where they go."),
    "explain": CommandEntry(
        "explain", "explain_command", "Say why a pod is pending, or why it is where it is."
    ),
    "what-if": CommandEntry("what_if", "app", "Say what a change to a cluster would lead to."),
    "capacity": CommandEntry(
        "capacity", "capacity", "Say how many more pods fit, and what runs out first."
    ),
    "compare": CommandEntry(
        "compare", "compare", "Place the same pods under several configurations."
    ),
    "sweep": CommandEntry(
        "sweep", "sweep", "Simulate many inputs, configurations and seeds, on all cores or on Ray."
    ),
    "rebalance": CommandEntry(
        "rebalance", "rebalance", "Plan the moves of pods that improve a cluster most."
    ),
    "plan": CommandEntry("plan", "plan", "Find the cheapest nodes that hold a workload."),
    "pools": CommandEntry("pools", "app", "Check node pools, and list their types and prices."),
    "example": CommandEntry("example", "example", "Write example files to try the commands with."),
    "snapshot": CommandEntry("snapshot", "snapshot", "Write a live cluster to a file."),
    "record": CommandEntry("record", "record", "Record the changes of a live cluster to a file."),
    "replay": CommandEntry(
        "replay", "replay", "Judge the decisions in a recording, or make them again."
    ),
    "shadow": CommandEntry(
        "shadow", "shadow", "Watch a live cluster, and judge the decisions of its scheduler."
    ),
    "trace": CommandEntry("import_trace", "app", "Convert traces of real clusters to manifests."),
    "up": CommandEntry("up", "up", "Run a cluster on this machine, for kubectl."),
    "down": CommandEntry("down", "down", "End a cluster that up runs."),
    "clusters": CommandEntry("list_clusters", "clusters", "List the clusters that up runs."),
    "run": CommandEntry("run", "app", "Schedule the pods of a real cluster."),
    "config": CommandEntry("config", "app", "Show, check and convert configuration files."),
    "plugins": CommandEntry("plugins", "plugins", "List every plugin and its extension points."),
    "bench": CommandEntry("bench", "bench", "Measure pods per second and memory."),
}


class PlainCommand(TyperCommand):
    """A command whose help names arguments as kubectl does: `NODE...`, and `[FILE]` for one that may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        take_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the name of the command."""
        return ["[OPTIONS]", *(_usage(argument) for argument in self._arguments())]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options, without the names of Python types."""
        arguments = [(_shown(each), getattr(each, "help", "") or "") for each in self._arguments()]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        options = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        records = [param.get_help_record(ctx) for param in options]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])

    def _arguments(self) -> list[Any]:
        return [param for param in self.params if param.param_type_name == "argument"]


def _shown(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 else f"{name}..."


def _usage(argument: Any) -> str:
    return _shown(argument) if argument.required else f"[{_shown(argument)}]"


class CommandApp(typer.Typer):
    """A group of commands, or a single one, with plain help."""

    def __init__(self, **settings: Any) -> None:
        # Tables of rich cut long options short where a terminal is narrow.
        super().__init__(
            **{"add_completion": False, "rich_markup_mode": None, "context_settings": HELP_OPTIONS}
            | settings
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Register a command."""
        return super().command(name, **{"cls": PlainCommand, **settings})


class LazyCommand(TyperCommand):
    """Stands in the list of commands for one that is not loaded; the context it makes is that of the real one."""

    def __init__(self, name: str, entry: CommandEntry) -> None:
        super().__init__(name, short_help=entry.summary, rich_markup_mode=None)
        self._entry = entry

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Load the command, and let it read its arguments."""
        return self.load().make_context(*args, **extra)

    def load(self) -> Any:
        """The real command."""
        found = getattr(
            import_module(f".commands.{self._entry.module}", __package__), self._entry.attribute
        )
        if not isinstance(found, typer.Typer):
            app = CommandApp()
            app.command(self.name)(found)
            found = app
        command = get_command(found)
        command.name, command.short_help = self.name, self._entry.summary
        return command


class LazyGroup(TyperGroup):
    """The group of all commands in the table."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: LazyCommand(name, entry) for name, entry in COMMANDS.items()}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options in front of the command."""
        take_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def main(self, *args: Any, **settings: Any) -> Any:
        """Read the command line and run the command."""
        with failures_reported():  # help and version, which are printed before any command
            return super().main(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; its errors become a line and an exit status before typer sees them."""
        with failures_reported():
            return super().invoke(ctx)


def walk_commands(
    command: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group, loaded, with the words that lead to it."""
    if isinstance(command, LazyCommand):
        command = command.load()
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from walk_commands(each, (*path, name))
