"""Random steps: volumes and claims are paired, and feasible pods run."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.api.storage import PersistentVolume
from bayplan.testing.storage import make_claim, make_storage_class, make_volume
from tests.life.volume_life import check, claim_names, conflict, make_class, uses, zones
from tests.rig.random_examples import examples
from tests.rig.scenarios_storage import StorageScenario as Life

# Random events

SIZES = st.sampled_from(["1Gi", "2Gi", "4Gi"])
ZONES = st.sampled_from(["a", "b"])
KINDS = "Pod", "PersistentVolumeClaim", "PersistentVolume"
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("volume"), SIZES, ZONES),
        st.tuples(st.just("claim"), SIZES, st.sampled_from(["late", "now", "local"])),
        st.tuples(st.just("pod"), st.integers(0, 5), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([0, 1, 3, 7]), st.none()),
        st.tuples(st.just("conflict"), st.none(), st.none()),
        st.tuples(st.just("restart"), st.none(), st.none()),
        st.tuples(st.just("delete"), st.sampled_from(KINDS), st.integers(0, 5)),
    ),
    max_size=16,
)


def do(life: Life, number: int, step: tuple[str, Any, Any]) -> None:
    """Apply one event."""
    match step:
        case "volume", size, zone:
            life.add(make_volume(f"v-{number}", size=size, zones=[zone], class_name="local"))
        case "claim", size, class_name:
            life.add(make_claim(f"c-{number}", size=size, class_name=class_name))
        case "pod", first, second:
            names = [claim.name for claim in life.claims()]
            chosen = {names[i % len(names)] for i in (first, second)} if names else set()
            life.add(uses(*sorted(chosen), name=f"p-{number}"))
        case "wait", seconds, _:
            life.advance(seconds)
        case "conflict", _, _:
            life.api.before_write.append(conflict)
        case "restart", _, _:
            life.stop()
            life.start()
        case "delete", kind, index:
            objects = list(life.cluster.list(kind))
            if objects:
                life.cluster.delete(objects[index % len(objects)])
                life.volumes.run()


def could_run(life: Life, pod: Pod) -> bool:
    """Whether the pod can get a node: each claim has, or can get, a volume, and all in one zone."""
    reached = {"a", "b"}
    for name in claim_names(pod):
        claim = life.cluster.get("PersistentVolumeClaim", "default", name)
        if claim is None or claim.status.phase == "Lost":
            return False
        if claim.spec.volume_name:
            reached &= reach(life.volume(claim.spec.volume_name))
        elif claim.storage_class_name == "local":
            free = [
                volume
                for volume in life.cluster.list("PersistentVolume")
                if volume.spec.claim_ref is None and volume.capacity_bytes >= claim.requested_bytes
            ]
            reached &= {zone for volume in free for zone in reach(volume)}
    return bool(reached)


def reach(volume: PersistentVolume) -> set[str]:
    affinity = volume.spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    return {v for t in affinity.required.terms for e in t.expressions for v in e.values or ()}


@settings(max_examples=examples(50), deadline=None)
@given(steps=STEPS)
def test_volumes_and_claims_are_paired_and_feasible_pods_run(steps: list[Any]) -> None:
    classes = (
        make_class("late", delay="2s", failures="1"),
        make_class("now", waits=False, delay="1s"),
        make_storage_class("local"),
    )
    life = Life(*zones(cpu="64"), *classes)
    for number, step in enumerate(steps):
        do(life, number, step)
        life.check_pairs()

    life.api.before_write.clear()
    life.advance(900)  # pods that no event requeued are retried after five minutes

    check(life)
    waiting = [pod for pod in life.cluster.list("Pod") if not pod.node_name]
    several = [pod for pod in waiting if len(claim_names(pod)) > 1]
    assert [pod.name for pod in waiting if pod not in several and could_run(life, pod)] == []
