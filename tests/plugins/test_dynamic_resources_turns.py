"""Pods that share a claim write it one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bayplan.framework import SUCCESS, Status
from bayplan.framework.turns import Turn, Turns
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.testing.builders import make_node
from bayplan.testing.devices import claiming, make_claim, make_class, make_slice
from tests.rig.device_world import DeviceWorld

PODS = 20


class BusyWorld(DeviceWorld):
    """Its client is slow; other pods continue meanwhile."""

    writes = 0

    async def _write_late(self, write: Callable[[Any], Any], obj: Any) -> Any:
        self.writes += 1
        for _ in range(5):
            await asyncio.sleep(0)
        return write(obj)


def begin(count: int) -> tuple[BusyWorld, list[Any]]:
    """Pods that use the same claim, whose PreBind is about to begin."""
    made = BusyWorld(
        DynamicResources(), make_node("a"), make_class("gpu"), make_slice("s", "d0", node="a")
    )
    made.add(make_claim("c", devices=["a/d0"], node="a"))
    made.is_slow = True
    pods = [made.add(claiming("c", name=f"pod-{i}")) for i in range(count)]
    states = [made.reserve(pod) for pod in pods]
    return made, [
        made.plugin.pre_bind(state, pod.with_node("a"), "a")
        for state, pod in zip(states, pods, strict=True)
    ]


def users(made: DeviceWorld) -> list[str]:
    return [user.name for user in made.claim("c").status.reserved_for or ()]


def test_pods_that_share_a_claim_cause_no_conflicts() -> None:
    made, answers = begin(PODS)

    async def all_of_them() -> list[Status]:
        return list(await asyncio.gather(*answers))

    assert asyncio.run(all_of_them()) == [SUCCESS] * PODS
    assert users(made) == [f"pod-{i}" for i in range(PODS)]
    assert made.writes == PODS


def test_a_pod_that_gives_up_holds_up_no_other() -> None:
    made, answers = begin(3)

    async def without_the_second() -> list[Any]:
        tasks = [asyncio.ensure_future(answer) for answer in answers]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = asyncio.run(without_the_second())

    assert (first, third) == (SUCCESS, SUCCESS)
    assert isinstance(second, asyncio.CancelledError)
    assert users(made) == ["pod-0", "pod-2"]


def due(*turns: Turn) -> list[bool]:
    return [turn.is_due for turn in turns]


def test_the_line_is_in_order_and_ends() -> None:
    turns = Turns()
    first, second, third = turns.join("c"), turns.join("c"), turns.join("c")
    other = turns.join("d")
    assert due(first, second, third, other) == [True, False, False, True]

    turns.leave("c", second)
    assert due(first, third) == [True, False]
    turns.leave("c", first)
    assert due(third) == [True]
    turns.leave("c", third)

    assert turns.join("c").is_due
