"""VolumeBinding at PreBind: writes, waits, and changes that are noticed while waiting."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.errors import ApiError, ConflictError
from bayplan.framework import SUCCESS, Code
from bayplan.testing.storage import make_claim, make_storage_class, make_volume
from tests.plugins.volume_binding_world import CSI, World, dynamic_world, static_world
from tests.rig.objects import stored
from tests.rig.storage_world import CLAIM, VOLUME


def test_a_volume_is_written_and_awaited() -> None:
    world = static_world()
    pod = world.pod("c")
    state = world.reserved(pod)
    assert world.plugin.pre_bind_pre_flight(state, pod, "a") == SUCCESS
    world.each_second = lambda now: world.bind_claim("c", "v") if now == 3 else None

    assert world.pre_bind(state, pod) == SUCCESS

    assert world.clock.monotonic() == 3
    volume = world.volume()
    reference = volume.spec.claim_ref
    assert (reference.kind, reference.namespace, reference.name) == (CLAIM, "default", "c")
    assert reference.uid == world.claim().uid
    assert volume.annotations[BOUND_BY_CONTROLLER] == "yes"
    assert world.written == [(VOLUME, "v")]


def test_a_volume_that_was_kept_for_the_claim_by_hand_stays_so() -> None:
    kept = make_volume("v", claim_ref={"namespace": "default", "name": "c"})
    world = World(make_claim("c"), kept, make_storage_class())
    pod = world.pod("c")
    state = world.reserved(pod)
    world.each_second = lambda now: world.bind_claim("c", "v")

    assert world.pre_bind(state, pod) == SUCCESS

    assert world.volume().spec.claim_ref.uid == "default/c"
    assert BOUND_BY_CONTROLLER not in world.volume().annotations


def test_a_claim_is_written_and_awaited() -> None:
    world = dynamic_world()
    pod = world.pod("c")
    state = world.reserved(pod, "b")

    def provision(now: float) -> None:
        if now == 2:
            world.bind_claim("c", "made")  # the lister may show the claim before its volume
        if now == 4:
            world.cluster.add(make_volume("made", zones=["z2"]))

    world.each_second = provision

    assert world.pre_bind(state, pod, "b") == SUCCESS

    assert world.clock.monotonic() == 4
    assert world.claim().annotations[SELECTED_NODE] == "b"
    assert world.written == [(CLAIM, "c")]


@pytest.mark.parametrize("timeout_s", [0, 1, 10])
@pytest.mark.parametrize("start_s", [0, 0.1, 1234.5678])
def test_a_provisioner_that_never_answers(timeout_s: int, start_s: float) -> None:
    world = dynamic_world(timeout_s=timeout_s)
    world.clock.advance(start_s)
    pod = world.pod("c")
    state = world.reserved(pod)

    status = world.pre_bind(state, pod)

    assert (status.code, status.message) == (
        Code.Error,
        "binding volumes: context deadline exceeded",
    )
    assert world.clock.monotonic() == pytest.approx(start_s + timeout_s, abs=1e-6)


def fail_with(world: World, *claims: str, node: str = "a") -> str:
    """The message of a PreBind that must fail; whatever was assumed is taken back after."""
    pod = world.pod(*claims)
    state = world.reserved(pod, node)
    status = world.pre_bind(state, pod, node)
    assert status.code is Code.Error
    world.plugin.unreserve(state, pod, node)
    assert world.assumed == 0
    return status.message


def test_the_provisioner_gives_up() -> None:
    world = dynamic_world()
    world.each_second = lambda now: world.cluster.update(make_claim("c", annotations={"x": "y"}))

    assert fail_with(world, "c") == 'binding volumes: provisioning failed for PVC "c"'


def test_the_annotations_of_a_claim_are_gone() -> None:
    world = dynamic_world()
    world.each_second = lambda now: world.cluster.update(make_claim("c"))

    assert fail_with(world, "c") == 'binding volumes: selectedNode annotation reset for PVC "c"'


def test_the_claim_is_given_a_volume_that_the_node_does_not_reach() -> None:
    world = dynamic_world()
    world.cluster.add(make_volume("far", zones=["z2"], phase="Bound"))
    world.each_second = lambda now: world.bind_claim("c", "far")

    assert fail_with(world, "c") == (
        'binding volumes: pv "far" node affinity doesn\'t match node "a": '
        "no matching NodeSelectorTerms"
    )


def test_the_volume_is_no_longer_the_claims() -> None:
    world = static_world()
    world.each_second = lambda now: world.cluster.update(make_volume("v"))

    assert fail_with(world, "c") == 'binding volumes: ClaimRef got reset for pv "v"'


def test_the_claim_is_bound_to_another_volume_meanwhile() -> None:
    """Upstream is content with any volume: the next attempt, and the kubelet, see which one it is."""
    world = static_world()
    world.cluster.add(make_volume("w", size="5Gi"))
    pod = world.pod("c")
    state = world.reserved(pod)
    world.each_second = lambda now: world.bind_claim("c", "w")

    assert world.pre_bind(state, pod) == SUCCESS


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "expected"),
    [
        pytest.param(
            PersistentVolume,
            "",
            "v",
            'failed to check binding: persistentvolumes "v" not found',
            id="volume",
        ),
        pytest.param(
            PersistentVolumeClaim,
            "default",
            "c",
            'failed to check binding: persistentvolumeclaims "default/c" not found',
            id="claim",
        ),
    ],
)
def test_the_volume_or_the_claim_is_deleted_meanwhile(
    kind: type[KubeObject], namespace: str, name: str, expected: str
) -> None:
    world = static_world()
    world.each_second = lambda now: world.cluster.delete(
        stored(world.cluster, kind, name, namespace)
    )

    assert fail_with(world, "c") == f"binding volumes: {expected}"


def test_the_pod_is_deleted_while_pre_bind_waits() -> None:
    world = static_world()
    world.each_second = lambda now: (
        world.cluster.delete(stored(world.cluster, Pod, "p")) if now == 2 else None
    )

    expected = 'binding volumes: pod does not exist any more: pod "p" not found'
    assert fail_with(world, "c") == expected
    assert world.clock.monotonic() == 2


def test_the_node_goes_while_pre_bind_waits() -> None:
    world = dynamic_world()
    pod = world.pod("c")
    state = world.reserved(pod, "a")
    world.table.nodes[0] = None

    status = world.pre_bind(state, pod, "a")

    assert status.message == 'binding volumes: failed to get node "a": node "a" not found'


class Lagging:
    """A lister that shows the volume and the claim as they once were."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._old = {
            (VOLUME, "v"): cluster.get(VOLUME, "", "v"),
            (CLAIM, "c"): cluster.get(CLAIM, "default", "c"),
        }
        self.lags = True

    @property
    def version(self) -> int:
        return 0 if self.lags else self._cluster.version

    def version_of(self, *kinds: str) -> int:
        return self.version

    def list(self, kind: str, namespace: str | None = None) -> Any:
        return [self.get(o.kind, o.namespace, o.name) for o in self._cluster.list(kind, namespace)]

    def get(self, kind: str, namespace: str, name: str) -> Any:
        found = self._cluster.get(kind, namespace, name)
        return self._old.get((kind, name)) or found if self.lags else found


