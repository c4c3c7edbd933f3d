"""Registration: the events that pods refused by a plugin are tried again for.

Mirrors fillEnqueueExtensions of pkg/scheduler/framework/runtime/framework.go and buildQueueingHintMap
of pkg/scheduler/scheduler.go. It stands in `framework` because it is part of what a plugin author must
know of `events_to_register`, and because the queue, which needs the answer, may not import `runtime`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .events import ANY_EVENT, NODE, ActionType, EventWithHint, default_events, wait_for
from .feature_gates import DEFAULT_GATES
from .interface import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)

REFUSING = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
"""The extension points where a plugin can refuse a pod; what others wait for is not asked."""


def declared_events(plugin: Plugin) -> tuple[EventWithHint, ...]:
    """What the plugin waits for, in its order; nothing when it cannot refuse a pod."""
    if not isinstance(plugin, REFUSING):
        return ()
    declared = plugin.events_to_register()
    if declared is ANY_EVENT:
        handle = getattr(plugin, "handle", None)
        return default_events(handle.feature_gates if handle is not None else DEFAULT_GATES)
    return tuple(declared)


def registered_events(plugin: Plugin) -> tuple[EventWithHint, ...]:
    """What the queue tries pods again for that the plugin refused.

    A plugin that waits for new nodes is woken by every change of taints too, hint or no hint: upstream
    once missed nodes that came with a taint, and the remedy outlived the fault.
    """
    declared = declared_events(plugin)
    if _asks(declared, ActionType.Add) and not _asks(declared, ActionType.UpdateNodeTaint):
        return (*declared, wait_for(NODE, ActionType.UpdateNodeTaint))
    return declared


def _asks(events: Sequence[EventWithHint], action: ActionType) -> bool:
    """Whether one of `events` is about nodes and `action`."""
    return any(e.event.resource == NODE and action in e.event.action for e in events)
