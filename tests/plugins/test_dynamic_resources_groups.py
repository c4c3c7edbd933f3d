"""DynamicResources and pod groups: allocations that members share before they are written, and claims of the group."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.api.dra import ResourceClaim
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.resource_claims import ClaimController
from bayplan.errors import ApiError
from bayplan.framework import SKIP, Code, CycleState
from bayplan.framework.devices import Devices
from bayplan.plugins.dynamic_resources.claim_state import GROUP_DONE, ClaimState, Giving
from bayplan.plugins.dynamic_resources.claim_writes import ClaimBinder
from bayplan.plugins.dynamic_resources.plugin import STATE, DynamicResources
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import claiming, make_claim, make_class, make_slice, make_template
from tests.rig.device_world import DeviceWorld
from tests.rig.groups import GROUP_GATES, group_scenario, make_pod_group
from tests.rig.scenarios import Scenario

CLAIMS = {**GROUP_GATES, "DRAWorkloadResourceClaims": True}
MEMBER = {"schedulingGroup": {"podGroupName": "g"}}
SHARING = {"GangScheduling": {"sharePendingAllocations": True}}


def member(name: str, *claims: str, **fields: Any) -> Any:
    return claiming(*claims, name=name, spec=MEMBER, **fields)


def users(scenario: Scenario, name: str = "c") -> list[str]:
    claim = scenario.cluster.get("ResourceClaim", "default", name)
    assert isinstance(claim, ResourceClaim)
    return [f"{user.resource}/{user.name}" for user in claim.status.reserved_for or ()]


def nodes_of(scenario: Scenario, *names: str) -> list[str]:
    return [scenario.pod(name).node_name for name in names]


def run(scenario: Scenario, cycles: int = 20) -> None:
    """Some cycles: a group that does not fit is tried again and again."""
    for _ in range(cycles):
        if scenario.scheduler.schedule_one() is None:
            scenario.clock.advance(1)
            scenario.scheduler.run_timers()


def with_controller(scenario: Scenario) -> ClaimController:
    assert isinstance(scenario.cluster, MemoryCluster)
    controller = ClaimController(scenario.cluster)
    scenario.cluster.watch(controller)
    controller.run()
    return controller


# Pending allocations


@pytest.mark.parametrize("min_count", [pytest.param(2, id="gang"), pytest.param(None, id="basic")])
def test_members_share_a_claim_that_is_not_written_yet(min_count: int | None) -> None:
    slice_of_all = make_slice("s", "d0")
    scenario = group_scenario(
        make_node("a"), make_class(), slice_of_all, make_claim("c"), make_pod_group("g", min_count)
    )
    scenario.add(member("p", "c"), member("q", "c"))

    run(scenario)

    assert nodes_of(scenario, "p", "q") == ["a", "a"]
    assert sorted(users(scenario)) == ["pods/p", "pods/q"]


def test_the_allocation_of_one_member_is_no_longer_pending_when_all_have_let_go_of_it() -> None:
    world = DeviceWorld(DynamicResources(), make_node("a"), make_class(), make_slice("s", "d0"))
    world.add(make_claim("c"))
    pods, group = [world.add(member("p", "c")), world.add(member("q", "c"))], CycleState()
    claims = Devices.of(world.plugin.handle).claims
    states = []
    for pod in pods:
        state = CycleState()
        state.group = group
        assert world.plugin.pre_filter(state, pod, world.table).is_success
        assert world.plugin.reserve(state, pod.with_node("a"), "a").is_success
        states.append(state)

    world.unreserve(states[1], pods[1])
    assert claims.pending("claim/c") is not None
    world.unreserve(states[0], pods[0])
    assert claims.pending("claim/c") is None


def test_a_pod_outside_of_the_cycle_waits_for_a_pending_allocation() -> None:
    world = DeviceWorld(DynamicResources(), make_node("a"), make_class(), make_slice("s", "d0"))
    world.add(make_claim("c"))
    world.reserve(world.add(member("p", "c")))

    _, status = world.pre_filter(world.add(member("q", "c")))

    assert status.message == "resource claim default/c is in the process of being allocated"


def test_a_member_gets_its_own_devices_beside_shared_ones() -> None:
    scenario = group_scenario(
        make_node("a"),
        make_class(),
        make_slice("s", "d0", "d1", "d2"),
        *(make_claim(name) for name in ("shared", "mine", "yours")),
        make_pod_group("g", 2),
    )
    scenario.add(member("p", "shared", "mine"), member("q", "shared", "yours"))

    run(scenario)

    given = [
        scenario.cluster.get("ResourceClaim", "default", n) for n in ("shared", "mine", "yours")
    ]
    devices = [result.device for claim in given for result in claim.allocation.devices.results]
    assert sorted(devices) == ["d0", "d1", "d2"]


@pytest.mark.parametrize(
    ("args", "first", "failed"),
    [
        pytest.param({}, ["a", "b"], True, id="as kube-scheduler v1.36 does it"),
        pytest.param(SHARING, ["a", "a"], False, id="with sharePendingAllocations"),
    ],
)
def test_nodes_that_do_not_reach_pending_devices(
    args: dict[str, Any], first: list[str], failed: bool
) -> None:
    """The device is on node `a`; `b` is emptier for the second member."""
    scenario = group_scenario(
        make_node("a"),
        make_node("b"),
        make_class(),
        make_slice("s", "d0", node="a"),
        make_claim("c"),
        make_pod_group("g", 2),
        args=args,
    )
    scenario.add(member("p", "c"), member("q", "c"))

    scenario.scheduler.schedule_one()
    group = scenario.ended[0].group
    assert group is not None
    messages = [event.note for name in ("p", "q") for event in scenario.events_of(name)]
    run(scenario)

    assert [trial.node_name for trial in group.result.members] == first
    assert any("got allocated elsewhere in the meantime" in text for text in messages) is failed
    assert nodes_of(scenario, "p", "q") == ["a", "a"]


# Claims of the group


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param(CLAIMS, ["podgroups/g"], id="on"),
        pytest.param(GROUP_GATES, ["pods/p", "pods/q"], id="off"),
    ],
)
def test_the_claim_of_a_group_is_reserved_for_the_group(
    gates: dict[str, bool], expected: list[str]
) -> None:
    scenario = group_scenario(
        make_node("a"),
        make_class(),
        make_slice("s", "d0"),
        make_claim("c"),
        make_pod_group("g", 2, claims={"claim-0": "c"}),
        gates=gates,
    )
    scenario.add(member("p", "c"), member("q", "c"))

    run(scenario)

    assert nodes_of(scenario, "p", "q") == ["a", "a"]
    assert sorted(users(scenario)) == expected


def test_an_entry_that_the_group_does_not_have_is_reserved_for_the_pod() -> None:
    scenario = group_scenario(
        make_node("a"),
        make_class(),
        make_slice("s", "d0"),
        make_claim("c"),
        make_pod_group("g", 1, claims={"other": "c"}),
        gates=CLAIMS,
    )
    scenario.add(member("p", "c"))

    run(scenario)

    assert users(scenario) == ["pods/p"]


def test_claims_of_groups_are_made_from_templates_and_freed_with_the_group() -> None:
    group = make_pod_group("g", 2, templates={"own": "t"})
    scenario = group_scenario(
        make_node("a"), make_class(), make_slice("s", "d0"), make_template("t"), group, gates=CLAIMS
    )
    controller = with_controller(scenario)
    scenario.add(member("p", template="t"), member("q", template="t"))
    controller.run()

    run(scenario)
    (claim,) = scenario.cluster.list("ResourceClaim")
    assert claim.name.startswith("g-own-")
    assert nodes_of(scenario, "p", "q") == ["a", "a"]
    assert users(scenario, claim.name) == ["podgroups/g"]

    for name in ("p", "q"):
        scenario.cluster.delete(scenario.pod(name))
    controller.run()
    assert users(scenario, claim.name) == ["podgroups/g"]

    scenario.cluster.delete(scenario.cluster.get("PodGroup", "default", "g"))
    controller.run()
    assert list(scenario.cluster.list("ResourceClaim")) == []


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        pytest.param(CLAIMS, "neither Pod nor PodGroup g is the owner", id="on"),
        pytest.param(GROUP_GATES, "Pod is not owner", id="off"),
    ],
)
def test_the_claim_of_another_group_is_not_used(gates: dict[str, bool], message: str) -> None:
    owner = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "controller": True}
    claim = make_claim(
        "c", metadata={"ownerReferences": [{**owner, "name": "other", "uid": "group/other"}]}
    )
    scenario = group_scenario(
        make_node("a"), make_class(), make_slice("s", "d0"), claim, make_pod_group("g"), gates=gates
    )
    status = {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "c"}]}
    scenario.add(member("p", template="t", status=status))

    said = scenario.plugin(DynamicResources).pre_enqueue(scenario.pod("p"))

    assert said.message == f"ResourceClaim default/c was not created for Pod default/p ({message})"


def test_a_group_that_is_missing_refuses_its_members_also_those_without_claims() -> None:
    world = DeviceWorld(DynamicResources(), make_node("a"))
    pod = member("p")
    assert world.pre_filter(pod)[1] == SKIP

    world.plugin._has_group_claims = True
    _, status = world.pre_filter(pod)

    assert status.code is Code.UnschedulableAndUnresolvable
    assert status.message == 'podgroup.scheduling.k8s.io "g" not found'


WRONG_NODE_STATUS = {
    "reservedFor": [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "group/g"}
    ]
}
WRONG_NODE = make_claim("c", devices=["s/d0"], node="elsewhere", status=WRONG_NODE_STATUS)


@pytest.mark.parametrize(
    ("gates", "others", "expected"),
    [
        pytest.param(CLAIMS, [], [], id="released when no member has a node"),
        pytest.param(
            CLAIMS,
            [claiming(name="q", spec=MEMBER, priority=10)],
            [],
            id="released when a member is on trial",
        ),
        pytest.param(GROUP_GATES, [], ["podgroups/g"], id="kept with the gate off"),
        pytest.param(
            CLAIMS,
            [claiming(name="q", spec=MEMBER).with_node("a")],
            ["podgroups/g"],
            id="kept when a member has a node",
        ),
    ],
)
def test_the_claim_of_a_group_that_fits_nowhere(
    gates: dict[str, bool], others: list[Any], expected: list[str]
) -> None:
    scenario = group_scenario(
        make_node("a"),
        make_class(),
        make_slice("s", "d0"),
        WRONG_NODE,
        make_pod_group("g", claims={"claim-0": "c"}),
        *others,
        gates=gates,
    )
    scenario.add(member("p", "c"))

    scenario.scheduler.schedule_one()

    assert users(scenario) == expected
    (attempt,) = [attempt for attempt in scenario.ended if attempt.pod.name == "p"]
    assert attempt.status is not None
    released = "ResourceClaim unreserved for PodGroup" in attempt.status.message
    assert released is (not expected)


# Claims that a group gives back


def in_the_way(name: str, *users: Any) -> ResourceClaim:
    """A claim with a device that no node can use."""
    return make_claim(name, devices=[f"s/{name}"], node="elsewhere", users=users)


def group_claim(name: str) -> ResourceClaim:
    """A claim with such a device, whose status reserves it for the group."""
    return make_claim(name, devices=[f"s/{name}"], node="elsewhere", status=WRONG_NODE_STATUS)


def giving_world(*objects: Any) -> tuple[DeviceWorld, Giving]:
    """A world with the objects, and what deallocates claims there."""
    world = DeviceWorld(DynamicResources(), make_node("a"), make_class(), *objects)
    handle = world.plugin.handle
    binder = ClaimBinder(handle, Devices.of(handle), 600, has_group_claims=True)
    return world, Giving(handle, binder)


def known_of(world: DeviceWorld, *pods: Any) -> dict[str, ClaimState]:
    """The claims of pods that were tried, by their keys."""
    found: dict[str, ClaimState] = {}
    for pod in pods:
        state, _ = world.filter(pod)
        found[pod.key] = state.read(STATE)
    return found


def allocated(world: DeviceWorld, *names: str) -> list[str]:
    return [name for name in names if world.claim(name).allocation is not None]


def test_each_member_of_a_group_gives_back_one_claim() -> None:
    world, giving = giving_world(*(in_the_way(name) for name in ("c0", "c1", "c2")))
    pods = [claiming("c0", "c1", name="p"), claiming("c2", name="q")]

    status = giving.give_back_of_group(pods, known_of(world, *pods))

    assert (status.code, status.message) == (Code.Unschedulable, GROUP_DONE)
    assert allocated(world, "c0", "c1", "c2") == ["c1"]


@pytest.mark.parametrize(
    "tried",
    [
        pytest.param([], id="was not tried"),
        pytest.param([make_pod("p")], id="has no claims"),
    ],
)
def test_a_member_without_claims_keeps_no_other_from_giving_back(tried: list[Any]) -> None:
    world, giving = giving_world(in_the_way("c"))
    pods = [make_pod("p"), claiming("c", name="q")]
    known = known_of(world, pods[1]) | {pod.key: ClaimState() for pod in tried}

    giving.give_back_of_group(pods, known)

    assert allocated(world, "c") == []


def test_a_member_keeps_a_claim_that_another_pod_uses() -> None:
    world, giving = giving_world(in_the_way("c", make_pod("other")))
    pod = claiming("c", name="p")

    giving.give_back_of_group([pod], known_of(world, pod))

    assert allocated(world, "c") == ["c"]


def test_a_write_that_fails_ends_the_deallocation_for_a_group() -> None:
    world, giving = giving_world(in_the_way("c0"), in_the_way("c1"))
    pods = [claiming("c0", name="p"), claiming("c1", name="q")]
    known = known_of(world, *pods)
    world.failures = [ApiError("the server is not there")]

    status = giving.give_back_of_group(pods, known)

    assert (status.code, status.message) == (Code.Error, "the server is not there")
    assert allocated(world, "c0", "c1") == ["c0", "c1"]


@pytest.mark.parametrize(
    ("failures", "reserved"),
    [
        pytest.param([], ["c1"], id="the first when it is written"),
        pytest.param([ApiError("conflict")], ["c0"], id="the second when the first is not"),
        pytest.param([ApiError("conflict"), ApiError("late")], ["c0", "c1"], id="none"),
    ],
)
def test_one_claim_of_a_group_is_released(failures: list[Exception], reserved: list[str]) -> None:
    names = ["c0", "c1"]
    group = make_pod_group("g", claims={f"claim-{i}": name for i, name in enumerate(names)})
    world, giving = giving_world(group, *map(group_claim, names))
    pod = member("p", *names)
    (known,) = known_of(world, pod).values()
    world.failures = [*failures]

    status = giving.give_back(known, pod, has_group_claims=True)

    assert [name for name in names if world.claim(name).status.reserved_for] == reserved
    assert (status is None) is (len(reserved) == 2)


def test_a_claim_of_a_group_that_cannot_be_released_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, giving = giving_world(make_pod_group("g", claims={"claim-0": "c"}), group_claim("c"))
    pod = member("p", "c")
    (known,) = known_of(world, pod).values()
    world.failures = [ApiError("conflict")]

    giving.give_back(known, pod, has_group_claims=True)

    assert caplog.messages == ["claim default/c: cannot be unreserved: conflict"]


def test_a_pod_outside_of_groups_releases_no_claim_of_a_group() -> None:
    world, giving = giving_world(make_pod_group("g", claims={"claim-0": "c"}), group_claim("c"))
    pod = claiming("c", name="p")
    (known,) = known_of(world, pod).values()

    assert giving.give_back(known, pod, has_group_claims=True) is None
    assert world.claim("c").status.reserved_for


def test_members_that_fit_nowhere_give_back_their_claims_in_v1_37() -> None:
    scenario = Scenario(
        make_node("a"),
        make_class(),
        make_slice("s", "d0", "d1"),
        in_the_way("c0"),
        in_the_way("c1"),
        make_pod_group("g", 2),
        feature_gates=FeatureGates({"GenericWorkload": True}, release=find_release("1.37")),
    )
    scenario.add(member("p", "c0"), member("q", "c1"))

    scenario.scheduler.schedule_one()

    claims = [scenario.cluster.get("ResourceClaim", "default", name) for name in ("c0", "c1")]
    assert [claim.allocation for claim in claims] == [None, None]
