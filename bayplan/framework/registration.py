"""Registration: the events that pods refused by a plugin are tried again for.

Mirrors fillEnqueueExtensions of pkg/scheduler/framework/runtime/framework.go and buildQueueingHintMap of
pkg/scheduler/scheduler.go. It is in `framework` because it is part of the contract of `events_to_register`, and because
the queue, which needs the result, may not import `runtime`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ..api.custom import CustomResource, is_custom
from ..errors import PluginError
from ..releases.feature_gates import DEFAULT_GATES
from .answer_checks import wrong
from .events import (
    ANY_EVENT,
    NODE,
    RESOURCES,
    ActionType,
    ClusterEvent,
    EventWithHint,
    default_events,
    wait_for,
)
from .handle import release_of
from .interface import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)

EVENTS = "a list of events made with `wait_for`"
REFUSING = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
"""The extension points where a plugin can refuse a pod; events of others are not read."""


def declared_events(plugin: Plugin) -> tuple[EventWithHint, ...]:
    """Events that the plugin waits for, in its order; nothing when it cannot refuse a pod."""
    if not isinstance(plugin, REFUSING):
        return ()
    declared = plugin.events_to_register()
    if declared is ANY_EVENT:
        handle = getattr(plugin, "handle", None)
        known = default_events(handle.feature_gates if handle is not None else DEFAULT_GATES)
        return (*known, *(wait_for(r.name, ActionType.All) for r in plugin.custom_resources))
    if not isinstance(declared, list | tuple):
        raise wrong(EVENTS, declared)
    for wanted in declared:
        if not isinstance(wanted, EventWithHint):
            raise wrong(EVENTS, wanted)
    return tuple(declared)


def check_events(plugin: Plugin) -> None:
    """Raise PluginError when the plugin waits for events of something that it does not read."""
    custom = {resource.name for resource in plugin.custom_resources}
    for event in dict.fromkeys(wanted.event for wanted in declared_events(plugin)):
        resource = event.resource
        if resource in custom:
            _check_custom_action(plugin, event)
            continue
        if resource in RESOURCES:
            continue
        if is_custom(resource):
            expected = f"expected {resource} in custom_resources; got {', '.join(custom) or 'none'}"
            raise PluginError(f"{plugin.name}: events_to_register: {expected}")
        close = get_close_matches(resource, (*RESOURCES, *custom), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        expected = "expected a resource such as Node, or foos.v1.example.com"
        raise PluginError(f'{plugin.name}: events_to_register: {expected}; got "{resource}"{hint}')


def _check_custom_action(plugin: Plugin, event: ClusterEvent) -> None:
    """Updates of custom objects are not distinguished: a pattern for some of them would match none."""
    updates = event.action & ActionType.Update
    if updates not in (0, ActionType.Update):
        raise PluginError(
            f"{plugin.name}: events_to_register: {event.resource}: expected the actions Add, Update, Delete or All; "
            f"got {event.action.text}"
        )


def declared_resources(plugins: Iterable[type[Plugin]]) -> dict[str, CustomResource]:
    """The custom resources of the plugins, by name; PluginError when two declare one differently."""
    found: dict[str, tuple[CustomResource, str]] = {}
    for plugin in plugins:
        for resource in plugin.custom_resources:
            first, owner = found.setdefault(resource.name, (resource, plugin.name))
            if first != resource:
                raise PluginError(
                    f"{plugin.name}: custom_resources: expected {resource.name} as {owner} has it: "
                    f"{first.description}; got {resource.description}"
                )
    return {name: resource for name, (resource, _) in found.items()}


def registered_events(plugin: Plugin) -> tuple[EventWithHint, ...]:
    """Events after which the queue tries pods again that the plugin refused.

    Up to v1.36 a plugin that waits for new nodes also gets every change of taints, without its hint: upstream once
    missed nodes that were added with a taint, and kept the workaround after the fix.
    """
    declared = declared_events(plugin)
    if not release_of(plugin).implied_taint_event:
        return declared
    if _asks(declared, ActionType.Add) and not _asks(declared, ActionType.UpdateNodeTaint):
        return (*declared, wait_for(NODE, ActionType.UpdateNodeTaint))
    return declared


def _asks(events: Sequence[EventWithHint], action: ActionType) -> bool:
    """Whether one of `events` is about nodes and `action`."""
    return any(e.event.resource == NODE and action in e.event.action for e in events)
