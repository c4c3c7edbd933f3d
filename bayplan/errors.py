"""Errors: the one exception tree of the package.

A pod that does not fit is never an exception; that is a `Status` or a `Verdict`. These are
for the other two cases: what we were given is wrong, or the outside failed.
"""


class BayplanError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(BayplanError):
    """What we were given is wrong; the text is one line: where, expected, found."""


class DecodeError(InputError):
    """An object could not be read. `where` names the object and the field, `problem` the fault."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.where = where
        self.problem = problem


class ConfigError(InputError):
    """A scheduler configuration is wrong."""


class PluginError(BayplanError):
    """A plugin cannot be used, or failed."""


class ExtenderError(BayplanError):
    """An extender failed, or answered what has no meaning."""


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
