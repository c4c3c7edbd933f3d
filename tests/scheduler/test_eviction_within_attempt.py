"""Feature gate SchedulerAsyncPreemption with a client that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.cluster.memory import MemoryCluster
from bayplan.errors import ApiError
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.scenarios import Scenario

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


def test_attempts_go_on_after_a_deletion_that_failed() -> None:
    scenario = preempting(is_async=False, refuses=True)
    scenario.run()

    scenario.advance(3 * SECONDS + 60)

    assert scenario.pod("high").node_name == "a"
