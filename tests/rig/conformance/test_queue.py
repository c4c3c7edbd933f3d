import copy
from typing import Any

import pytest

from tests.rig.conformance.cli import RUNNERS
from tests.rig.conformance.queue import is_queue_script, run_queue_script

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "p"},
    "spec": {"schedulerName": "default-scheduler", "priority": 5, "containers": [{"name": "c"}]},
    "status": {},
}


def state(**changes: Any) -> dict[str, Any]:
    """An expected state; `pod` are the fields of the one pod that differ from those of a new one."""
    pod = {
        "name": "default/p",
        "attempts": 0,
        "unschedulableCount": 0,
        "consecutiveErrorsCount": 0,
        "timestamp": 1500,
        "initialAttemptTimestamp": 1500,
        "backoffExpiration": None,
        "gatingPlugin": "",
        "unschedulablePlugins": [],
        "pendingPlugins": [],
        "wasFlushed": False,
        "version": "1",
        **changes.pop("pod", {}),
    }
    empty: dict[str, Any] = {
        name: [] for name in ("active", "backoff", "errorBackoff", "unschedulable", "inFlight")
    }
    counters = {"inFlightEvents": 0, "schedulingCycle": 0}
    return {"result": None, **empty, **counters, "nominated": {}, "pods": {"p": pod}, **changes}


FAILED = {
    "attempts": 1,
    "unschedulableCount": 1,
    "timestamp": 2100,
    "backoffExpiration": 3000,
    "unschedulablePlugins": ["Fit"],
}
SCRIPT: dict[str, Any] = {
    "id": "own",
    "theme": "basic",
    "config": {
        "podInitialBackoffMs": 1000,
        "podMaxBackoffMs": 10000,
        "podMaxInUnschedulablePodsMs": 300000,
        "startMs": 500,
        "profiles": {
            "default-scheduler": {
                "preEnqueue": ["SchedulingGates"],
                "hints": [
                    {"plugin": "Fit", "resource": "Node", "action": "Add", "hint": "Queue"},
                    {"plugin": "Fit", "resource": "Node", "action": "Delete", "hint": "Error"},
                ],
            }
        },
    },
    "initial": {},
    "steps": [
        {"at": 1500, "op": "add", "pod": POD, "expected": state(active=["p"])},
        {
            "at": 2000,
            "op": "pop",
            "expected": state(result="p", inFlight=["p"], schedulingCycle=1, pod={"attempts": 1}),
        },
        {
            "at": 2100,
            "op": "fail",
            "pod": "p",
            "unschedulable": ["Fit"],
            "node": "n",
            "expected": state(
                unschedulable=["p"], schedulingCycle=1, nominated={"n": ["p"]}, pod=FAILED
            ),
        },
        {
            "at": 2200,
            "op": "event",
            "resource": "Node",
            "action": "Add",
            "hints": {"Fit": "Skip"},
            "expected": state(
                unschedulable=["p"],
                schedulingCycle=1,
                nominated={"n": ["p"]},
                pod=FAILED,
            ),
        },
        {
            "at": 2300,
            "op": "event",
            "resource": "Node",
            "action": "Delete",
            "expected": state(
                backoff=["p"],
                schedulingCycle=1,
                nominated={"n": ["p"]},
                pod=FAILED,
            ),
        },
        {
            "at": 4000,
            "op": "flushBackoff",
            "expected": state(
                active=["p"],
                schedulingCycle=1,
                nominated={"n": ["p"]},
                pod=FAILED,
            ),
        },
    ],
}


def test_a_correct_script_agrees_at_every_step() -> None:
    found = list(run_queue_script(SCRIPT, diagnose=True))

    assert [name for name, _ in found][:2] == ["step 1 (add)", "step 2 (pop)"]
    assert [disagreements for _, disagreements in found] == [[]] * 6


@pytest.mark.parametrize(
    ("step", "field", "value"),
    [
        pytest.param(0, "active", [], id="a place"),
        pytest.param(1, "result", None, id="what was popped"),
        pytest.param(2, "nominated", {}, id="a nomination"),
    ],
)
def test_a_difference_is_reported(step: int, field: str, value: Any) -> None:
    script = copy.deepcopy(SCRIPT)
    script["steps"][step]["expected"][field] = value

    found = list(run_queue_script(script))

    assert [bool(disagreements) for _, disagreements in found].count(True) == 1
    assert [d.field for d in found[step][1]] == [field]


def test_a_difference_of_a_pod_is_reported() -> None:
    script = copy.deepcopy(SCRIPT)
    script["steps"][2]["expected"]["pods"]["p"]["backoffExpiration"] = 4000

    (disagreement,) = list(run_queue_script(script))[2][1]

    assert str(disagreement) == (
        "own: step 3 (fail): pods.p.backoffExpiration: ours 3000, theirs 4000"
    )


def test_the_command_runs_scripts() -> None:
    assert is_queue_script(SCRIPT)
    (run,) = [run for is_kind, run in RUNNERS if is_kind(SCRIPT)]
    assert list(run(SCRIPT)) == [[]] * 6
