"""Runs with storage faults: after each, nothing stays reserved for a pod without it."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.storage import BIND_COMPLETED, SELECTED_NODE, with_annotation
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.storage import ephemeral_volume, make_claim, make_storage_class, make_volume
from tests.life.volume_life import check, conflict, make_class, uses, zones
from tests.rig.scenarios_storage import StorageScenario as Life

PRE_BIND = 'running PreBind plugin "VolumeBinding": '


# No fault


@pytest.mark.parametrize("delay_s", [0, 5, 5.5, 90])
def test_a_pod_is_bound_after_its_volume_was_provisioned(delay_s: float) -> None:
    life = Life(*zones(), make_class(delay=f"{delay_s}s"), make_claim(), uses("claim"))

    looked = max(-(-delay_s // 1), 1)
    life.advance(looked - 0.001)
    assert life.place() == ["assumed"]
    life.advance(0.001)
    assert life.pod().node_name == "n-a"
    check(life)


def test_an_ephemeral_volume_is_created_for_its_pod() -> None:
    volume = ephemeral_volume("tmp")
    volume["ephemeral"]["volumeClaimTemplate"]["spec"] = {"storageClassName": "late"}
    life = Life(*zones(), make_class())
    life.add(make_pod(spec={"volumes": [volume]}))

    life.advance(1)

    assert life.pod().node_name == "n-a"
    assert life.claim("pod-tmp").is_fully_bound


# The claim is bound to another volume


def test_a_claim_that_is_bound_to_another_volume_meanwhile_keeps_that_one() -> None:
    ours, other = make_volume("ours", zones=["a"]), make_volume("other", size="5Gi", zones=["b"])
    life = Life(*zones(), make_storage_class(), ours, other, make_claim(), uses("claim"))

    def another_scheduler_binds_the_claim(obj: Any) -> None:
        assert obj.name == "ours"
        claim = replace(life.claim(), spec=replace(life.claim().spec, volume_name="other"))
        life.cluster.update(with_annotation(claim, BIND_COMPLETED, "yes"))
        life.cluster.update(life.volume("other").bound_to(life.claim()))

    life.api.before_write.append(another_scheduler_binds_the_claim)
    life.advance(1)
    assert life.messages == [f'{PRE_BIND}binding volumes: ClaimRef got reset for pv "ours"']
    assert life.place() == ["backoff"]
    check(life)

    life.advance(10)
    assert life.pod().node_name == "n-b"
    assert life.volume("ours").status.phase == "Available"
    check(life)


def test_a_volume_that_another_claim_took_meanwhile_stays_with_it() -> None:
    volumes = make_volume("first", zones=["a"]), make_volume("second", size="2Gi", zones=["b"])
    claims = make_claim(), make_claim("rival")
    life = Life(*zones(), make_storage_class(), *volumes, *claims, uses("claim"))

    def rival_takes_it(obj: Any) -> None:
        life.cluster.update(life.volume(obj.name).bound_to(life.claim("rival")))

    life.api.before_write.append(rival_takes_it)
    life.advance(0)
    assert life.messages == [f'{PRE_BIND}PersistentVolume "first" was changed since it was read']
    check(life)

    life.advance(10)
    assert life.claim("rival").spec.volume_name == "first"
    assert life.claim().spec.volume_name == "second"
    assert life.pod().node_name == "n-b"
    check(life)


def test_a_volume_provisioned_out_of_reach_of_the_node_is_not_used() -> None:
    life = Life(*zones(), make_class(delay="30s"), make_claim(), uses("claim"))
    life.advance(0)
    life.add(make_volume("far", zones=["b"], claim=life.claim()))

    life.advance(1)

    (message,) = life.messages
    assert message.startswith(f'{PRE_BIND}binding volumes: pv "far" node affinity doesn\'t match')
    life.advance(10)
    assert life.pod().node_name == "n-b"
    check(life)


# The provisioner fails


def test_a_pod_whose_volume_failed_to_provision_is_retried() -> None:
    life = Life(*zones(), make_class(delay="5s", failures="1"), make_claim(), uses("claim"))

    life.advance(5)
    assert life.messages == [f'{PRE_BIND}binding volumes: provisioning failed for PVC "claim"']
    assert life.place() == ["backoff"]
    assert SELECTED_NODE not in life.claim().annotations
    check(life)

    life.advance(10)
    assert life.pod().node_name
    check(life)


def test_a_pod_whose_volume_always_fails_to_provision_keeps_being_retried() -> None:
    life = Life(*zones(), make_class(failures="100%"), make_claim(), uses("claim"))

    life.advance(120)

    assert len(life.messages) > 10
    assert set(life.messages) == {f'{PRE_BIND}binding volumes: provisioning failed for PVC "claim"'}
    assert life.place() in (["backoff"], ["assumed"])
    check(life)


@pytest.mark.parametrize("timeout_s", [30, 600])
def test_a_provisioner_without_a_response_is_awaited_until_the_timeout(timeout_s: int) -> None:
    never = make_class(failures="100%", on_failure="retry")
    life = Life(*zones(), never, make_claim(), uses("claim"), bind_timeout_s=timeout_s)

    life.advance(timeout_s - 0.001)
    assert life.messages == []
    life.advance(0.001)
    assert life.messages == [f"{PRE_BIND}binding volumes: context deadline exceeded"]
    assert life.place() == ["backoff"]
    condition = life.pod().status.condition("PodScheduled")
    assert condition is not None
    assert condition.reason == "SchedulerError"
    check(life)


# Writes that conflict


@pytest.mark.parametrize("times", [1, 6])
@pytest.mark.parametrize("kind", ["made", "there"])
def test_conflicts_requeue_the_pod_until_a_write_succeeds(times: int, kind: str) -> None:
    volumes = [make_volume("v", zones=["b"])] if kind == "there" else []
    life = Life(*zones(), make_class(), *volumes, make_claim(), uses("claim"))
    life.api.before_write += [conflict] * times

    for number in range(times):
        while len(life.messages) == number:
            life.advance(1)
            assert life.clock.monotonic() < 120
        assert life.messages[-1].startswith(PRE_BIND)
        assert life.messages[-1].endswith("has been modified")
        assert "assumed" not in life.place()
        check(life)
    life.advance(20)

    assert life.pod().node_name
    assert len(life.messages) == times + 1
    check(life)


def test_a_pod_whose_volume_is_being_provisioned_is_preempted_at_once() -> None:
    life = Life(*zones(cpu="1"), make_class(delay="1h"), make_claim("claim", class_name="late"))
    life.add(uses("claim", priority=1))
    life.advance(1)
    assert life.place("pod") == ["assumed"]

    for name in ("first", "second"):
        life.add(make_pod(name, cpu="1", priority=10))
    life.advance(0)

    assert {life.pod(name).node_name for name in ("first", "second")} == {"n-a", "n-b"}
    assert f"{PRE_BIND}binding volumes: context canceled" in life.messages
    assert life.place("pod") == ["backoff"]
    check(life)


def test_writes_before_a_conflict_are_used_by_the_next_attempt() -> None:
    volumes = make_volume("v", zones=["a"]), make_volume("w", size="2Gi", zones=["a"])
    claims = make_claim("one"), make_claim("two", size="2Gi")
    life = Life(*zones(), make_storage_class(), *volumes, *claims, uses("one", "two"))
    life.api.before_write += [lambda obj: None, conflict]

    life.advance(0)
    assert life.claim("one").spec.volume_name == "v"
    assert not life.claim("two").spec.volume_name
    check(life)

    life.advance(10)
    assert life.pod().node_name == "n-a"
    assert [write.name for write in life.api.writes] == ["v", "w"]
    check(life)


# The pod is deleted


def test_the_claim_of_a_pod_deleted_during_provisioning_is_used_by_the_next() -> None:
    life = Life(*zones(), make_class(delay="10s"), make_claim(), uses("claim"))
    life.advance(3)
    assert life.place() == ["assumed"]

    life.cluster.delete(life.pod())
    life.advance(1)
    assert life.messages[-1].startswith(f"{PRE_BIND}binding volumes: pod does not exist any more")
    check(life)
    life.advance(10)
    assert life.claim().is_fully_bound
    assert life.scheduler is not None
    assert not len(life.scheduler.queue)

    life.add(uses("claim", name="next"))
    life.advance(1)
    assert life.pod("next").node_name == "n-a"
    check(life)


def test_a_pod_deleted_before_any_write_leaves_nothing() -> None:
    life = Life(*zones(), make_storage_class(), make_volume("v"), make_claim(), uses("claim"))
    life.api.delay_s = 5
    life.api.before_write.append(conflict)
    life.advance(1)
    life.cluster.delete(life.pod())

    life.advance(10)

    check(life)
    assert life.volume("v").spec.claim_ref is None
    life.add(make_claim("other"), uses("other", name="other"))
    life.advance(10)
    assert life.claim("other").spec.volume_name == "v"


# Claim, volume or node are deleted


def test_a_claim_deleted_during_provisioning_is_reported_missing() -> None:
    life = Life(*zones(), make_class(delay="10s"), make_claim(), uses("claim"))
    life.advance(3)

    life.cluster.delete(life.claim())
    life.advance(1)
    missing = 'persistentvolumeclaims "default/claim" not found'
    assert life.messages == [
        f"{PRE_BIND}binding volumes: failed to check provisioning pvc: {missing}"
    ]
    life.advance(30)
    assert life.place() == ["unschedulable"]
    assert 'persistentvolumeclaim "claim" not found' in life.messages[-1]
    assert life.cluster.count("PersistentVolume") == 0
    check(life)

    life.add(make_claim())
    life.advance(60)
    assert life.pod().node_name
    check(life)


def test_a_volume_deleted_before_it_is_bound_is_replaced() -> None:
    volumes = make_volume("v", zones=["a"]), make_volume("w", size="2Gi", zones=["b"])
    life = Life(*zones(), make_storage_class(), *volumes, make_claim(), uses("claim"))
    life.api.delay_s = 5
    life.advance(2)
    life.cluster.delete(life.volume("v"))

    life.advance(4)
    assert life.messages == [f'{PRE_BIND}PersistentVolume "v" not found']
    check(life)
    life.advance(20)
    assert life.claim().spec.volume_name == "w"
    assert life.pod().node_name == "n-b"
    check(life)


def test_a_node_deleted_during_provisioning_releases_the_claim() -> None:
    life = Life(*zones(), make_class(delay="10s"), make_claim(), uses("claim"))
    life.advance(3)

    node = life.cluster.get("Node", "", "n-a")
    assert node is not None
    life.cluster.delete(node)
    life.advance(1)
    assert life.messages[0].startswith(f'{PRE_BIND}binding volumes: failed to get node "n-a"')
    assert life.messages[0].endswith('node "n-a" not found')
    check(life)
    life.advance(60)
    assert life.pod().node_name == "n-b"
    check(life)


# The scheduler restarts


@pytest.mark.parametrize(
    "dies_at",
    [
        pytest.param(1, id="nothing is written"),
        pytest.param(3, id="the first of two volumes is written"),
        pytest.param(5, id="all is written, nothing is bound"),
        pytest.param(13, id="a volume was provisioned, the scheduler has not seen it"),
    ],
)
@pytest.mark.parametrize("down_s", [0.0, 60.0])
def test_a_restarted_scheduler_finishes_the_binding(dies_at: float, down_s: float) -> None:
    there = make_volume("v", zones=["a"], class_name="local")
    local = make_storage_class("local")
    claims = make_claim("one", class_name="local"), make_claim("two")
    objects = *zones(), local, make_class(delay="9.5s"), there, *claims
    life = Life(*objects, uses("one", "two"))
    life.api.delay_s = 2
    life.advance(dies_at)
    assert life.place() == ["assumed"]

    life.stop()
    life.advance(down_s)
    life.api.delay_s = 0
    life.start()
    life.advance(30)

    assert life.pod().node_name == "n-a"
    assert life.claim("one").spec.volume_name == "v"
    assert life.cluster.count("PersistentVolume") == 2
    check(life)


def test_a_restarted_scheduler_uses_the_node_of_the_volume() -> None:
    life = Life(*zones(), make_class(delay="20s"), make_claim(), uses("claim"))
    life.advance(5)
    life.stop()
    life.add(make_node("a-better-one", zone="b", cpu="64"))

    life.start()
    life.advance(30)

    assert life.pod().node_name == "n-a"
    check(life)
