"""Input options: the option of every command that reads files, which limits their size."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

from ...api.text.durations import EXPECTED, parse_duration
from ...errors import InputError
from .option_groups import option, parameters_of, show_options, with_default

NAME = "max_input_size"
MAX_INPUT_SIZE = option(
    "--max-input-size SIZE",
    "Read at most this much of each file, unpacked, such as 8Gi. Default: a plain file whole; "
    "of a gzip file 32Mi, or 100 times its size.",
)


def takes_input_limit(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator for a command that reads files: it gets the option that limits their size."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        from ...manifests.input_bytes import limited_input

        limit = options.pop(NAME)
        with limited_input(limit):
            command(*args, **options)

    kind = inspect.Parameter.KEYWORD_ONLY
    annotation = Annotated[str | None, with_default(MAX_INPUT_SIZE, ...)]
    limit = inspect.Parameter(NAME, kind, default=None, annotation=annotation)
    show_options(run, [*parameters_of(command), limit])
    return run


def parse_seconds(option: str, text: str) -> float:
    """The duration after `option`; raises InputError when it is invalid."""
    seconds = parse_duration(text)
    if seconds is None:
        raise InputError(f'{option}: {EXPECTED}; got "{text}"')
    return seconds


def seconds_if_given(option: str, text: str | None) -> float | None:
    """The seconds, or None for an option that is not given."""
    return None if text is None else parse_seconds(option, text)
