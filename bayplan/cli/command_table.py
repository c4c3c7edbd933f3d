"""Command table: the table of all commands, and how one is loaded.

A command's module is imported when the command is used: help, completion and the version need none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from .failures import failures_reported

Function = TypeVar("Function", bound=Callable[..., Any])

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class CommandEntry(NamedTuple):
    """One command: the module of `commands` and the name in it, and the line about it in the list of commands."""

    module: str
    attribute: str
    summary: str
    below: Mapping[str, CommandEntry] = MappingProxyType({})
    """Further commands whose names follow its own; without a module it has only these."""


DOWN = CommandEntry("clusters", "down", "End a cluster that up runs.")
CLUSTERS = CommandEntry("clusters", "clusters", "List the clusters that up runs.")
POOLS = CommandEntry("plan", "check_pools", "Check node pools, and list their types and prices.")
PLUGINS = CommandEntry("config", "plugins", "List every plugin and its extension points.")
BENCH = CommandEntry("bench", "bench", "Measure pods per second and memory.")
SWEEP = CommandEntry(
    "sweep", "sweep", "Simulate many inputs, configurations and seeds, on all cores or on Ray."
)
TRACE = CommandEntry("import_trace", "app", "Convert traces of real clusters to manifests.")
GROUPS: Mapping[str, Mapping[str, CommandEntry]] = {
    "Ask": {
        "simulate": CommandEntry("simulate", "app", "Place pods, and show where they go."),
        "explain": CommandEntry(
            "explain", "explain_command", "Say why a pod is pending, or where it is."
        ),
        "what-if": CommandEntry("what_if", "app", "Say what a change would lead to."),
        "capacity": CommandEntry("capacity", "capacity", "Say how many more pods fit."),
        "compare": CommandEntry("compare", "compare", "Compare configurations or releases."),
        "rebalance": CommandEntry("rebalance", "rebalance", "Plan moves that improve a cluster."),
        "plan": CommandEntry(
            "plan", "plan", "Find the cheapest nodes for a workload.", {"pools": POOLS}
        ),
    },
    "Live cluster": {
        "doctor": CommandEntry("doctor", "doctor", "Name what may make answers differ."),
        "snapshot": CommandEntry("snapshot", "snapshot", "Write a live cluster to a file."),
        "record": CommandEntry("record", "record", "Record the changes of a live cluster."),
        "replay": CommandEntry("replay", "replay", "Judge the decisions in a recording."),
        "shadow": CommandEntry("shadow", "shadow", "Judge the decisions of a live cluster."),
        "run": CommandEntry("run", "app", "Schedule the pods of a real cluster."),
    },
    "Local cluster": {
        "up": CommandEntry(
            "up", "up", "Run a cluster here, for kubectl.", {"list": CLUSTERS, "down": DOWN}
        ),
        "example": CommandEntry("example", "example", "Write example files to try commands with."),
    },
    "Research": {
        "config": CommandEntry(
            "config", "app", "Show, check and convert configurations.", {"plugins": PLUGINS}
        ),
        "research": CommandEntry(
            "",
            "",
            "Traces, sweeps and benchmarks.",
            {"trace": TRACE, "sweep": SWEEP, "bench": BENCH},
        ),
    },
}
"""The commands in the order and the groups of the help."""
COMMANDS: Mapping[str, CommandEntry] = {
    name: entry for group in GROUPS.values() for name, entry in group.items()
}
FORMER: Mapping[str, CommandEntry] = {
    "down": DOWN,
    "clusters": CLUSTERS,
    "pools": CommandEntry("plan", "pools_app", POOLS.summary),
    "plugins": PLUGINS,
    "bench": BENCH,
    "trace": TRACE,
    "sweep": SWEEP,
}
"""Names of v0.2 and before, which help does not list; to be removed in v0.5."""


class PlainCommand(TyperCommand):
    """A command whose help names arguments as kubectl does: `NODE...`, and `[FILE]` for one that may be left out.

    `below` are further commands that may follow its name; the help lists them.
    """

    below: Mapping[str, LazyCommand] = MappingProxyType({})

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands below it that the word may become, then its options."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.below if name.startswith(incomplete)]
        found: list[Any] = super().shell_complete(ctx, incomplete)
        return [*map(CompletionItem, names), *found]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        take_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the name of the command."""
        shown = ((_shown(each), each.required) for each in self._arguments())
        return ["[OPTIONS]", *(name if required else f"[{name}]" for name, required in shown)]

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
        if self.below:
            with formatter.section("Commands"):
                formatter.write_dl([(name, each.short_help) for name, each in self.below.items()])

    def _arguments(self) -> list[Any]:
        return [param for param in self.params if param.param_type_name == "argument"]


