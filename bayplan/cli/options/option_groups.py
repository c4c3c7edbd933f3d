"""Option groups: the options of a command as the fields of a frozen dataclass.

Typer makes options of a function's parameters. A command with many of them would be mostly signature, so it takes one
object, whose fields are declared as those parameters would be.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


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
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]


def show_options(command: Callable[..., None], parameters: list[inspect.Parameter]) -> None:
    """Give `command` the signature with these parameters, of which typer makes options."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in parameters}
