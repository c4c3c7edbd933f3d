"""Hint guards: hints and queue order of plugins that are not part of this package, so that a fault in them is noted.

A hint that fails counts as Queue, and pods that cannot be compared are ordered by their time in the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

from ..api.pod import Pod
from ..framework import Plugin, QueueSortPlugin
from ..framework.answer_checks import check_type
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
from ..framework.faults import PluginFaults
from ..framework.interface import QueuedPod
from .plugin_failures import failed, is_in_tree

HINTING = "running a queueing hint of plugin {}"
SORTING = "running QueueSort plugin {}"


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
