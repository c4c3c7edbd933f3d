"""Errors: the exception tree of the package.

A pod that does not fit is never an exception; that is a `Status` or a `Verdict`. These are for the
other two cases: invalid input, or an outside failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class BayplanError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(BayplanError):
    """Invalid input; the text is one line: where, expected, found."""


class OutputError(BayplanError):
    """Output could not be written, for example because the disk is full."""


class DecodeError(InputError):
    """An object could not be decoded. `where` names the object and the field, `problem` the fault."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.where = where
        self.problem = problem


class ConfigError(InputError):
    """A scheduler configuration is invalid."""


class PluginError(BayplanError):
    """A plugin cannot be used, or failed."""

    is_fault = False
    """Whether the code of a plugin is at fault: trying another node or another time does not help."""


class EngineDisagreementError(BayplanError):
    """The engine and the reference decide differently: a bug, found where both are computed."""


class ExtenderError(BayplanError):
    """An extender failed, or gave an invalid answer."""


class ApiError(BayplanError):
    """The API server refused or failed; `code` is its HTTP status, 0 when there was none."""

    default_code = 0

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = self.default_code if code is None else code


class NotFoundError(ApiError):
    """The object does not exist."""

    default_code = 404


class ConflictError(ApiError):
    """The object changed, or exists already."""

    default_code = 409


@contextmanager
def os_errors_named(
    place: object, expected: str, kind: type[BayplanError] = InputError
) -> Iterator[None]:
    """Turn an error of the operating system into one of the package, which names the place."""
    try:
        yield
    except OSError as error:
        raise kind(f"{place}: expected {expected}; got {error.strerror or error}") from None


@contextmanager
def package_needed(place: str, package: str, extra: str) -> Iterator[None]:
    """Within it, the import of a package that an extra installs; raises InputError when it is not there."""
    try:
        yield
    except ImportError:
        raise InputError(
            f"{place}: expected {package} to be installed (pip install 'bayplan[{extra}]'); got none"
        ) from None


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`, for a text."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def one_of(choices: Sequence[str]) -> str:
    """`A, B or C`, for the text of an error; without an empty choice."""
    *others, last = (choice for choice in choices if choice)
    return f"{', '.join(others)} or {last}" if others else last
