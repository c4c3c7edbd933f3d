"""Volumes and a whole scheduler: faults while a pod waits for its volumes, and their effect on the pod."""

from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    with_annotation,
)
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.errors import ConflictError
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.storage import claim_volume, make_claim, make_storage_class, make_volume
from tests.rig.scenarios import Scenario

CSI = "csi.example.com"
ZONES = {"n1": "z1", "n2": "z2", "n3": "z3"}
NODES = [make_node(name, zone=zone) for name, zone in ZONES.items()]


class StorageCluster(MemoryCluster):
    """A cluster whose next writes of volumes and claims by the scheduler may be made to conflict."""

    def __init__(self) -> None:
        super().__init__()
        self.conflicts = 0

    def update(self, obj: Any) -> Any:
        kept = isinstance(obj, PersistentVolume) and obj.spec.claim_ref is not None
        placed = isinstance(obj, PersistentVolumeClaim) and SELECTED_NODE in obj.annotations
        if self.conflicts and (kept or placed) and BIND_COMPLETED not in obj.annotations:
            self.conflicts -= 1
            raise ConflictError("the object has been modified")
        return super().update(obj)


MADE: list["Storage"] = []


@pytest.fixture(autouse=True)
def end() -> Iterator[None]:
    """Stop remaining tasks when a test is over."""
    yield
    while MADE:
        MADE.pop().scheduler.binding_tools.parts.executor.close()  # type: ignore[attr-defined]


class Storage(Scenario):
    """A scenario with a slow volume controller, which fails as often as the test wants."""

    def __init__(self, *objects: Any, delay_s: float = 5, **options: Any) -> None:
        cluster = options.pop("cluster", None) or StorageCluster()
        super().__init__(*objects, cluster=cluster, **options)
        self.delay_s = delay_s
        self.failures = 0
        self.is_idle = False
        self.cluster.watch(self, replay=False)
        MADE.append(self)

    def on_add(self, obj: Any) -> None:
        pass

    def on_delete(self, obj: Any) -> None:
        pass

    def on_update(self, old: Any, new: Any) -> None:
        if self.is_idle:
            return
        if isinstance(new, PersistentVolume) and old.spec.claim_ref is None:
            assert new.spec.claim_ref is not None, "a volume is never released"
            claim, volume = new.spec.claim_ref.name, new.name
            self.scheduler.timers.after(self.delay_s, lambda: self.bind_claim(claim, volume))
        elif (
            isinstance(new, PersistentVolumeClaim)
            and SELECTED_NODE in new.annotations
            and SELECTED_NODE not in old.annotations
        ):
            self.scheduler.timers.after(self.delay_s, lambda: self.provision(new.name))

    def claim(self, name: str) -> PersistentVolumeClaim:
        claim = self.cluster.get("PersistentVolumeClaim", "default", name)
        assert isinstance(claim, PersistentVolumeClaim)
        return claim

    def provision(self, name: str) -> None:
        claim = self.claim(name)
        if self.failures:
            self.failures -= 1
            self.cluster.update(make_claim(name, annotations={"tried": "yes"}))
            return
        zone = ZONES[claim.annotations[SELECTED_NODE]]
        self.cluster.add(make_volume(f"pv-{name}", zones=[zone], claim=claim))
        self.bind_claim(name, f"pv-{name}")

    def bind_claim(self, name: str, volume: str) -> None:
        notes = {**self.claim(name).annotations, BIND_COMPLETED: "yes"}
        self.cluster.update(make_claim(name, volume=volume, annotations=notes))

    @property
    def assumed(self) -> int:
        """Number of reservations that the cluster does not show."""
        kept = self.plugin(VolumeBinding)._current_facts()
        kept.claims.expire_all()
        kept.volumes.expire_all()
        return len(kept.claims) + len(kept.volumes)

    def message(self, name: str) -> str:
        """The last refusal of a pod."""
        notes = [event.note for event in self.events_of(name) if event.type == "Warning"]
        return notes[-1] if notes else ""


def using(name: str, *claims: str) -> Pod:
    return make_pod(name, spec={"volumes": [claim_volume(claim) for claim in claims]})


def dynamic(**options: Any) -> Storage:
    return Storage(*NODES, make_claim("c"), make_storage_class(provisioner=CSI), **options)


def static(**options: Any) -> Storage:
    """One volume that n2 reaches, for two claims."""
    objects = [make_claim("c"), make_claim("d"), make_volume("v", zones=["z2"])]
    return Storage(*NODES, *objects, make_storage_class(), **options)


def test_a_pod_is_bound_once_its_volume_is() -> None:
    world = dynamic()
    world.add(using("p", "c"))

    world.advance(3)
    assert not world.pod("p").node_name
    assert world.pod("p").nominated_node_name == "n1"  # where it will go
    world.settle()

    assert world.pod("p").node_name == "n1"
    assert world.clock.monotonic() == 5
    assert world.assumed == 0


def test_two_pods_do_not_get_one_volume() -> None:
    world = static()
    world.add(using("p", "c"), using("q", "d"))

    world.settle()

    assert world.pod("p").node_name == "n2"
    assert not world.pod("q").node_name
    assert "3 node(s) didn't find available persistent volumes to bind" in world.message("q")
    assert world.assumed == 0


def test_pods_that_share_a_claim_follow_it() -> None:
    world = dynamic()
    world.add(using("p", "c"), using("q", "c"))

    world.settle()

    assert world.pod("p").node_name == world.pod("q").node_name == "n1"


