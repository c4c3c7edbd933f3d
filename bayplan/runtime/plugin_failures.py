"""Plugin failures: how an error inside a plugin ends a pod's attempt, and never the scheduler.

An error status that a plugin returns, and an error of the API server, the network or the file system, are about the
cluster. Anything else that a plugin raises, and an answer of the wrong type, is a fault of its code: the message then
has file and line. Hints and queue order of plugins that are not part of this package are guarded: a hint that fails
counts as Queue, and pods that cannot be compared are ordered by their time in the queue.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from traceback import walk_tb
from types import CodeType, TracebackType
from typing import Any

from ..api.pod import Pod
from ..errors import ApiError, BayplanError, PluginError
from ..framework import Code, Plugin, QueueSortPlugin, Status
from ..framework.answer_checks import WrongAnswerError, check_type
from ..framework.events import (
    UNSCHEDULABLE_POD,
    ActionType,
    Affected,
    CalledFor,
    EventWithHint,
    Hint,
    HintFunction,
    called_for,
    targets_of,
    wait_for,
)
from ..framework.faults import PluginFaultError, PluginFaults
from ..framework.interface import QueuedPod

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
HINTING = "running a queueing hint of plugin {}"
SORTING = "running QueueSort plugin {}"


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


def guarded_hint(
    plugin: Plugin, hint: HintFunction | None, faults: PluginFaults
) -> HintFunction | None:
    """The hint, which returns Queue when it fails; the fault is noted."""
    if hint is None or is_in_tree(plugin):
        return hint

    def ask(pod: Pod, old: Any, new: Any) -> Hint:
        try:
            return check_type(hint(pod, old, new), Hint, "a Hint")  # type: ignore[no-any-return]  # checked at run time
        except Exception as error:  # a plugin may raise anything
            faults.note(failed(HINTING, plugin, error, _name_of(hint)).status.error)
            return Hint.QUEUE

    targets = targets_of(hint)
    if not isinstance(targets, CalledFor):
        targets = _guarded_targets(plugin, targets, faults)
    return called_for(targets)(ask)


def _guarded_targets(plugin: Plugin, affected: Affected, faults: PluginFaults) -> Affected:
    def ask(old: Any, new: Any) -> Collection[str] | None:
        try:
            kinds = (list, tuple, set, frozenset, dict, type(None))
            keys = check_type(affected(old, new), kinds, "keys of pods, or None")
        except Exception as error:  # a plugin may raise anything
            faults.note(failed(HINTING, plugin, error, _name_of(affected)).status.error)
            return None
        return keys  # type: ignore[no-any-return]  # checked at run time

    return ask


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def guarded_sort_key(plugin: QueueSortPlugin, faults: PluginFaults) -> Callable[[Any], Any]:
    """The key by which the plugin sorts a pod of the queue."""
    if is_in_tree(plugin):
        return plugin.sort_key

    @wraps(plugin.sort_key)
    def sort_key(queued: QueuedPod) -> GuardedKey:
        try:
            return GuardedKey(plugin, faults, plugin.sort_key(queued), queued.timestamp)
        except Exception as error:  # a plugin may raise anything
            faults.note(failed(SORTING, plugin, error, "sort_key").status.error)
            return GuardedKey(plugin, faults, None, queued.timestamp)

    return sort_key


class GuardedKey:
    """A key of a plugin; keys that cannot be compared are ordered by time."""

    __slots__ = ("_faults", "_key", "_plugin", "_timestamp")

    def __init__(self, plugin: Plugin, faults: PluginFaults, key: Any, timestamp: float) -> None:
        self._plugin = plugin
        self._faults = faults
        self._key = key
        self._timestamp = timestamp

    def __lt__(self, other: GuardedKey) -> bool:
        if self._key is not None and other._key is not None:
            try:
                return bool(self._key < other._key)
            except Exception as error:  # a plugin may raise anything
                fault = failed(SORTING, self._plugin, error, "sort_key").status.error
                self._faults.note(fault)
        return self._timestamp < other._timestamp


def pod_changed(pod: Pod, old: Any, new: Any) -> Hint:
    """Requeue a pod that failed by a fault of a plugin only if the pod itself changed."""
    if not isinstance(new, Pod) or new.uid != pod.uid or not isinstance(old, Pod):
        return Hint.SKIP
    is_equal = (old.spec, old.labels, old.annotations) == (new.spec, new.labels, new.annotations)
    return Hint.SKIP if is_equal else Hint.QUEUE


AFTER_FAULTS: EventWithHint = wait_for(UNSCHEDULABLE_POD, ActionType.Update, pod_changed)
"""Event after which a pod that failed by a fault is retried; the limit on unschedulable time holds as well."""
