"""Extended resources that devices stand in for: in DynamicResources, and in NodeResourcesFit."""

from typing import Any

import pytest

from bayplan.amounts import ShareKind
from bayplan.amounts.domain_rules import NO_DOMAIN_RULES
from bayplan.api.dra import EXTENDED_RESOURCE_CLAIM
from bayplan.api.pod import Pod
from bayplan.errors import ApiError
from bayplan.framework import SKIP, SUCCESS, Code, CycleState
from bayplan.framework.devices import DeviceClasses
from bayplan.framework.diagnosis import Diagnosis
from bayplan.plugins.dynamic_resources.extended import requests_for
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit, Strategy
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.conformance import check_conformance, check_rows_agree
from bayplan.testing.devices import (
    claiming,
    make_claim,
    make_class,
    make_device,
    make_slice,
)
from tests.rig.device_world import DeviceWorld, devices_of
from tests.rig.objects import stored

GPU = "example.com/gpu"
OTHER = "example.com/other"
IMPLIED = "deviceclass.resource.kubernetes.io/gpu"


def world(plugin: Any = None, *objects: Any) -> DeviceWorld:
    """`a` has two devices, `b` has the resource itself, `c` has neither."""
    return DeviceWorld(
        plugin or DynamicResources(),
        make_node("a"),
        make_node("b", extended={GPU: 2}),
        make_node("c"),
        make_class("gpu", resource=GPU),
        make_slice("s", "d0", "d1", node="a"),
        *objects,
    )


def extended_claim(made: DeviceWorld) -> Any:
    (claim,) = (
        c for c in made.cluster.list("ResourceClaim") if EXTENDED_RESOURCE_CLAIM in c.annotations
    )
    return claim


CANNOT, UNFIT = "cannot allocate all claims", "cannot fit resource"


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({GPU: 1}, {"a": "", "b": "", "c": CANNOT}, id="by the name it was given"),
        pytest.param({IMPLIED: 1}, {"a": "", "b": CANNOT, "c": CANNOT}, id="by its class"),
        pytest.param({GPU: 3}, {"a": CANNOT, "b": "", "c": CANNOT}, id="too many"),
        pytest.param(
            {GPU: 1, OTHER: 1}, {"a": UNFIT, "b": UNFIT, "c": UNFIT}, id="with one that no node has"
        ),
    ],
)
def test_filter(requests: dict[str, int], expected: dict[str, str]) -> None:
    assert world().statuses(make_pod(requests=requests)) == expected


def test_devices_are_claimed_when_the_pod_is_bound() -> None:
    made = world()
    pod = made.add(make_pod(requests={GPU: 2}))
    state = made.reserve(pod)
    assert made.statuses(make_pod("other", requests={GPU: 1}))["a"] == CANNOT

    assert made.pre_bind(state, pod) == SUCCESS

    claim = extended_claim(made)
    assert claim.name.startswith("pod-extended-resources-")
    assert claim.is_made_for(pod)
    assert claim.is_reserved_for(pod)
    assert devices_of(claim) == ["container-0-request-0=a/d0", "container-0-request-0=a/d1"]
    said = stored(made.cluster, Pod, "pod").status.extended_resource_claim_status
    assert said is not None
    assert said.resource_claim_name == claim.name
    (mapping,) = said.request_mappings or ()
    assert mapping.container_name == "container-0"
    assert (mapping.resource_name, mapping.request_name) == (GPU, "container-0-request-0")
    assert made.plugin.handle.metrics.claim_creates.read() == {("success",): 1}


def test_a_claim_that_cannot_be_made_is_counted() -> None:
    made = world()
    pod = made.add(make_pod(requests={GPU: 1}))
    state = made.reserve(pod)
    made.failures.append(ApiError("the server is not there"))

    assert made.pre_bind(state, pod).code is Code.Error

    assert made.plugin.handle.metrics.claim_creates.read() == {("failure",): 1}


