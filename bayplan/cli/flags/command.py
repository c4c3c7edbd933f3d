"""Command: reads flags in the forms that Go programs take: `--name=value`, `--name value`, `--switch`, `-v=2`.

Underscores in names are hyphens, as in Kubernetes components. The given flags, and the notation of each value, are in
a `FlagValues`; errors name the flag, what was expected and what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ...api.text.durations import EXPECTED, parse_duration
from ...errors import InputError
from ..command_table import PlainCommand
from .table import BY_NAME, FLAGS, Flag, FlagKind

TRUE = {"1", "t", "T", "true", "TRUE", "True"}
FALSE = {"0", "f", "F", "false", "FALSE", "False"}
LEVELS = {"-v": "4", "-vv": "10"}
"""Level of -v without a number."""


class FlagValues:
    """The values of all flags, as they were written."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = dict(given)

    def text(self, name: str) -> str:
        """The value, or the default."""
        return self.given.get(name, BY_NAME[name].default)

    def is_on(self, name: str) -> bool:
        """The value of a switch."""
        text = self.text(name)
        if text not in TRUE | FALSE:
            raise InputError(f'--{name}: expected true or false; got "{text}"')
        return text in TRUE

    def number(self, name: str, least: int = 0, most: int = 2**31 - 1) -> int:
        """The value as a whole number."""
        text = self.text(name)
        if not re.fullmatch(r"-?\d+", text) or not least <= int(text) <= most:
            raise InputError(
                f'--{name}: expected a whole number from {least} to {most}; got "{text}"'
            )
        return int(text)

    def decimal(self, name: str) -> float:
        """The value as a number."""
        try:
            return float(self.text(name))
        except ValueError:
            raise InputError(f'--{name}: expected a number; got "{self.text(name)}"') from None

    def seconds(self, name: str) -> float:
        """The value as a duration."""
        seconds = parse_duration(self.text(name))
        if seconds is None or seconds < 0:
            raise InputError(f'--{name}: {EXPECTED}; got "{self.text(name)}"')
        return seconds

    def parts(self, name: str) -> list[str]:
        """The values of a list."""
        return [part.strip() for part in self.text(name).split(",") if part.strip()]

    def one_of(self, name: str, *choices: str) -> str:
        """The value, which must be one of `choices`."""
        text = self.text(name)
        if text not in choices:
            raise InputError(f'--{name}: expected {" or ".join(choices)}; got "{text}"')
        return text

    def check(self) -> None:
        """Read every given value once; InputError for one that is not of its kind."""
        readers: dict[FlagKind, Callable[[str], object]] = {
            FlagKind.BOOL: self.is_on,
            FlagKind.INT: self.number,
            FlagKind.FLOAT: self.decimal,
            FlagKind.DURATION: self.seconds,
        }
        for name in self.given:
            readers.get(BY_NAME[name].kind, self.text)(name)

    def remarks(self) -> Iterator[str]:
        """Remarks on given flags that have no effect."""
        for name in self.given:
            if BY_NAME[name].unused:
                yield f"--{name} has no effect: {BY_NAME[name].unused}"


def read_flags(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The values given for each flag, in order; InputError for a word that is no flag, or a flag without value."""
    found: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        short = re.fullmatch(r"-v=?(\d+)", word)
        if short:
            found.setdefault("v", []).append(short[1])
            continue
        if word in LEVELS:
            has_number = bool(rest) and rest[0].isdigit()
            found.setdefault("v", []).append(rest.pop(0) if has_number else LEVELS[word])
            continue
        name, joint, value = word.removeprefix("--").partition("=")
        name = name.replace("_", "-")
        flag = BY_NAME.get(name) if word.startswith("--") else None
        if flag is None:
            raise InputError(f"expected a flag of kube-scheduler; got {word}{_suggestion(name)}")
        if not joint and (flag.kind is FlagKind.BOOL or name == "version"):
            value = "true"
        elif not joint:
            if not rest:
                raise InputError(f"--{name}: expected a value; got none")
            value = rest.pop(0)
        found.setdefault(name, []).append(value)
    return found


def _suggestion(name: str) -> str:
    close = get_close_matches(name, BY_NAME, 1)
    return f"; did you mean --{close[0]}?" if close else ""


class FlagCommand(PlainCommand):
    """A command with the flags of the table; the function gets a context whose `obj` is the FlagValues."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        if {"-h", "--help"}.intersection(args):
            return super().parse_args(ctx, ["--help"])
        try:
            given = read_flags(args)
            # lists grow with each flag; of others the last counts
            several = (FlagKind.LIST, FlagKind.MAP)
            joined = {
                name: ",".join(texts) if BY_NAME[name].kind in several else texts[-1]
                for name, texts in given.items()
            }
            ctx.obj = FlagValues(joined)
            ctx.obj.check()
        except InputError as error:
            if not ctx.resilient_parsing:  # as for completion
                ctx.fail(str(error))
        return super().parse_args(ctx, [])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the flags group by group."""
        for group, flags in FLAGS.items():
            with formatter.section(group):
                formatter.write_dl([(_usage(flag), _help(flag)) for flag in flags])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The flags that begin like that."""
        make = type(super().shell_complete(ctx, "--help")[0])
        return [
            make(f"--{flag.name}", help=flag.help)
            for flag in BY_NAME.values()
            if incomplete and f"--{flag.name}".startswith(incomplete)
        ]


def _usage(flag: Flag) -> str:
    short = "-v, " if flag.name == "v" else ""
    return f"{short}--{flag.name} {flag.metavar}"


def _help(flag: Flag) -> str:
    if flag.unused:
        return f"{flag.help} Accepted without effect: {flag.unused}."
    return f"{flag.help} [default: {flag.default}]" if flag.default else flag.help