def _shown(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 else f"{name}..."


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
    """Stands for a command that is not loaded; it makes the context of the loaded command."""

    def __init__(self, name: str, entry: CommandEntry, hidden: bool = False) -> None:
        super().__init__(name, short_help=entry.summary, rich_markup_mode=None, hidden=hidden)
        self._entry = entry
        self.below = {word: LazyCommand(word, each) for word, each in entry.below.items()}

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Load the command, or the one below it whose name is the first argument, and let it read its arguments."""
        if args and args[0] in self.below:
            path = f"{info_name} {args[0]}"
            return self.below[args[0]].make_context(path, args[1:], parent, **extra)
        return self.load().make_context(info_name, args, parent, **extra)

    def load(self) -> Any:
        """The real command."""
        if not self._entry.module:
            return _make_group(self.name or "", self._entry, self.below)
        found = getattr(
            import_module(f".commands.{self._entry.module}", __package__), self._entry.attribute
        )
        if not isinstance(found, typer.Typer):
            app = CommandApp()
            app.command(self.name)(found)
            found = app
        command: Any = get_command(found)
        command.name, command.short_help = self.name, self._entry.summary
        if isinstance(command, TyperGroup):
            command.commands = {**command.commands, **self.below}
        elif self.below:
            command.below = self.below
        return command


def _make_group(name: str, entry: CommandEntry, below: Mapping[str, LazyCommand]) -> TyperGroup:
    """A command that has others below it only."""
    first = next(iter(below))
    group = TyperGroup(
        name=name,
        commands=dict(below),
        help=entry.summary,
        epilog=f"Example: bayplan {name} {first} list",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=HELP_OPTIONS,
    )
    group.short_help = entry.summary
    return group


class LazyGroup(TyperGroup):
    """The group of all commands in the table."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: LazyCommand(name, each) for name, each in COMMANDS.items()}
        former = {name: LazyCommand(name, each, hidden=True) for name, each in FORMER.items()}
        self.commands.update(former)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help on one screen: the commands by groups, and the options in a line."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        formatter.write_paragraph()
        words = max(map(len, COMMANDS))
        titles = max(map(len, GROUPS))
        for title, group in GROUPS.items():
            for number, (name, entry) in enumerate(group.items()):
                shown = "" if number else title
                formatter.write(f"{shown:{titles}}  {name:{words}}  {entry.summary}\n")
        options = [name for one in self.get_params(ctx) for name in reversed(one.opts)]
        formatter.write_text(f"Options: {' '.join(options)}")

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
    """Every command and group that help lists, loaded, with the words that lead to it."""
    if isinstance(command, LazyCommand):
        command = command.load()
    yield path, command
    inner = getattr(command, "commands", None) or getattr(command, "below", {})
    for name, each in inner.items():
        if not each.hidden:
            yield from walk_commands(each, (*path, name))


_LEFT = object()
"""Marks a value that typer has to convert."""


def take_plain_values(params: Iterable[Any]) -> None:
    """Let these parameters of a command take plain values as they are."""
    for param in params:
        # Versions of typer without pydantic do not have this method.
        if "get_runtime_param" not in vars(param) and hasattr(param, "get_runtime_param"):
            param.get_runtime_param = PlainValues(param)


class PlainValues:
    """Takes the place of a parameter's `get_runtime_param`, and of what that returns.

    typer converts values with pydantic, whose import takes longer than all else that typer does. Values that are
    right as they are, or after one call, are taken here; all others, wrong ones among them, are left to typer.
    """

    def __init__(self, param: Any) -> None:
        self._type = param.type_descriptor.annotation
        self._info = param.type_descriptor.parameter_info
        self._make_converter = param.get_runtime_param

    def __call__(self) -> PlainValues:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        plain = self._plain(value, self._type)
        if plain is not _LEFT:
            return plain
        return self._make_converter().coerce(value, param=param, ctx=ctx)

    def _plain(self, value: Any, kind: Any) -> Any:
        if get_origin(kind) is list and isinstance(value, list | tuple):
            values = [self._plain(item, get_args(kind)[0]) for item in value]
            return _LEFT if _LEFT in values else values
        if not isinstance(kind, type) or self._info.parser is not None:
            return _LEFT
        if type(value) is kind:
            return value
        if issubclass(kind, Enum):
            return next((one for one in kind if one.value == value), _LEFT)
        return Path(value) if kind is Path and self._is_readable(value) else _LEFT

    def _is_readable(self, path: str) -> bool:
        """Whether a path stands the checks that typer makes."""
        info = self._info
        is_checked = info.writable or info.resolve_path or not (info.file_okay and info.dir_okay)
        return not is_checked and os.access(path, os.R_OK)
