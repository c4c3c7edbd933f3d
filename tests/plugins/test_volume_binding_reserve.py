"""VolumeBinding at Reserve and Unreserve: assumptions, and their removal in every case."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.errors import ConflictError
from bayplan.framework import SKIP, SUCCESS, Code, CycleState
from bayplan.plugins.volume_binding.assumed import AssumedObjects, OutOfSyncError
from bayplan.table import ALL
from bayplan.testing.builders import make_pod
from bayplan.testing.storage import make_claim, make_storage_class, make_volume
from tests.plugins.volume_binding_world import CSI, World, dynamic_world, static_world
from tests.rig.storage_world import VOLUME

# Reserve and Unreserve


def test_a_volume_that_was_reserved_is_no_other_claims() -> None:
    world = static_world()
    assert world.fits("d") == [True, True]

    state = world.reserved(world.pod("c"))

    assert world.fits("d") == [False, False]
    assert world.fits("c") == [True, True]  # it is kept for this claim, whichever pod comes
    world.plugin.unreserve(state, make_pod("p"), "a")
    world.plugin.unreserve(state, make_pod("p"), "a")
    assert world.fits("d") == [True, True]
    assert world.assumed == 0


def test_a_claim_that_was_reserved_is_to_be_made_on_that_node() -> None:
    world = dynamic_world()

    state = world.reserved(world.pod("c"), "b")

    assert world.fits("c") == [False, True]
    world.plugin.unreserve(state, make_pod("p"), "b")
    assert world.fits("c") == [True, True]
    assert world.assumed == 0


def test_nothing_is_reserved_for_claims_that_are_bound() -> None:
    world = World(make_claim("c", volume="v"), make_volume("v"))
    pod = world.pod("c")

    state = world.reserved(pod)

    assert world.plugin.pre_bind_pre_flight(state, pod, "a") == SKIP
    assert world.pre_bind(state, pod) == SUCCESS
    assert (world.assumed, world.written) == (0, [])


def test_nothing_is_reserved_when_filter_of_this_plugin_is_switched_off() -> None:
    world, state = dynamic_world(), CycleState()
    pod = world.pod("c")
    world.plugin.pre_filter(state, pod, world.table)

    assert world.plugin.reserve(state, pod, "a") == SUCCESS
    assert world.plugin.pre_bind_pre_flight(state, pod, "a") == SKIP
    assert world.assumed == 0


def test_reserve_fails_when_its_pre_filter_did_not_run() -> None:
    world = dynamic_world()

    with pytest.raises(KeyError, match="not found"):
        world.plugin.reserve(CycleState(), world.pod("c"), "a")


def test_what_the_lister_shows_newer_counts_more_than_what_was_assumed() -> None:
    world = dynamic_world()
    state = world.reserved(world.pod("c"), "b")
    assert world.fits("c") == [False, True]

    world.cluster.update(make_claim("c", size="2Gi"))

    assert world.fits("c") == [True, True]
    world.plugin.unreserve(state, make_pod("p"), "b")
    assert world.assumed == 0


def test_an_object_that_changed_cannot_be_assumed() -> None:
    world = static_world()
    objects = AssumedObjects(type(world.volume()), world.cluster)
    old = world.volume()
    world.cluster.update(make_volume("v", size="9Gi"))

    with pytest.raises(OutOfSyncError, match=r'"v" is out of sync \(stored: 5, assume: 3\)'):
        objects.assume(old)
    world.cluster.delete(old)
    with pytest.raises(OutOfSyncError, match='persistentvolumes "v" not found'):
        objects.assume(old)
    assert len(objects) == 0


def test_an_older_decision_does_not_take_back_a_newer_one() -> None:
    world = static_world()
    objects = AssumedObjects(type(world.volume()), world.cluster)
    old = world.volume()
    objects.assume(old)

    newer = world.cluster.update(make_volume("v", size="9Gi"))
    objects.assume(newer)
    objects.restore(old)

    assert objects.get("", "v") is newer
    assert len(objects) == 1


# Random steps in random order

actions = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "unreserve", "bind", "lose", "touch"]),
        st.integers(0, 3),
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
    ),
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(actions)
def test_no_volume_stays_reserved_for_a_pod_that_does_not_have_it(
    taken: list[tuple[str, int, str, int]],
) -> None:
    claims = [make_claim(f"c{i}", class_name="late" if i < 2 else "made") for i in range(4)]
    world = World(
        *claims,
        make_volume("v0", zones=["z1"]),
        make_volume("v1"),
        make_storage_class(),
        make_storage_class("made", provisioner=CSI),
        timeout_s=2,
    )
    pods = [world.pod(f"c{i}", f"c{(i + 1) % 4}", name=f"p{i}") for i in range(4)]
    held: dict[int, tuple[CycleState, str]] = {}
    for what, number, node, other in taken:
        pod = pods[number]
        if what == "reserve" and number not in held:
            state = CycleState()
            if not world.plugin.pre_filter(state, pod, world.table).is_success:
                continue
            verdict = world.plugin.filter_rows(state, pod, world.table, ALL)
            if not verdict.feasible[world.table.row_of[node]]:
                continue
            if world.plugin.reserve(state, pod, node).is_success:
                held[number] = state, node
            else:
                world.plugin.unreserve(state, pod, node)
        elif what == "touch":
            world.cluster.update(make_volume(f"v{other % 2}", labels={"x": str(len(held))}))
        elif number in held and what in ("unreserve", "bind", "lose"):
            state, node = held.pop(number)
            if what == "bind":
                world.failures = [None] * other + [ConflictError("conflict")]
            if what != "unreserve":
                assert (
                    world.pre_bind(state, pod, node).code is Code.Error
                )  # nothing binds the claim
            world.plugin.unreserve(state, pod, node)
            world.failures = []

    for number, (state, node) in held.items():
        world.plugin.unreserve(state, pods[number], node)

    world.fits("c0")  # the columns follow the restored objects
    assert world.assumed == 0
    shown = world.plugin._current_facts().finder.columns.listed
    assert {v.name: v for v in shown if v is not None} == {
        v.name: v for v in world.cluster.list(VOLUME)
    }
