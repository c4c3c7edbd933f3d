"""Devices that use up resources of their node: feature gate DRANodeAllocatableResources."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.pod_status import NodeAllocatableResourceClaimStatus
from bayplan.framework import Status, failure
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import (
    claiming,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.rig.scenarios import Scenario, Scripted

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

GATE = {"DRANodeAllocatableResources": True}
CORES = {"cpu": {"allocationMultiplier": "2"}}
SHARES = {"memory": {"capacityKey": "memory", "allocationMultiplier": "2"}}
FLUSH_S = 330
"""After this a pod is tried without an event: DynamicResources waits for none about other pods."""
POOL = {"memory": {"value": "4Gi", "requestPolicy": {"default": "1Gi"}}}


def device(name: str = "d0", mappings: Any = CORES, **fields: Any) -> dict[str, Any]:
    return make_device(name, fields={"nodeAllocatableResourceMappings": mappings}, **fields)


def user(
    *claims: str, name: str = "pod", container: dict[str, Any] | None = None, **fields: Any
) -> Pod:
    """A pod whose only container has the claims, and asks for one cpu."""
    entries = [{"name": f"claim-{i}"} for i in range(len(claims))]
    plain = {"name": "main", "resources": {"requests": {"cpu": "1"}, "claims": entries}}
    spec = {"containers": [plain if container is None else container], **fields.pop("spec", {})}
    return claiming(*claims, name=name, spec=spec, **fields)


def scenario(*objects: Any, gates: dict[str, bool] | None = None, **options: Any) -> Scenario:
    node = make_node("a", cpu="4", memory="4Gi")
    gates = GATE if gates is None else gates
    return Scenario(node, make_class(), *objects, feature_gates=gates, **options)


def told(
    scene: Scenario, name: str = "pod"
) -> tuple[NodeAllocatableResourceClaimStatus, ...] | None:
    return scene.pod(name).status.node_allocatable_resource_claim_statuses


def used(scene: Scenario) -> dict[str, int]:
    table = scene.scheduler.cache.table
    return table.requested.at(table.row_of["a"])


def test_a_device_uses_up_cpu_of_its_node() -> None:
    scene = scenario(make_slice("s", device(), node="a"), make_claim("c"), user("c"))

    scene.settle()

    assert scene.pod("pod").node_name == "a"
    assert told(scene) == (
        NodeAllocatableResourceClaimStatus(
            resource_claim_name="c", containers=("main",), resources={"cpu": "2"}
        ),
    )
    assert used(scene) == {"cpu": 3000}
    scene.add(make_pod("two", cpu="2"), make_pod("one", cpu="1"))
    scene.advance()
    assert [scene.pod(name).node_name for name in ("one", "two")] == ["a", ""]


def test_without_the_gate_it_does_not() -> None:
    scene = scenario(make_slice("s", device(), node="a"), make_claim("c"), user("c"), gates={})

    scene.settle()

    assert scene.pod("pod").node_name == "a"
    assert told(scene) is None
    assert used(scene) == {"cpu": 1000}


def test_a_status_counts_with_the_gate_only() -> None:
    status = {
        "nodeAllocatableResourceClaimStatuses": [
            {"resourceClaimName": "c", "resources": {"cpu": "2"}}
        ]
    }
    running = make_pod("running", cpu="1", node_name="a", status=status)

    assert used(scenario(running)) == {"cpu": 3000}
    assert used(scenario(running, gates={})) == {"cpu": 1000}


def test_a_share_counts_with_what_it_consumes_times_the_multiplier() -> None:
    wanted = make_request(capacity={"requests": {"memory": "1536Mi"}})
    offered = device(mappings=SHARES, capacity=POOL, shared=True)
    scene = scenario(
        make_slice("s", offered, node="a"), make_claim("c", wanted), make_claim("d"), user("c")
    )

    scene.settle()

    assert told(scene) == (
        NodeAllocatableResourceClaimStatus(
            resource_claim_name="c", containers=("main",), resources={"memory": "3Gi"}
        ),
    )
    scene.add(user("d", name="next"))
    scene.advance()
    assert scene.pod("next").node_name == ""
    assert "Insufficient memory" in scene.ended[-1].message


def refusal(*objects: Any, **options: Any) -> Status:
    scene = scenario(*objects, **options)
    (attempt,) = scene.run()
    assert attempt.status is not None
    return attempt.status


POD_LEVEL = {"resources": {"requests": {"cpu": "2"}}}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param(
            [
                make_slice("s", device(mappings={"cpu": {"allocationMultiplier": "4"}}), node="a"),
                user("c"),
            ],
            "Insufficient cpu",
            id="container and device need more than the node has",
        ),
        pytest.param(
            [
                make_slice(
                    "s",
                    device(mappings={"hugepages-2Mi": {"allocationMultiplier": "2Mi"}}),
                    node="a",
                ),
                user("c"),
            ],
            "Insufficient hugepages-2Mi",
            id="huge pages that the node lacks",
        ),
        pytest.param(
            [make_slice("s", device(), node="a"), user("c", container={"name": "main"})],
            "claim c: node-allocatable resource claim not referenced by any container within the pod",
            id="no container has the claim",
        ),
        pytest.param(
            [make_slice("s", device(), node="a"), user("c", spec=POD_LEVEL)],
            "pod level request for cpu is insufficient to cover the aggregated container and "
            "node-allocatable DRA requests",
            id="the pod as a whole asks for less than its parts",
        ),
        pytest.param(
            [
                make_slice("s", device(mappings=SHARES, capacity={"memory": "4Gi"}), node="a"),
                user("c"),
            ],
            "claim default/c, device d0: ConsumedCapacity is nil, but Capacity key 'memory' is set in "
            "NodeAllocatableResourceMappings for resource memory",
            id="a capacity of a device that is not shared",
        ),
    ],
)
def test_refusals(objects: list[Any], message: str) -> None:
    assert message in refusal(make_claim("c"), *objects).message


def test_pod_level_requests_cover_devices() -> None:
    enough = {"resources": {"requests": {"cpu": "3"}}}
    scene = scenario(make_slice("s", device(), node="a"), make_claim("c"), user("c", spec=enough))

    scene.settle()

    assert scene.pod("pod").node_name == "a"
    assert used(scene) == {"cpu": 3000}


def test_a_claim_is_used_by_one_pod_on_a_node() -> None:
    scene = scenario(make_slice("s", device(), node="a"), make_claim("c"), user("c"))
    scene.settle()

    scene.add(
        user(
            "c",
            name="next",
            container={"name": "main", "resources": {"claims": [{"name": "claim-0"}]}},
        )
    )
    (attempt,) = scene.run()

    assert attempt.status is not None
    assert (
        "node allocatable resource claim c is already used by another pod" in attempt.status.message
    )
    scene.cluster.delete(scene.pod("pod"))
    scene.advance(FLUSH_S)
    assert scene.pod("next").node_name == "a"


def test_removing_pods_makes_room_for_devices() -> None:
    low = make_pod("low", cpu="2", node_name="a")
    scene = scenario(
        low, make_slice("s", device(), node="a"), make_claim("c"), user("c", priority=10)
    )

    scene.advance(FLUSH_S)

    assert scene.cluster.get("Pod", "default", "low") is None
    assert scene.pod("pod").node_name == "a"


def test_a_pod_that_cannot_be_bound_loses_the_status() -> None:
    scene = scenario(
        make_slice("s", device(), node="a"),
        make_claim("c"),
        user("c"),
        plugins=[Scripted],
        profile={
            "plugins": {"bind": {"enabled": [{"name": "Scripted"}], "disabled": [{"name": "*"}]}}
        },
    )
    written = []

    def refuse(pod: Any) -> Status:
        written.append(told(scene))
        return failure("refused")

    scene.plugin(Scripted).answers = {"bind": refuse}

    scene.run()

    assert written[0] is not None
    assert told(scene) is None
    assert used(scene) == {}
