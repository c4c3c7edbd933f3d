"""Option groups: options in the notation of the help, and the options of a command as the fields of a group.

Typer makes options of a function's parameters. A command with many of them would be mostly signature, so it takes one
object, whose fields are declared as those parameters would be:

    limit: int | None = option("-l, --limit NUMBER", "Stop at this number of pods.", min=1)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.models import ParameterInfo

Group = TypeVar("Group")
INFO = "info"


def option(notation: str, help: str = "", default: Any = None, **more: Any) -> Any:
    """An option, with its names and the word for its value; a `default` of `...` makes it required.

    Without a word for its value it is a switch, which is off by default.
    """
    *names, last = notation.replace(", ", " ").split()
    is_switch = last.startswith("-")
    if is_switch:
        names, default = [*names, last], False if default is None else default
    return typer.Option(default, *names, metavar=None if is_switch else last, help=help, **more)


def argument(metavar: str, help: str = "", default: Any = ..., **more: Any) -> Any:
    """An argument with its default; without one it is required."""
    return typer.Argument(default, metavar=metavar, help=help, **more)


def with_default(info: Any, default: Any) -> Any:
    """The same option or argument with another default."""
    info = copy(info)
    info.default = default
    return info


@dataclass_transform(frozen_default=True, kw_only_default=True)
def option_group(group: type[Group]) -> type[Group]:
    """A frozen dataclass whose fields are options and arguments."""
    for name, info in list(vars(group).items()):
        if isinstance(info, ParameterInfo):
            default: Any = MISSING if info.default is ... else info.default
            setattr(group, name, field(default=default, metadata={INFO: with_default(info, ...)}))
    return dataclass(frozen=True, kw_only=True)(group)


def takes_options(group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command with a `group` before its own options: it gets one more option for each field."""
    added = parameters_of(group)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*before: Any, **options: Any) -> None:
            given = group(**{each.name: options.pop(each.name) for each in added})
            command(*before, given, **options)

        own = [each for each in parameters_of(command) if each.annotation is not group]
        show_options(run, [*own, *added])
        return run

    return decorate


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, or the fields of a dataclass, as keywords with evaluated types."""
    if is_dataclass(function):
        # an inherited field comes last, and has the type that its own module gives it
        types, found = get_type_hints(function, include_extras=True), inspect.signature(function)
        for each in fields(function):
            if INFO in each.metadata:
                types[each.name] = Annotated[types[each.name], each.metadata[INFO]]
    else:
        found = inspect.signature(function, eval_str=True)
        types = {name: each.annotation for name, each in found.parameters.items()}
    own = function.__annotations__
    return [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[name])
        for name, each in sorted(found.parameters.items(), key=lambda item: item[0] not in own)
    ]


def completing(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """A completion of shells: the choices that begin like the word."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in choices if name.startswith(incomplete)]

    return complete


def show_options(command: Callable[..., None], parameters: list[inspect.Parameter]) -> None:
    """Give `command` the signature with these parameters, of which typer makes options."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in parameters}
