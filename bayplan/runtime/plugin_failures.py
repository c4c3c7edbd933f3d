"""Plugin failures: how an error inside a plugin ends a pod's attempt, and never the scheduler.

An error status that a plugin returns, and an error of the API server, the network or the file system, are about the
cluster. Anything else that a plugin raises, and an answer of the wrong type, is a fault of its code: the message then
has file and line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from traceback import walk_tb
from types import CodeType, TracebackType
from typing import Any

from ..errors import ApiError, BayplanError, PluginError
from ..framework import Code, Plugin, Status
from ..framework.answer_checks import WrongAnswerError
from ..framework.faults import PluginFaultError

PACKAGE = str(Path(__file__).parents[1]) + os.sep
TWINS = {
    "filter_rows": "filter_node",
    "filter_node": "filter_rows",
    "score_rows": "score_node",
    "score_node": "score_rows",
    "normalize_rows": "normalize",
    "sort_key": "less",
    "from_args": "__init__",
}
"""Methods that call another one by default."""


class PluginRunError(PluginError):
    """A plugin raised, or returned something that has no meaning at this point; `status` is an Error."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status
        self.is_fault = isinstance(status.error, PluginFaultError)
        self.is_declaration = False
        """Raised by a method by which a plugin declares something, which only the engine may have called."""


def failed(
    doing: str, plugin: Plugin, cause: BaseException | Status | str, method: str = ""
) -> PluginRunError:
    """The failure of `plugin` in `method`. `doing` has `{}` in the place of the plugin's name."""
    if isinstance(cause, PluginRunError):
        return cause
    doing = doing.format(f'"{plugin.name}"')
    # An error of the API server, the network or the file system may be over when the pod is tried again.
    is_fault = not is_in_tree(plugin) and not isinstance(cause, ApiError | OSError)
    if isinstance(cause, BaseException) and is_fault:
        fault = PluginFaultError(f"{doing}: {fault_text(type(plugin), method, cause)}")
        fault.__cause__ = cause
        return PluginRunError(Status(Code.Error, (), plugin.name, fault))
    if isinstance(cause, Status) and cause.code is not Code.Error and not is_in_tree(plugin):
        text = f"expected another code than {cause.code.name} of a Status at this point"
        text += f" ({cause.message})" if cause.message else ""
        return failed(doing, plugin, WrongAnswerError(text), method)
    text = cause.message if isinstance(cause, Status) else _text(cause)
    return PluginRunError(Status(Code.Error, (f"{doing}: {text}",), plugin.name))


def is_in_tree(plugin: Plugin) -> bool:
    """Whether the plugin is part of this package: its errors are those of kube-scheduler in the same case."""
    return type(plugin).__module__.startswith("bayplan.")


def fault_text(plugin: type[Plugin], method: str, error: BaseException) -> str:
    """File, line and method of the plugin's code, and the fault there."""
    defined, called = _place_of_method(plugin, method)
    where, frame = _place_in_traceback(plugin, error.__traceback__)
    where, called = where or defined, called if defined else frame
    found = str(error) if isinstance(error, WrongAnswerError) else exception_text(error)
    return ": ".join([part for part in (where, called or method, found) if part])


def exception_text(error: BaseException) -> str:
    """An exception in one line; errors of this package are complete by themselves."""
    text = " ".join(str(error).split())
    if isinstance(error, BayplanError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place_of_line(file: str, line: int) -> str:
    """`file:line`, relative to the working directory where the file is below it."""
    path = Path(file)
    try:
        shown = path.relative_to(Path.cwd())
    except (ValueError, OSError):
        shown = path
    return f"{shown}:{line}"


def last_line_in(file: str, traceback: TracebackType | None) -> int | None:
    """The line of `file` that was reached last."""
    lines = [line for frame, line in walk_tb(traceback) if frame.f_code.co_filename == file]
    return lines[-1] if lines else None


def _place_in_traceback(plugin: type[Plugin], traceback: TracebackType | None) -> tuple[str, str]:
    """The last line of the plugin's file that was reached, or of other code outside this package; and its method."""
    own = getattr(sys.modules.get(plugin.__module__), "__file__", None)
    place, called, is_own = "", "", False
    for frame, line in walk_tb(traceback):
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            if code.co_filename == own and not is_own:
                called, is_own = code.co_name, True
            if code.co_filename == own or not is_own:
                place = place_of_line(code.co_filename, line)
                called = called or code.co_name
    return place, called


def _place_of_method(plugin: type[Plugin], method: str) -> tuple[str, str]:
    """File and line of the plugin's method, or of the one that the default of the method calls."""
    for name in (method, TWINS.get(method, "")):
        code = _code_of(getattr(plugin, name, None)) if name else None
        if code is not None and not code.co_filename.startswith(PACKAGE):
            return place_of_line(code.co_filename, code.co_firstlineno), name
    return "", method


def _code_of(method: Any) -> CodeType | None:
    method = getattr(method, "__func__", method)
    code = getattr(getattr(method, "__wrapped__", method), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _text(cause: BaseException | str) -> str:
    if isinstance(cause, str):
        return cause
    if isinstance(cause, KeyError) and cause.args:
        return str(cause.args[0])
    return str(cause) or type(cause).__name__
