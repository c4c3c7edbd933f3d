"""Refusal messages: the reasons in them, and which have the same."""

import pytest

from bayplan.api.text.refusal_message import is_same_refusal, refusals_of

UNBOUND = "0/15 nodes are available: pod has unbound immediate PersistentVolumeClaims."
CPU = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."


@pytest.mark.parametrize(
    ("message", "first_part", "is_same"),
    [
        pytest.param(CPU, CPU, True, id="equal"),
        pytest.param(f"{CPU} preemption: 0/3 nodes.", CPU, True, id="with preemption"),
        pytest.param(CPU.replace("2", "1"), CPU, False, id="other numbers"),
        pytest.param(UNBOUND, UNBOUND, True, id="all nodes at once"),
        pytest.param(f"{UNBOUND} not found", UNBOUND, True, id="a claims plugin was not reached"),
        pytest.param(
            f"{UNBOUND} no new claims to deallocate, preemption: 0/15 nodes are available: "
            "15 Preemption is not helpful for scheduling.",
            UNBOUND,
            True,
            id="two plugins of PostFilter",
        ),
        pytest.param(CPU, UNBOUND, False, id="nodes refused, not all at once"),
        pytest.param(UNBOUND, CPU, False, id="all at once, not nodes"),
        pytest.param(UNBOUND.replace("unbound", "lost"), UNBOUND, False, id="another reason"),
    ],
)
def test_the_part_of_post_filter_does_not_count(
    message: str, first_part: str, is_same: bool
) -> None:
    assert is_same_refusal(message, first_part) is is_same


def test_reasons_have_their_numbers_of_nodes() -> None:
    assert refusals_of(CPU) == {"Insufficient cpu": 2, "node(s) were unschedulable": 1}
    assert refusals_of(UNBOUND) == {}
