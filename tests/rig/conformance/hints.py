"""Conformance of events: the plugins' registrations, the results of their hints, and the events of an update.

A case is one decision. Differences are reported like those of the placement cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.config.load import parse_config
from bayplan.errors import InputError
from bayplan.framework import ClusterEvent, EventWithHint, Handle, Hint
from bayplan.framework.events import EXTENDER, ActionType, default_events
from bayplan.framework.registration import declared_events, registered_events
from bayplan.framework.update_events import node_update_events, pod_update_events
from bayplan.plugins.in_tree import IN_TREE
from bayplan.table import NodeTable

from .cases import CaseCluster, Disagreement, case_gates

Record = dict[str, Any]
PLUGINS = {plugin.name: plugin for plugin in IN_TREE}


def is_event_case(case: Record) -> bool:
    """Whether this module runs the case."""
    return case.get("kind") in RUN


def run_event_case(case: Record) -> list[Disagreement]:
    """The differences in the one decision of the case."""
    subject = case.get("plugin") or case["new"]["metadata"]["name"]
    return [
        Disagreement(case["id"], subject, field, ours, theirs)
        for field, ours, theirs in RUN[case["kind"]](case)
        if ours != theirs
    ]


Differences = Iterator[tuple[str, Any, Any]]


def _run_events(case: Record) -> Differences:
    declared, registered = _events_of(case)
    expected = case["expected"]
    yield "declared", [_pattern(event) for event in declared], expected["declared"]
    ours = sorted((e.event.resource, e.event.action.text) for e in registered)
    theirs = sorted((e["resource"], e["action"]) for e in expected["registered"])
    yield "registered", ours, theirs


def _run_hint(case: Record) -> Differences:
    event = ClusterEvent(case["event"]["resource"], ActionType.parse(case["event"]["action"]))
    pod = decode_object(case["pod"])
    assert isinstance(pod, Pod), "the waiting pod of a case is a pod"
    old, new = (decode_object(case[key]) if key in case else None for key in ("old", "new"))
    hints = [
        _pattern(registered) | ask(registered, pod, old, new)
        for registered in _events_of(case)[1]
        if registered.event.matches(event)
    ]
    expected = case["expected"]
    # The text of an error is not compared, only that there is one.
    theirs = [{**hint, "error": "error" in hint} for hint in expected["hints"]]
    given = {hint["hint"] for hint in hints}
    yield (
        "outcome",
        "Queue" if "Queue" in given else "Skip" if hints else "None",
        expected["outcome"],
    )
    yield "hints", sorted(hints, key=repr), sorted(theirs, key=repr)


def _run_change(case: Record) -> Differences:
    match decode_object(case["old"]), decode_object(case["new"]):
        case Node() as old, Node() as new:
            events = node_update_events(old, new)
        case Pod() as old, Pod() as new:
            events = pod_update_events(old, new)
        case old, new:
            raise AssertionError(f"expected two nodes or two pods; got {old!r} and {new!r}")
    ours = [{"resource": event.resource, "action": event.action.text} for event in events]
    yield "events", ours, case["expected"]["events"]


RUN: dict[str, Callable[[Record], Differences]] = {
    "events": _run_events,
    "hint": _run_hint,
    "change": _run_change,
}


def ask(registered: EventWithHint, pod: Pod, old: Any, new: Any) -> Record:
    """The result of a registration for an event; without a function, and with an error, it is
    `Queue`."""
    if registered.hint is None:
        return {"hint": "Queue", "error": False}
    try:
        hint = registered.hint(pod, old, new)
    except InputError:  # anything else is a bug of ours, and must be visible
        return {"hint": "Queue", "error": True}
    return {"hint": "Queue" if hint is Hint.QUEUE else "Skip", "error": False}


def _events_of(case: Record) -> tuple[Sequence[EventWithHint], Sequence[EventWithHint]]:
    """The plugin's declared events, and its registrations."""
    name = case["plugin"]
    gates = case_gates(case)
    if name == EXTENDER:
        return default_events(gates), default_events(gates)
    cluster = CaseCluster(decode_object(obj) for obj in case.get("objects", ()))
    plugin = PLUGINS[name].from_args(
        _args(name, case.get("args")),
        Handle(NodeTable(), lister=cluster, feature_gates=gates),
    )
    return declared_events(plugin), registered_events(plugin)


def _args(name: str, given: Record | None) -> Any:
    """The typed arguments of a plugin; the default ones when none are given."""
    if given is None:
        return None
    plugin_config = [{"name": name, "args": given}]
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": plugin_config}],
    }
    return parse_config(raw, "args").profiles[0].plugin_config[name]


def _pattern(registered: EventWithHint) -> Record:
    event = registered.event
    return {
        "resource": event.resource,
        "action": event.action.text,
        "hasFunction": registered.hint is not None,
    }