def test_a_node_that_has_the_resource_itself_needs_no_claim() -> None:
    made = world()
    pod = made.add(make_pod(requests={GPU: 1}))
    state = made.reserve(pod, "b")

    assert made.pre_bind(state, pod, "b") == SUCCESS
    assert not list(made.cluster.list("ResourceClaim"))


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(make_claim("shared", devices=["b/e0"]), id="allocated"),
        pytest.param(make_claim("shared"), id="to be allocated"),
    ],
)
def test_a_node_that_has_the_resource_itself_fails_a_pod_with_claims(claim: Any) -> None:
    """As in Kubernetes: for a pod with a claim, a second one without requests and without a status is created."""
    made = world(None, claim, make_slice("t", "e0", node="b"))
    pod = made.add(claiming("shared", requests={GPU: 1}))
    state = made.reserve(pod, "b")

    status = made.pre_bind(state, pod, "b")

    text = "nil or empty request mappings, no update of pod default/pod ExtendedResourceClaimStatus"
    assert (status.code, status.message) == (Code.Error, text)
    made.unreserve(state, pod, "b")
    assert [found.name for found in made.cluster.list("ResourceClaim")] == ["shared"]


def test_the_claim_goes_when_the_pod_is_not_bound() -> None:
    made = world()
    pod = made.add(make_pod(requests={GPU: 1}))
    state = made.reserve(pod)
    assert made.pre_bind(state, pod) == SUCCESS

    made.unreserve(state, pod)

    assert not list(made.cluster.list("ResourceClaim"))
    assert made.statuses(make_pod("other", requests={GPU: 2}))["a"] == ""


def test_the_claim_of_an_earlier_attempt_is_removed_first() -> None:
    made = world()
    pod = made.add(make_pod(requests={GPU: 1}))
    assert made.pre_bind(made.reserve(pod), pod) == SUCCESS
    state, verdict = made.filter(pod)
    assert verdict.status(0).message == "cannot schedule extended resource claim"

    _, status = made.plugin.post_filter(state, pod, Diagnosis(made.table))

    assert status.message == "deletion of ResourceClaim completed"
    assert made.statuses(pod)["a"] == ""


def containers(*amounts: int | str, kind: str = "containers") -> list[dict[str, Any]]:
    """Containers with these requests; `s` before a number makes it a sidecar."""
    made = []
    for i, amount in enumerate(amounts):
        number = str(amount).removeprefix("s")
        container: dict[str, Any] = {
            "name": f"{kind[0]}{i}",
            "resources": {"requests": {GPU: number, "cpu": "1"}},
        }
        if str(amount).startswith("s"):
            container["restartPolicy"] = "Always"
        made.append(container)
    return made


@pytest.mark.parametrize(
    ("init", "main", "requests", "uses"),
    [
        pytest.param([], [1, 2], {"c0-1": 1, "c1-1": 2}, {"c0": 1, "c1": 1}, id="two containers"),
        pytest.param([1], [2], {"c1-1": 2}, {"i0": 1, "c0": 1}, id="an init container uses theirs"),
        pytest.param([3], [2], {"c0-1": 1, "c1-1": 2}, {"i0": 2, "c0": 1}, id="and needs one more"),
        pytest.param(
            [3, 5], [2], {"c1-1": 3, "c2-1": 2}, {"i0": 2, "i1": 2, "c0": 1}, id="the most counts"
        ),
        pytest.param(
            ["s1", 2], [1], {"c0-1": 1, "c1-1": 1, "c2-1": 1}, {"i0": 1, "i1": 2, "c0": 1},
            id="what a sidecar has is not for those after it",
        ),
        pytest.param([], [0], {}, {}, id="none"),
    ],
)  # fmt: skip
def test_requests_for_containers(
    init: list[Any], main: list[Any], requests: dict[str, int], uses: dict[str, int]
) -> None:
    classes = DeviceClasses()
    classes.set([make_class("gpu", resource=GPU)])
    spec = {"initContainers": containers(*init, kind="init"), "containers": containers(*main)}

    found = requests_for(make_pod(spec=spec).spec, [GPU], classes)

    counts = {
        r.name.replace("container-", "c").replace("-request-", "-"): r.exactly.count
        for r in found.devices.requests or ()
        if r.exactly is not None
    }
    assert counts == requests
    used = [mapping.container_name for mapping in found.mappings]
    assert {name: used.count(name) for name in used} == uses


