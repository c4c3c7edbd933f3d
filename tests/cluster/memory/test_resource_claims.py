"""The resource claim controller: claims are created with their pods, and deallocated when unused."""

from typing import Any

import pytest

from bayplan.api.dra import FINALIZER, POD_CLAIM_NAME
from bayplan.api.pod_groups import PodGroup
from bayplan.cluster.memory.admission import AdmissionError
from bayplan.cluster.memory.admission_defaults import admit_devices
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.resource_claims import ClaimController
from bayplan.testing.builders import make_pod
from bayplan.testing.devices import (
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_request,
    make_template,
)
from tests.rig.groups import make_pod_group
from tests.rig.objects import stored

NOW = "2026-01-01T00:00:00Z"


class World:
    """A cluster with the controller running."""

    def __init__(self, *objects: Any) -> None:
        self.cluster = MemoryCluster()
        self.controller = ClaimController(self.cluster)
        for obj in objects:
            self.cluster.add(obj)
        self.cluster.watch(self.controller)
        self.controller.run()

    def add(self, obj: Any) -> Any:
        made = self.cluster.add(obj)
        self.controller.run()
        return made

    def delete(self, obj: Any) -> None:
        self.cluster.delete(obj)
        self.controller.run()

    def claims(self) -> list[Any]:
        return list(self.cluster.list("ResourceClaim"))

    def pod(self, name: str = "pod") -> Any:
        return self.cluster.get("Pod", "default", name)


def test_a_claim_is_made_from_the_template_and_named_in_the_pod() -> None:
    world = World(make_template("t"), claiming(template="t"))

    (claim,) = world.claims()
    assert claim.name.startswith("pod-own-")
    assert claim.is_made_for(world.pod())
    assert claim.annotations[POD_CLAIM_NAME] == "own"
    assert claim.spec == make_template("t").spec.spec
    (status,) = world.pod().status.resource_claim_statuses
    assert (status.name, status.resource_claim_name) == ("own", claim.name)


def test_a_pod_waits_for_its_template() -> None:
    world = World(claiming(template="t"))
    assert world.claims() == []

    world.add(make_template("t"))

    assert len(world.claims()) == 1


def test_a_claim_is_made_once_and_made_again_when_it_is_gone() -> None:
    world = World(make_template("t"), claiming(template="t"))
    (first,) = world.claims()
    world.controller.on_add(world.pod())
    world.controller.run()
    assert world.claims() == [first]

    world.delete(first)
    world.controller.on_add(world.pod())
    world.controller.run()

    (second,) = world.claims()
    (status,) = world.pod().status.resource_claim_statuses
    assert status.resource_claim_name == second.name


def test_long_names_are_cut_as_a_cluster_cuts_them() -> None:
    name = "p" * 60
    world = World(make_template("t"), claiming(template="t", name=name))

    (claim,) = world.claims()
    assert len(claim.name) <= 63
    assert claim.name.startswith("p" * 50)


@pytest.mark.parametrize("is_deleted", [True, False], ids=["the pod goes", "the pod ends"])
def test_a_generated_claim_is_deleted_with_its_pod(is_deleted: bool) -> None:
    world = World(make_template("t"), claiming(template="t"))
    if is_deleted:
        world.delete(world.pod())
    else:
        pod = world.pod()
        world.cluster.update(
            make_pod("pod", spec={"resourceClaims": []}).replace(
                uid=pod.uid, spec=pod.spec, status=make_pod(status={"phase": "Succeeded"}).status
            )
        )
        world.controller.run()

    assert world.claims() == []


def test_a_claim_is_deallocated_with_its_last_user() -> None:
    first, second = claiming("c", name="first"), claiming("c", name="second")
    meta = {"finalizers": [FINALIZER]}
    claim = make_claim("c", devices=["a/x"], users=[first, second], metadata=meta)
    world = World(claim, first, second)

    world.delete(first)
    (claim,) = world.claims()
    assert [user.name for user in claim.status.reserved_for] == ["second"]
    assert claim.allocation is not None

    world.delete(second)
    (claim,) = world.claims()
    assert claim.status.reserved_for is None
    assert claim.allocation is None
    assert claim.metadata.finalizers is None


def test_claims_of_the_input_stay() -> None:
    kept = make_claim("c", devices=["a/x"], users=[make_pod("who")])

    world = World(kept)

    assert world.claims()[0].allocation is not None


def test_a_pod_bound_by_another_scheduler_reserves_its_claims() -> None:
    world = World(make_claim("c", devices=["a/x"]), claiming("c", node_name="a"))

    assert world.claims()[0].is_reserved_for(world.pod())


def test_a_claim_in_use_is_deleted_with_its_last_user() -> None:
    pod = claiming("c", node_name="a")
    meta = {"finalizers": [FINALIZER]}
    world = World(make_claim("c", devices=["a/x"], users=[pod], metadata=meta), pod)

    world.controller.delete(world.claims()[0], NOW)
    assert world.claims()[0].is_terminating
    world.delete(pod)

    assert world.claims() == []


