"""`plan` in a notebook: the answer, and arguments that are refused."""

from typing import Any

import pytest

from bayplan import Cluster, plan
from bayplan.errors import InputError

from .test_autoscaling import POD, POOL


def test_the_answer_has_nodes_a_bound_and_a_frame() -> None:
    found = plan(Cluster.of(POD), POOL, seeds=2, time_limit="5s")

    assert found.is_complete
    assert found.node_count == 1
    assert found.price == pytest.approx(0.2)
    assert found.bound <= found.price
    assert found.demands["seeds"] == 2
    assert found.to_frame()["type"].tolist() == ["small"]
    assert [one["kind"] for one in found.nodes()] == ["Node"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            {"seeds": 0}, "plan: seeds: expected a number from 1; got 0", id="no seeds at all"
        ),
        pytest.param(
            {"survive": "rack"},
            'plan: survive: expected node or zone; got "rack"',
            id="a loss that there is not",
        ),
        pytest.param(
            {"headroom": 1.0},
            "plan: headroom: expected a share from 0 to below 1; got 1.0",
            id="a headroom of whole nodes",
        ),
        pytest.param(
            {"keep_existing": True, "existing": True},
            "plan: expected keep_existing or existing; got both",
            id="nodes that stay and are exchanged",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(Cluster.of(POD), POOL, **arguments)

    assert str(caught.value) == message