def test_only_a_pod_that_may_be_given_devices_is_judged_and_committed_for() -> None:
    made, pod = world(), make_pod(requests={GPU: 1})

    assert made.plugin.row_groups(pod, made.table) is None
    assert made.plugin.row_groups(make_pod(cpu="1"), made.table) == NO_DOMAIN_RULES
    assert made.plugin.settled(pod.spec).commits
    assert not made.plugin.settled(make_pod().spec).commits


def test_pre_filter_skips_a_pod_once_no_class_stands_for_what_it_asks_for() -> None:
    made, pod = world(), make_pod(requests={GPU: 1})
    assert made.plugin.pre_filter(CycleState(), pod, made.table) == SUCCESS

    made.cluster.delete(make_class("gpu"))

    assert made.plugin.pre_filter(CycleState(), pod, made.table) == SKIP


# NodeResourcesFit


@pytest.mark.parametrize(
    ("requests", "fits"),
    [
        pytest.param({GPU: 1}, [True, True, True], id="a node without leaves it to devices"),
        pytest.param({GPU: 3}, [True, False, True], id="a node with too few does not"),
        pytest.param({OTHER: 1}, [False, False, False], id="no class stands for it"),
        pytest.param({IMPLIED: 1}, [True, True, True], id="every class stands for itself"),
    ],
)
def test_fit_leaves_resources_to_devices(requests: dict[str, int], fits: list[bool]) -> None:
    made, pod = world(NodeResourcesFit()), make_pod(requests=requests)
    made.plugin.pre_filter(CycleState(), pod, made.table)

    verdict = made.plugin.filter_rows(CycleState(), pod, made.table, ALL)

    assert verdict.feasible.tolist() == fits
    check_rows_agree(made.plugin, pod, made.table)


def test_fit_asks_anew_when_a_class_comes_or_goes() -> None:
    made, pod = world(NodeResourcesFit()), make_pod(requests={GPU: 1})
    before = made.plugin.cluster_key(made.table)

    made.cluster.delete(make_class("gpu"))

    assert made.plugin.cluster_key(made.table) != before
    verdict = made.plugin.filter_rows(CycleState(), pod, made.table, ALL)
    assert verdict.feasible.tolist() == [False, True, False]


def test_fit_scores_the_devices_that_are_left() -> None:
    in_use = make_claim("other", devices=["a/d0"])
    made = world(NodeResourcesFit(Strategy(ShareKind.LEAST, {GPU: 1})), in_use)
    pod = make_pod(requests={GPU: 1})
    rules = made.plugin.amount_rules(pod)
    assert rules.scores_by_more, "what is in use of devices is in no row"
    assert rules.score is None

    scores = made.plugin.score_rows(CycleState(), pod, made.table, ALL)

    # With the pod, none of the two devices of `a` is left, and one of the two of `b`; `c` does not count.
    assert scores.tolist() == [0, 50, 0]
    assert [made.plugin.score_node(CycleState(), pod, n) for n in made.table.nodes_at(ALL)] == [
        0,
        50,
        0,
    ]
    made.cluster.delete(in_use)
    assert made.plugin.score_rows(CycleState(), pod, made.table, ALL).tolist() == [50, 50, 0]


def test_fit_scores_by_a_rule_what_no_class_stands_for() -> None:
    made = world(NodeResourcesFit(Strategy(ShareKind.LEAST, {GPU: 1})))
    pod = make_pod(requests={GPU: 1})

    made.cluster.delete(make_class("gpu"))

    rules = made.plugin.amount_rules(pod)
    assert rules.score is not None
    assert not rules.scores_by_more


def test_conformance() -> None:
    made = world(None, make_slice("t", make_device("e0"), node="c"))
    objects = [obj for kind in made.cluster.kinds() for obj in made.cluster.list(kind)]
    pods = [make_pod(requests={GPU: 1}), make_pod(requests={GPU: 3}), make_pod()]

    check_conformance(NodeResourcesFit, pods, made.table, objects=objects)
    check_conformance(DynamicResources, pods, made.table, objects=objects)
