"""SchedulingGates: a gated pod does not enter the queue."""

import pytest

from bayplan.framework import SUCCESS, Status, unresolvable
from bayplan.plugins.scheduling_gates import SchedulingGates
from bayplan.testing.builders import make_pod


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param([], SUCCESS, id="no gate"),
        pytest.param(["a"], unresolvable("waiting for scheduling gates: [a]"), id="one gate"),
        pytest.param(
            ["b/x", "a"],
            unresolvable("waiting for scheduling gates: [b/x a]"),
            id="several gates in the order of the pod",
        ),
    ],
)
def test_pre_enqueue(gates: list[str], expected: Status) -> None:
    assert SchedulingGates().pre_enqueue(make_pod(gates=gates)) == expected


def test_an_empty_list_of_gates_is_no_gate() -> None:
    assert SchedulingGates().pre_enqueue(make_pod(spec={"schedulingGates": []})) == SUCCESS
