from typing import Any

import pytest

from bayplan.api.node import NodeCondition
from bayplan.framework.update_events import node_update_events, pod_update_events
from bayplan.testing.builders import make_node, make_pod


def claim(name: str | None) -> dict[str, Any]:
    entry = {"name": "gpu"} if name is None else {"name": "gpu", "resourceClaimName": name}
    return {"resourceClaimStatuses": [entry]}


def resized(cpu: str) -> dict[str, Any]:
    """The status of a pod whose container was given `cpu`."""
    amounts = {"cpu": cpu}
    given = {
        "name": "container-0",
        "resources": {"requests": amounts},
        "allocatedResources": amounts,
    }
    return {"containerStatuses": [given]}


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param({}, {}, ["Update"], id="nothing that matters: a general update"),
        pytest.param(
            {"labels": {"a": "1"}}, {"labels": {"a": "2"}}, ["UpdatePodLabel"], id="label"
        ),
        pytest.param({"cpu": "2"}, {"cpu": "1"}, ["UpdatePodScaleDown"], id="less of a resource"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, ["Update"], id="more of a resource"),
        pytest.param(
            {"cpu": "1"}, {"memory": "1Gi"}, ["UpdatePodScaleDown"], id="a request is gone"
        ),
        pytest.param(
            {"requests": {"a.com/x": 0}}, {}, ["UpdatePodScaleDown"], id="a request of zero is gone"
        ),
        pytest.param({"cpu": "100.5m"}, {"cpu": "100.4m"}, ["Update"], id="less than a thousandth"),
        pytest.param(
            {"memory": "100m"},
            {"memory": "99m"},
            ["UpdatePodScaleDown"],
            id="a thousandth of a byte",
        ),
        pytest.param(
            {"cpu": "1", "status": resized("2")},
            {"cpu": "1", "status": resized("1")},
            ["UpdatePodScaleDown"],
            id="given less, after wanting less",
        ),
        pytest.param(
            {"cpu": "2", "status": resized("2")},
            {"cpu": "1", "status": resized("2")},
            ["Update"],
            id="wants less, but still holds what it had",
        ),
        pytest.param(
            {"gates": ["a", "b"]},
            {},
            ["UpdatePodSchedulingGatesEliminated"],
            id="the last gate went",
        ),
        pytest.param({"gates": ["a", "b"]}, {"gates": ["b"]}, ["Update"], id="a gate is left"),
        pytest.param({}, {"tolerations": ["a"]}, ["UpdatePodToleration"], id="one toleration more"),
        pytest.param(
            {"tolerations": ["a"]}, {"tolerations": ["b"]}, ["Update"], id="as many tolerations"
        ),
        pytest.param(
            {},
            {"status": claim("gpu-x")},
            ["UpdatePodGeneratedResourceClaim"],
            id="a claim was generated",
        ),
        pytest.param(
            {"status": claim("gpu-x")},
            {"status": claim(None)},
            ["UpdatePodGeneratedResourceClaim"],
            id="no claim is needed after all",
        ),
        pytest.param(
            {"status": {"resourceClaimStatuses": []}}, {}, ["Update"], id="no claims, said twice"
        ),
        pytest.param(
            {},
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}},
            ["UpdatePodGeneratedResourceClaim"],
            id="a claim for extended resources",
        ),
        pytest.param(
            {"cpu": "2", "gates": ["a"]},
            {"labels": {"a": "1"}, "tolerations": ["a"], "status": claim("x")},
            [
                "UpdatePodLabel",
                "UpdatePodScaleDown",
                "UpdatePodSchedulingGatesEliminated",
                "UpdatePodToleration",
                "UpdatePodGeneratedResourceClaim",
            ],
            id="all at once, in order",
        ),
    ],
)
def test_pod_update(old: dict[str, Any], new: dict[str, Any], actions: list[str]) -> None:
    events = pod_update_events(make_pod(**old), make_pod(**new))

    assert [event.action.text for event in events] == actions
    assert {event.resource for event in events} == {"UnschedulablePod"}


def test_pod_that_has_a_node_now_is_an_assigned_one() -> None:
    (event,) = pod_update_events(make_pod(), make_pod(node_name="a", labels={"a": "1"}))

    assert str(event) == "AssignedPodUpdatePodLabel"


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param({}, {}, [], id="nothing that matters: no event"),
        pytest.param({"unschedulable": True}, {}, ["UpdateNodeTaint"], id="opened"),
        pytest.param({}, {"unschedulable": True}, [], id="cordoned: no pod benefits"),
        pytest.param(
            {"cpu": "4"}, {"cpu": "2"}, ["UpdateNodeAllocatable"], id="less room counts too"
        ),
        pytest.param({"cpu": "4"}, {"cpu": "4000m"}, [], id="the same amount, written otherwise"),
        pytest.param(
            {}, {"extended": {"a.com/x": 0}}, ["UpdateNodeAllocatable"], id="a resource, with zero"
        ),
        pytest.param({"taints": ["a:NoSchedule"]}, {}, ["UpdateNodeTaint"], id="taint"),
        pytest.param({"annotations": {"a": "1"}}, {}, ["UpdateNodeAnnotation"], id="annotation"),
        pytest.param({"features": ["A"]}, {}, ["UpdateNodeDeclaredFeature"], id="feature"),
        pytest.param(
            {"unschedulable": True, "cpu": "2", "taints": ["a:NoSchedule"]},
            {"labels": {"a": "1"}, "annotations": {"a": "1"}, "features": ["A"]},
            [
                "UpdateNodeTaint",
                "UpdateNodeAllocatable",
                "UpdateNodeLabel",
                "UpdateNodeTaint",
                "UpdateNodeAnnotation",
                "UpdateNodeDeclaredFeature",
            ],
            id="nearly all at once, in order, taints twice",
        ),
    ],
)
def test_node_update(old: dict[str, Any], new: dict[str, Any], actions: list[str]) -> None:
    events = node_update_events(make_node(**old), make_node(**new))

    assert [event.action.text for event in events] == actions
    assert {event.resource for event in events} <= {"Node"}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        pytest.param({"Ready": "False"}, {"Ready": "True"}, True, id="another status"),
        pytest.param({}, {"Ready": "True"}, True, id="a new condition"),
        pytest.param({"A": "1", "B": "2"}, {"B": "2", "A": "1"}, False, id="another order"),
    ],
)
def test_condition_of_a_node(old: dict[str, str], new: dict[str, str], changed: bool) -> None:
    before, after = (
        make_node().replace(
            conditions=tuple(
                NodeCondition(type=t, status=s, reason=str(i)) for t, s in given.items()
            )
        )
        for i, given in enumerate((old, new))
    )

    actions = [event.action.text for event in node_update_events(before, after)]

    assert actions == (["UpdateNodeCondition"] if changed else [])
