"""Tests of constraints on lists of values, as the allocator of v1.37 has them."""

from __future__ import annotations

import pytest

from bayplan import Cluster, simulate

from .test_dynamic_resources_twice import cluster

LISTS = {"DRAListTypeAttributes": True}
ATTRIBUTE = "d.example.com/m"


def is_placed(values: list[list[str]], count: int, constraint: str) -> bool:
    """Whether a pod gets so many devices of those with these values."""
    node, device_class, pool, claim, pod = cluster(0)
    pool["spec"]["devices"] = [
        {"name": f"dev-{i}", "attributes": {ATTRIBUTE: {"strings": own}}}
        for i, own in enumerate(values)
    ]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}
    rule = {"requests": ["r"], constraint: ATTRIBUTE}
    claim["spec"]["devices"] = {"requests": [request], "constraints": [rule]}
    pod["spec"]["resourceClaims"] = pod["spec"]["resourceClaims"][:1]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "x"}]
    objects = Cluster.of(node, device_class, pool, claim, pod)
    (result,) = simulate(objects, kubernetes_version="1.37", feature_gates=LISTS).pods
    return result.is_placed


@pytest.mark.parametrize(
    ("values", "count", "constraint", "expected"),
    [
        pytest.param(
            [["x"], ["y"], ["x"]], 3, "distinctAttribute", False, id="the first has the value"
        ),
        pytest.param([["x"], ["y"], ["z"]], 3, "distinctAttribute", True, id="distinct"),
        pytest.param(
            [["a", "b"], ["b"], ["a"], ["a"]],
            3,
            "matchAttribute",
            True,
            id="values of a device that is given back count again",
        ),
        pytest.param(
            [["a", "b"], ["b", "c"], ["c", "a"]], 3, "matchAttribute", False, id="in pairs only"
        ),
    ],
)
def test_lists(values: list[list[str]], count: int, constraint: str, expected: bool) -> None:
    assert is_placed(values, count, constraint) is expected