def test_an_unused_claim_is_deleted_at_once() -> None:
    meta = {"finalizers": [FINALIZER]}
    world = World(make_claim("c", devices=["a/x"], metadata=meta), make_claim("d"))

    for claim in world.claims():
        world.controller.delete(claim, NOW)

    assert world.claims() == []


# Admission


def test_defaults_are_set() -> None:
    tolerant = [{"key": "k"}]
    option = make_request("o", allocationMode="All", tolerations=tolerant)

    claim = admit_devices(make_claim("c", make_request("r"), make_choice("s", option)))

    first, second = claim.spec.devices.requests or ()
    assert first.exactly is not None
    assert (first.exactly.allocation_mode, first.exactly.count) == ("ExactCount", 1)
    (chosen,) = second.first_available or ()
    assert (chosen.allocation_mode, chosen.count) == ("All", 0)
    assert [toleration.operator for toleration in chosen.tolerations or ()] == ["Equal"]


@pytest.mark.parametrize(
    ("obj", "where"),
    [
        pytest.param(
            make_class("gpu", "device.nope"), "spec.selectors[0].cel.expression", id="a class"
        ),
        pytest.param(
            make_claim("c", make_request("r", "true", "1 +")),
            "spec.devices.requests[0].exactly.selectors[1].cel.expression",
            id="a claim",
        ),
        pytest.param(
            make_template("t", make_choice("r", make_request("s", "true"), make_request("u", "x"))),
            "spec.spec.devices.requests[0].firstAvailable[1].selectors[0].cel.expression",
            id="a template",
        ),
    ],
)
def test_expressions_that_do_not_compile_are_rejected(obj: Any, where: str) -> None:
    with pytest.raises(AdmissionError) as caught:
        admit_devices(obj)

    assert caught.value.path == where


# Claims of pod groups


def member(name: str, template: str = "t") -> Any:
    return claiming(name=name, template=template, spec={"schedulingGroup": {"podGroupName": "g"}})


def names_in(obj: Any) -> list[tuple[str, str]]:
    return [(s.name, s.resource_claim_name) for s in obj.status.resource_claim_statuses or ()]


def test_the_pods_of_a_group_get_the_name_of_its_claim() -> None:
    group = make_pod_group("g", templates={"own": "t"})
    world = World(group, member("p"), member("q"))
    assert world.claims() == []

    world.add(make_template("t"))

    (claim,) = world.claims()
    (owner,) = claim.owner_references
    found = stored(world.cluster, PodGroup, "g")
    assert (owner.kind, owner.name, owner.uid) == ("PodGroup", "g", found.uid)
    assert owner.api_version == "scheduling.k8s.io/v1alpha2"
    assert names_in(found) == [("own", claim.name)]
    assert names_in(world.pod("p")) == names_in(world.pod("q")) == [("own", claim.name)]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"other": "t"}, id="another name"),
        pytest.param({"own": "another"}, id="another template"),
    ],
)
def test_entries_that_differ_from_those_of_the_group_get_claims_of_their_own(
    entry: dict[str, str],
) -> None:
    group = make_pod_group("g", templates=entry)
    world = World(group, make_template("t"), make_template("another"), member("p"))

    owners = sorted(claim.owner_references[0].kind for claim in world.claims())
    assert owners == ["Pod", "PodGroup"]
    (of_pod,) = [c for c in world.claims() if c.owner_references[0].kind == "Pod"]
    assert names_in(world.pod("p")) == [("own", of_pod.name)]


def test_pods_before_their_group_get_its_claim_when_the_group_comes() -> None:
    world = World(make_template("t"), member("p", "unused"))
    world.add(make_pod_group("g", templates={"own": "t"}))
    world.add(member("q"))

    (claim,) = world.claims()
    assert names_in(world.pod("q")) == [("own", claim.name)]
    assert names_in(world.pod("p")) == []


def test_a_pod_that_another_scheduler_bound_reserves_the_claim_for_its_group() -> None:
    group = make_pod_group("g", claims={"claim-0": "c"})
    pod = claiming("c", name="p", spec={"schedulingGroup": {"podGroupName": "g"}}).with_node("a")
    world = World(group, make_claim("c", devices=["pool/d0"]), pod)

    (claim,) = world.claims()
    (user,) = claim.status.reserved_for
    assert (user.api_group, user.resource, user.name) == ("scheduling.k8s.io", "podgroups", "g")


def test_the_claim_of_a_group_that_was_replaced_is_deallocated() -> None:
    group = make_pod_group("g", claims={"claim-0": "c"})
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g"}
    claim = make_claim(
        "c", devices=["pool/d0"], status={"reservedFor": [{**user, "uid": "group/g"}]}
    )
    world = World(group, claim)

    world.delete(group)

    (left,) = world.claims()
    assert (left.status.reserved_for, left.allocation) == (None, None)
