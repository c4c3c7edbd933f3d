"""Feature gate SchedulerAsyncPreemption with a client that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.errors import ApiError
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario

SECONDS = 5


class SlowCluster(MemoryCluster):
    """Evictions take a while; `refuses`: and then fail once."""

    refuses = False

    def evict(self, victim: Pod, preemptor: Any) -> Awaitable[None]:  # type: ignore[override]
        return self._evict_late(victim, preemptor)

    async def _evict_late(self, victim: Pod, preemptor: Any) -> None:
        await asyncio.sleep(SECONDS)
        if self.refuses:
            self.refuses = False
            raise ApiError("not now")
        super().evict(victim, preemptor)


def preempting(is_async: bool, refuses: bool = False) -> Scenario:
    """A pod that evicts another; a third that fits on another node comes after it."""
    cluster = SlowCluster()
    cluster.refuses = refuses
    scenario = Scenario(
        make_node("a", cpu="1"),
        make_node("b", cpu="1", labels={"kind": "other"}),
        make_pod("low", cpu="1", node_name="a"),
        cluster=cluster,
        feature_gates={"SchedulerAsyncPreemption": is_async},
    )
    scenario.add(
        make_pod("high", cpu="1", priority=10, node_selector={"kubernetes.io/hostname": "a"})
    )
    return scenario


@pytest.mark.parametrize(
    ("is_async", "attempts"),
    [
        pytest.param(True, ["high", "other"], id="on: the next pod is tried at once"),
        pytest.param(False, ["high"], id="off: the next pod waits for the deletion"),
    ],
)
def test_the_pod_after_a_preemptor(is_async: bool, attempts: list[str]) -> None:
    scenario = preempting(is_async)
    scenario.add(make_pod("other", cpu="1", node_selector={"kind": "other"}))

    assert [attempt.pod.name for attempt in scenario.run()] == attempts

    scenario.advance(SECONDS + 60)
    assert scenario.pod("other").node_name == "b"
    assert scenario.pod("high").node_name == "a"


def test_a_deletion_that_fails_fails_the_attempt() -> None:
    scenario = preempting(is_async=False, refuses=True)
    scenario.add(make_pod("other", cpu="1", node_selector={"kind": "other"}))
    scenario.run()
    assert scenario.part_of("high") == "in flight"

    scenario.advance(SECONDS + 60)

    assert scenario.pod("other").node_name == "b"
    (attempt,) = [attempt for attempt in scenario.ended if attempt.pod.name == "high"]
    assert attempt.message.endswith("preemption: not now")
    assert scenario.pod("high").nominated_node_name == ""
    assert scenario.part_of("high") == "unschedulable"
    scenario.advance(330)
    assert scenario.pod("high").node_name == "a"


def test_lower_nominations_end_when_the_victims_are_deleted() -> None:
    scenario = preempting(is_async=False)
    scenario.add(make_pod("lower", cpu="1", priority=5, nominated_node_name="a"))
    scenario.run()
    assert scenario.pod("lower").nominated_node_name == "a"

    scenario.advance(SECONDS)

    assert scenario.pod("lower").nominated_node_name == ""


def test_a_victim_of_an_attempt_is_deleted_before_the_attempt_ends() -> None:
    scenario = preempting(is_async=False)
    scenario.run()
    assert scenario.ended == []

    scenario.advance(SECONDS)

    assert [attempt.nominated_node_name for attempt in scenario.ended][:1] == ["a"]
    assert scenario.cluster.get("Pod", "default", "low") is None
