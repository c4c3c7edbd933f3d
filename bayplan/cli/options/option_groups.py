"""Option groups: the options of a command as the fields of a frozen dataclass.

Typer makes options of a function's parameters. A command with many of them would be mostly signature, so it takes one
object, whose fields are declared as those parameters would be.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from typing import Any, get_type_hints


def takes_options(group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command whose last parameter is a `group`: it gets one option for each field."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*before: Any, **options: Any) -> None:
            command(*before, group(**options))

        show_options(run, [*parameters_of(command)[:-1], *parameters_of(group)])
        return run

    return decorate


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, or the fields of a dataclass, as keywords with evaluated types."""
    if is_dataclass(function):
        # an inherited field comes last, and has the type that its own module gives it
        types, found = get_type_hints(function, include_extras=True), inspect.signature(function)
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
