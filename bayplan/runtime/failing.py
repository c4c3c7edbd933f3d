"""Failing: how an error inside a plugin ends a pod's attempt, and never the scheduler."""

from __future__ import annotations

from ..errors import PluginError
from ..framework import Code, Plugin, Status


class PluginRunError(PluginError):
    """A plugin raised, or returned something that has no meaning at this point; `status` is an Error."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def failed(doing: str, plugin: Plugin, cause: BaseException | Status | str) -> PluginRunError:
    """The failure of `plugin`; `doing` holds `{}` where its name belongs."""
    if isinstance(cause, PluginRunError):
        return cause
    text = cause.message if isinstance(cause, Status) else _text(cause)
    doing = doing.format(f'"{plugin.name}"')
    return PluginRunError(Status(Code.Error, (f"{doing}: {text}",), plugin.name))


def _text(cause: BaseException | str) -> str:
    if isinstance(cause, str):
        return cause
    if isinstance(cause, KeyError) and cause.args:
        return str(cause.args[0])
    return str(cause) or type(cause).__name__
