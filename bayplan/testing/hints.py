"""Hints: call a plugin's queueing hint for an event, as the queue would."""

from __future__ import annotations

from typing import Any

from ..api.pod import Pod
from ..framework import ActionType, ClusterEvent, Hint, Plugin, registered_events


def ask_plugin(
    plugin: Plugin, event: str, pod: Pod, old: Any = None, new: Any = None
) -> Hint | None:
    """Whether `event`, such as `Node/Add`, requeues a pod that `plugin` rejected.

    None if the plugin did not register such events. Exceptions of the hint are raised.
    """
    resource, _, action = event.rpartition("/")
    incoming = ClusterEvent(resource, ActionType.parse(action))
    asked = [e.hint for e in registered_events(plugin) if e.event.matches(incoming)]
    answers = [Hint.QUEUE if hint is None else hint(pod, old, new) for hint in asked]
    if not answers:
        return None
    return Hint.QUEUE if Hint.QUEUE in answers else Hint.SKIP
