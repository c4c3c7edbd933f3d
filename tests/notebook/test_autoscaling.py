"""`simulate` with pools: an autoscaler in a notebook."""

from typing import Any

import pytest

from bayplan import Cluster, simulate
from bayplan.errors import InputError
from bayplan.planning import NodePool, NodeType

AMOUNTS = {"cpu": 4000, "memory": 16 << 30, "pods": 110}
POOL = NodePool("p", (NodeType("small", AMOUNTS, AMOUNTS, {"bayplan.dev/pool": "p"}, price=0.2),))
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}


@pytest.mark.parametrize("autoscaler", ["karpenter", "cluster-autoscaler"])
def test_the_report_has_nodes_and_costs(autoscaler: str) -> None:
    report = simulate(Cluster.of(POD), pools=POOL, autoscaler=autoscaler, until="1h", seed=0)

    assert report.is_complete
    assert report.scaling is not None
    assert report.scaling.autoscaler == autoscaler
    assert report.to_frame("scaled")["type"].tolist() == ["small"]
    assert "cost" in set(report.to_frame("measures")["name"])


def test_no_pools_are_refused() -> None:
    with pytest.raises(InputError, match="simulate: expected at least one pool; got none"):
        simulate(Cluster.of(POD), pools=[])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"autoscaler": "karpenter"}, "autoscaler: expected pools with it; got none"),
        ({"autoscaler_flags": ["scan-interval=5s"]}, "autoscaler_flags: expected pools with it"),
        ({"instance_types": "types.csv"}, "instance_types: expected pools with it; got none"),
        (
            {"pools": POOL, "expander": "price"},
            "expander: expected autoscaler cluster-autoscaler with it",
        ),
        ({"pools": POOL, "autoscaler": "other"}, "expected karpenter or cluster-autoscaler"),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        simulate(Cluster.of(POD), **options)
