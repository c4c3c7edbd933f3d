"""Pending pods grouped by workload and reason."""

from typing import Any

import pytest

from bayplan.api.meta import OwnerReference
from bayplan.api.text.refusal_message import refusals_of
from bayplan.api.workloads import workload_of
from bayplan.sim import Simulation
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import claiming


def owned(name: str, kind: str, owner: str, **options: Any) -> Any:
    reference = OwnerReference(
        api_version="apps/v1", kind=kind, name=owner, uid=owner, controller=True
    )
    return make_pod(name, **options).replace(owner_references=(reference,))


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        pytest.param(make_pod("p"), ("Pod", "p"), id="a pod without an owner"),
        pytest.param(
            owned("web-abc-1", "ReplicaSet", "web-abc", labels={"pod-template-hash": "abc"}),
            ("Deployment", "web"),
            id="a pod of a Deployment",
        ),
        pytest.param(
            owned("web-abc-1", "ReplicaSet", "web-abc"),
            ("ReplicaSet", "web-abc"),
            id="a pod of a ReplicaSet without a Deployment",
        ),
        pytest.param(owned("db-0", "StatefulSet", "db"), ("StatefulSet", "db"), id="another owner"),
    ],
)
def test_the_workload_of_a_pod(pod: Any, workload: tuple[str, str]) -> None:
    assert workload_of(pod) == workload


@pytest.mark.parametrize(
    ("message", "refusals"),
    [
        pytest.param(
            "0/60 nodes are available: 2 node(s) were unschedulable, 52 Insufficient cpu. "
            "preemption: 0/60 nodes are available: 8 Preemption is not helpful for scheduling.",
            {"Insufficient cpu": 52, "node(s) were unschedulable": 2},
            id="without what preemption says",
        ),
        pytest.param(
            "0/3 nodes are available: 3 no licence, ask sales.",
            {"no licence, ask sales": 3},
            id="a reason with a comma",
        ),
        pytest.param("0/3 nodes are available: who cares.", {}, id="no numbers"),
        pytest.param("waits on Permit: Gang", {}, id="another message"),
    ],
)
def test_the_reasons_in_a_message(message: str, refusals: dict[str, int]) -> None:
    assert refusals_of(message) == refusals
    assert list(refusals_of(message)) == list(refusals), "most nodes first"


def test_pods_are_grouped_by_workload_and_reason() -> None:
    running = [owned(f"web-{i}", "StatefulSet", "web", node_name="a") for i in range(3)]
    waiting = [owned(f"web-{i}", "StatefulSet", "web", cpu="9") for i in range(3, 5)]
    other = owned("web-5", "StatefulSet", "web", memory="900Gi")
    bare = [make_pod("x", cpu="9"), make_pod("y", cpu="9")]
    report = Simulation([make_node("a", cpu="4"), *running, *bare, *waiting, other]).run()

    groups = {
        (g.workload, *g.refusals): (len(g.pods), g.waiting, g.of) for g in report.pending_groups
    }

    assert groups == {
        ("default/x", "Insufficient cpu"): (2, 2, 2),
        ("default/web", "Insufficient cpu"): (2, 3, 6),
        ("default/web", "Insufficient memory"): (1, 3, 6),
    }


def test_pods_without_an_owner_are_grouped_by_devices() -> None:
    gpu = "example.com/gpu"
    pods = [make_pod(f"{n}-{i}", requests={gpu: n}) for n in (1, 2) for i in range(2)]
    report = Simulation([make_node("a"), *pods]).run()

    groups = [(group.workload, len(group.pods), group.devices) for group in report.pending_groups]

    assert groups == [("default/1-0", 2, {gpu: 1}), ("default/2-0", 2, {gpu: 2})]


def test_nothing_is_grouped_when_every_pod_has_a_node() -> None:
    report = Simulation([make_node("a"), make_pod("p")]).run()

    assert (report.pending_groups, report.sizes) == ([], {})


def test_a_message_with_the_name_of_its_pod_does_not_part_a_workload() -> None:
    owners = owned("web-0", "StatefulSet", "web").owner_references
    waiting = [
        claiming(name=f"web-{i}", template="absent").replace(owner_references=owners)
        for i in range(2)
    ]

    (group,) = Simulation([make_node("a"), *waiting]).run().pending_groups

    assert group.pods == ["default/web-0", "default/web-1"]
    assert group.message == 'pod "default/web-1": ResourceClaim not created yet'