def test_the_provisioner_fails_and_the_pod_is_tried_again() -> None:
    world = dynamic()
    world.failures = 2
    world.add(using("p", "c"))

    world.advance(6)
    assert not world.pod("p").node_name
    assert 'provisioning failed for PVC "c"' in world.message("p")
    world.settle()

    assert world.pod("p").node_name == "n1"
    assert world.failures == 0
    assert world.assumed == 0


def test_the_provisioner_never_answers() -> None:
    world = dynamic(profile={"pluginConfig": [binding_args(7)]})
    world.is_idle = True
    world.add(using("p", "c"))

    world.advance(6.5)
    assert not world.message("p")
    world.advance(0.5)

    text = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert world.message("p") == text
    assert not world.pod("p").node_name
    assert world.scheduler.cache.pod_count == 0
    assert world.assumed == 0


def binding_args(seconds: int) -> dict[str, Any]:
    return {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": seconds}}


@pytest.mark.parametrize("make", [static, dynamic])
@pytest.mark.parametrize("times", [1, 5])
def test_writes_that_conflict_are_tried_again_with_the_pod(make: Any, times: int) -> None:
    world = make()
    world.cluster.conflicts = times
    world.add(using("p", "c"))

    world.run()
    assert world.message("p").endswith("the object has been modified")
    assert world.assumed == 0
    world.settle()

    assert world.pod("p").node_name == ("n2" if make is static else "n1")
    attempts = [event for event in world.events_of("p") if event.type == "Warning"]
    assert len(attempts) >= 1
    assert world.cluster.conflicts == 0
    assert world.scheduler.metrics.volume_errors.read() == {("bind",): times}


def test_writes_that_always_conflict_leave_the_volume_to_others() -> None:
    world = static()
    world.cluster.conflicts = 1
    world.add(using("p", "c"))
    world.run()
    assert not world.pod("p").node_name

    world.add(using("q", "d"))  # comes while p is backing off
    world.run()
    world.settle()

    assert world.pod("q").node_name == "n2"
    assert not world.pod("p").node_name
    assert world.assumed == 0


def test_a_pod_deleted_while_pre_bind_waits_leaves_nothing_behind() -> None:
    world = dynamic()
    world.add(using("p", "c"))
    world.advance(2)

    world.cluster.delete(world.pod("p"))
    world.advance(1)

    assert world.scheduler.cache.pod_count == 0
    assert world.assumed == 0
    world.settle()
    world.add(using("q", "c"))
    world.settle()
    assert (
        world.pod("q").node_name == "n1"
    )  # the volume was made, and is where the first pod was to go


def test_the_claim_is_bound_to_a_volume_elsewhere_meanwhile() -> None:
    world = dynamic()
    world.is_idle = True
    world.add(using("p", "c"))
    world.advance(2)

    world.cluster.add(make_volume("far", zones=["z3"], phase="Bound"))
    world.bind_claim("c", "far")
    world.settle()

    assert world.pod("p").node_name == "n3"
    assert 'pv "far" node affinity doesn\'t match node "n1"' in world.message("p")
    assert world.assumed == 0


def test_the_volume_is_taken_by_another_claim_meanwhile() -> None:
    world = static()
    world.is_idle = True
    world.add(using("p", "c"))
    world.advance(2)
    volume = world.cluster.get("PersistentVolume", "", "v")
    assert volume.spec.claim_ref.name == "c"

    rival = world.claim("d")
    world.cluster.update(make_volume("v", zones=["z2"], claim=rival))
    world.cluster.update(with_annotation(rival, "x", "y"))
    world.advance(2)

    assert not world.pod("p").node_name
    assert world.assumed == 0


@pytest.mark.parametrize("make", [static, dynamic])
def test_a_scheduler_that_starts_again_finishes_what_another_began(make: Any) -> None:
    first = make()
    first.is_idle = True
    first.add(using("p", "c"))
    first.advance(2)
    assert not first.pod("p").node_name

    second = Storage(cluster=first.cluster)  # assumptions are lost; writes are not
    name = "v" if make is static else "pv-c"
    if make is static:
        second.scheduler.timers.after(5, lambda: second.bind_claim("c", name))
    else:
        second.scheduler.timers.after(5, lambda: second.provision("c"))
    second.settle()

    assert second.pod("p").node_name == ("n2" if make is static else "n1")
    assert second.assumed == 0


def test_a_set_of_pods_with_zonal_volumes_fills_the_zones() -> None:
    """Each pod has its own volume; a pod that is created again is placed where its volume is."""
    zones = [make_node(f"n{i + 1}", zone=f"z{i + 1}", pods=1) for i in range(3)]
    claims = [make_claim(f"data-{i}") for i in range(3)]
    world = Storage(*zones, *claims, make_storage_class(provisioner=CSI))
    world.add(*(using(f"db-{i}", f"data-{i}") for i in range(3)))
    world.settle()
    places = {f"db-{i}": world.pod(f"db-{i}").node_name for i in range(3)}
    assert sorted(places.values()) == ["n1", "n2", "n3"]

    for name in ("db-2", "db-0"):
        world.cluster.delete(world.pod(name))
    world.settle()
    world.add(using("db-0", "data-0"), using("db-2", "data-2"))
    world.settle()

    assert {name: world.pod(name).node_name for name in places} == places
    world.cluster.delete(world.pod("db-1"))
    world.add(using("db-3", "data-0"))
    world.settle()
    expected = "1 node(s) didn't match PersistentVolume's node affinity, 2 Too many pods"
    assert expected in world.message("db-3")
