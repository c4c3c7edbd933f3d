"""Hint guards: what a hint, its targets and a sort key of a plugin of users may return, and what a fault leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import QueueSortPlugin
from bayplan.framework.events import (
    EACH_POD,
    EACH_SPEC,
    UNSCHEDULABLE_POD,
    ActionType,
    CalledFor,
    Hint,
    HintFunction,
    called_for,
    targets_of,
)
from bayplan.framework.faults import PluginFaults
from bayplan.framework.interface import QueuedPod
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.runtime.plugin_failures import AFTER_FAULTS, guarded_hint, guarded_sort_key
from bayplan.testing.builders import make_pod

WAITING = make_pod("p", labels={"app": "web"}, cpu="1")
Targets = Callable[[Any, Any], Any]


class ByLetter(QueueSortPlugin):
    """Sorts pods by name; the names `1`, `2`, ... become numbers, and `none` has no key."""

    name = "ByLetter"

    def sort_key(self, queued: QueuedPod) -> Any:
        name = queued.pod.name
        if name == "none":
            raise KeyError(name)
        return int(name) if name.isdecimal() else name


@dataclass
class Queued:
    pod: Pod
    timestamp: float


def queue(*names: str) -> list[Queued]:
    """Pods of these names, the first of which has been waiting longest."""
    return [Queued(make_pod(name), float(number)) for number, name in enumerate(names)]


def skips(pod: Pod, old: Any, new: Any) -> Hint:
    return Hint.SKIP


def no_answer(pod: Pod, old: Any, new: Any) -> Hint:
    return None  # type: ignore[return-value]  # as plugins without types do


def broken(pod: Pod, old: Any, new: Any) -> Hint:
    raise KeyError("zone")


def guarded(hint: HintFunction, faults: PluginFaults) -> HintFunction:
    found = guarded_hint(ByLetter(), hint, faults)
    assert found is not None
    return found


def keys_for(affected: Targets, faults: PluginFaults) -> Any:
    """The answers of the guarded targets of a hint about an event."""
    hint: HintFunction = called_for(affected)(skips)
    targets = targets_of(guarded(hint, faults))
    assert not isinstance(targets, CalledFor)
    return targets(None, None)


# Hints


@pytest.mark.parametrize(
    ("hint", "expected", "fault"),
    [
        pytest.param(skips, Hint.SKIP, "", id="its answer counts"),
        pytest.param(no_answer, Hint.QUEUE, "expected a Hint; got None", id="none: Queue"),
        pytest.param(broken, Hint.QUEUE, "broken: KeyError: 'zone'", id="it raises: Queue"),
    ],
)
def test_the_answer_of_a_hint(hint: HintFunction, expected: Hint, fault: str) -> None:
    faults = PluginFaults()

    answer = guarded(hint, faults)(WAITING, None, None)

    assert answer is expected
    assert (faults.first is None) is (fault == "")
    assert fault in str(faults.first)


def test_a_hint_of_this_package_is_asked_without_a_guard() -> None:
    assert guarded_hint(PrioritySort(), broken, PluginFaults()) is broken


@pytest.mark.parametrize("targets", [EACH_POD, EACH_SPEC])
def test_a_guarded_hint_is_called_for_the_same_pods(targets: CalledFor) -> None:
    hint = called_for(targets)(lambda pod, old, new: Hint.SKIP)

    assert targets_of(guarded(hint, PluginFaults())) is targets


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(["default/p"], id="a list"),
        pytest.param(("default/p",), id="a tuple"),
        pytest.param({"default/p"}, id="a set"),
        pytest.param(frozenset({"default/p"}), id="a frozenset"),
        pytest.param({"default/p": 1}, id="a dict"),
        pytest.param([], id="no pod"),
        pytest.param(None, id="any pod"),
    ],
)
def test_the_pods_that_an_event_may_affect_are_those_that_the_plugin_names(keys: Any) -> None:
    faults = PluginFaults()

    assert keys_for(lambda old, new: keys, faults) is keys
    assert faults.first is None


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        pytest.param("default/p", "expected keys of pods, or None; got 'default/p'", id="a text"),
        pytest.param(3, "expected keys of pods, or None; got 3", id="a number"),
        pytest.param(KeyError("zone"), "KeyError: 'zone'", id="it raises"),
    ],
)
def test_after_a_fault_an_event_may_affect_any_pod(answer: Any, fault: str) -> None:
    def affected(old: Any, new: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    faults = PluginFaults()

    assert keys_for(affected, faults) is None
    assert str(faults.first).startswith('running a queueing hint of plugin "ByLetter": ')
    assert fault in str(faults.first)


def test_targets_are_asked_about_the_objects_of_the_event() -> None:
    def affected(old: Any, new: Any) -> Any:
        return [old, new]

    hint: HintFunction = called_for(affected)(skips)
    targets = targets_of(guarded(hint, PluginFaults()))

    assert not isinstance(targets, CalledFor)
    assert targets("before", "after") == ["before", "after"]


# The order of the queue


def test_the_order_of_the_plugin_counts() -> None:
    faults = PluginFaults()

    ordered = sorted(queue("c", "a", "b"), key=guarded_sort_key(ByLetter(), faults))

    assert [queued.pod.name for queued in ordered] == ["a", "b", "c"]
    assert faults.first is None


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        pytest.param(["none", "a"], "KeyError: 'none'", id="the first has no key"),
        pytest.param(["a", "none"], "KeyError: 'none'", id="the second has no key"),
        pytest.param(["b", "1"], "TypeError: '<' not supported", id="keys of other types"),
    ],
)
def test_pods_that_cannot_be_compared_are_ordered_by_time(names: list[str], fault: str) -> None:
    faults = PluginFaults()
    key = guarded_sort_key(ByLetter(), faults)
    earlier, later = map(key, queue(*names))

    assert earlier < later
    assert not later < earlier
    assert str(faults.first).startswith('running QueueSort plugin "ByLetter": ')
    assert fault in str(faults.first)


def test_a_sort_key_of_this_package_is_used_without_a_guard() -> None:
    (queued,) = queue("a")

    assert guarded_sort_key(PrioritySort(), PluginFaults())(queued) == (0, 0.0)


# After a fault


def change_of(**fields: Any) -> tuple[Pod, Any, Any]:
    return WAITING, WAITING, WAITING.replace(**fields)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(*change_of(labels={"app": "x"}), Hint.QUEUE, id="other labels"),
        pytest.param(*change_of(annotations={"a": "b"}), Hint.QUEUE, id="other annotations"),
        pytest.param(*change_of(spec=make_pod(cpu="2").spec), Hint.QUEUE, id="another spec"),
        pytest.param(*change_of(resource_version="9"), Hint.SKIP, id="only another version"),
        pytest.param(*change_of(uid="x", labels={"app": "x"}), Hint.SKIP, id="another pod"),
        pytest.param(WAITING, None, WAITING, Hint.SKIP, id="it is new"),
        pytest.param(WAITING, WAITING, None, Hint.SKIP, id="it is gone"),
    ],
)
def test_a_pod_that_a_fault_failed_is_tried_again_when_it_changes(
    pod: Pod, old: Any, new: Any, expected: Hint
) -> None:
    assert AFTER_FAULTS.hint is not None

    assert AFTER_FAULTS.hint(pod, old, new) is expected


def test_a_pod_that_a_fault_failed_waits_for_updates_of_itself_only() -> None:
    event = AFTER_FAULTS.event

    assert (event.resource, event.action) == (UNSCHEDULABLE_POD, ActionType.Update)