@pytest.mark.parametrize("make", [static_world, dynamic_world])
def test_a_lister_that_lags_behind_is_waited_for(make: Callable[[], World]) -> None:
    world = make()
    pod = world.pod("c")
    lister = Lagging(world.cluster)
    world.plugin.handle.lister = lister
    state = world.reserved(pod)

    def pass_on(now: float) -> None:
        if now == 2:
            world.cluster.add(make_volume("made"))
            world.bind_claim("c", "v" if make is static_world else "made")
        if now == 5:
            lister.lags = False

    world.each_second = pass_on

    assert world.pre_bind(state, pod) == SUCCESS
    assert world.clock.monotonic() == 5


def test_what_was_written_stays_assumed_until_the_lister_shows_it() -> None:
    world = static_world(timeout_s=3)
    pod = world.pod("c")
    lister = Lagging(world.cluster)
    world.plugin.handle.lister = lister
    state = world.reserved(pod)

    assert world.pre_bind(state, pod).code is Code.Error
    world.plugin.unreserve(state, pod, "a")

    assert world.fits("d") == [
        False,
        False,
    ]  # the volume is the claim's, though the lister does not know
    lister.lags = False
    assert world.fits("d") == [False, False]
    assert world.assumed == 0


def test_a_write_that_conflicts_leaves_nothing_reserved() -> None:
    world = static_world()
    world.failures = [ConflictError("changed meanwhile")]
    pod = world.pod("c")
    state = world.reserved(pod)
    assert world.assumed == 1

    status = world.pre_bind(state, pod)

    assert status.message == "changed meanwhile"
    assert (world.written, world.assumed) == ([], 0)
    assert world.fits("d") == [True, True]


def test_a_write_of_something_old_conflicts() -> None:
    world = static_world()
    pod = world.pod("c")
    state = world.reserved(pod)
    world.cluster.update(make_volume("v", labels={"x": "y"}))

    status = world.pre_bind(state, pod)

    assert status.message == 'PersistentVolume "v" was changed since it was read'


def test_what_was_written_before_a_failure_stays() -> None:
    world = World(
        make_claim("c"),
        make_claim("d", size="2Gi"),
        make_volume("v"),
        make_storage_class(provisioner=CSI),
    )
    world.failures = [None, ApiError("the server is down", 503)]

    assert fail_with(world, "c", "d") == "the server is down"

    assert world.written == [(VOLUME, "v")]
    assert world.volume().spec.claim_ref.name == "c"
    assert SELECTED_NODE not in world.claim("d").annotations
    assert world.fits("c") == [True, True]


def test_a_client_may_write_asynchronously() -> None:
    world = static_world()
    pod = world.pod("c")
    state = world.reserved(pod)
    world.each_second = lambda now: world.bind_claim("c", "v")
    write = world.update

    async def update(obj: Any) -> Any:
        await asyncio.sleep(0)
        return write(obj)

    world.update = update  # type: ignore[method-assign]

    assert world.pre_bind(state, pod) == SUCCESS
    assert world.written == [(VOLUME, "v")]
