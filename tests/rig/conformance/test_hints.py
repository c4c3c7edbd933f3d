from typing import Any

import pytest

from tests.rig.conformance.hints import is_event_case, run_event_case

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "p"},
    "spec": {"containers": []},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
ADDED = {"resource": "Node", "action": "Add"}
TAINTS = {"resource": "Node", "action": "Add|UpdateNodeTaint", "hasFunction": True}


def events(*registered: dict[str, str]) -> dict[str, Any]:
    declared = [{**ADDED, "hasFunction": False}]
    expected = {"declared": declared, "registered": list(registered)}
    return {"id": "c", "kind": "events", "plugin": "NodeName", "expected": expected}


def hint(new: Any, outcome: str, **answer: str) -> dict[str, Any]:
    case = {"id": "c", "kind": "hint", "plugin": "TaintToleration", "event": ADDED, "pod": POD}
    return {**case, "new": new, "expected": {"outcome": outcome, "hints": [{**TAINTS, **answer}]}}


def change(new: dict[str, Any], *actions: str) -> dict[str, Any]:
    made = [{"resource": new["kind"], "action": action} for action in actions]
    return {"id": "c", "kind": "change", "old": NODE, "new": new, "expected": {"events": made}}


LABELLED = {**NODE, "metadata": {"name": "n", "labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("case", "fields"),
    [
        pytest.param(
            events({"resource": "Node", "action": "UpdateNodeTaint"}, ADDED), [], id="events agree"
        ),
        pytest.param(events(ADDED), ["registered"], id="a registration too many"),
        pytest.param(hint(NODE, "Queue", hint="Queue"), [], id="hint agrees"),
        pytest.param(hint(NODE, "Skip", hint="Skip"), ["outcome", "hints"], id="hint says Queue"),
        pytest.param(
            hint(CONFIG_MAP, "Queue", hint="Queue", error="expected *v1.Node"),
            [],
            id="error agrees",
        ),
        pytest.param(hint(CONFIG_MAP, "Queue", hint="Queue"), ["hints"], id="an unexpected error"),
        pytest.param(change(LABELLED, "UpdateNodeLabel"), [], id="change agrees"),
        pytest.param(change(LABELLED), ["events"], id="an event too many"),
    ],
)
def test_disagreements_are_named_by_field(case: dict[str, Any], fields: list[str]) -> None:
    assert is_event_case(case)
    assert [found.field for found in run_event_case(case)] == fields


def test_other_kinds_of_cases_are_ignored() -> None:
    assert not is_event_case({"id": "c", "objects": [], "pods": []})
