"""StorageWorld: the volume binding plugin alone over a cluster in memory.

For tests that follow one pod from Filter to PreBind and inject faults on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from bayplan.api.pod import Pod
from bayplan.api.storage import BIND_COMPLETED
from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.framework import SUCCESS, CycleState, Handle, Status
from bayplan.framework.handle import Client
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.storage import claim_volume, make_claim

CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"


class StorageWorld:
    """A cluster in memory with failing writes, and the volume binding plugin over it.

    There are two nodes, `a` in zone z1 and `b` in z2. Time advances only while the plugin sleeps;
    `each_second` is called after that. `failures` are the exceptions of the next writes, None for
    success.
    """

    def __init__(self, plugin: Any, *objects: Any) -> None:
        self.cluster = MemoryCluster()
        for obj in objects:
            self.cluster.add(obj)
        self.clock = ManualClock()
        self.table = make_table(make_node("a", zone="z1"), make_node("b", zone="z2"))
        self.failures: list[Exception | None] = []
        self.written: list[tuple[str, str]] = []
        self.each_second: Callable[[float], object] = lambda now: None
        handle = Handle(
            self.table,
            clock=self.clock,
            lister=self.cluster,
            client=cast(Client, self),  # only writes are called
            sleep=self.sleep,
        )
        self.plugin = plugin
        self.plugin.handle = handle

    def update(self, obj: Any) -> Any:
        """Write for the plugin."""
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        self.written.append((obj.kind, obj.name))
        return self.cluster.update(obj)

    async def sleep(self, seconds: float) -> None:
        """Advance the clock for the plugin."""
        self.clock.advance(seconds)
        self.each_second(self.clock.monotonic())

    def claim(self, name: str = "c") -> Any:
        return self.cluster.get(CLAIM, "default", name)

    def volume(self, name: str = "v") -> Any:
        return self.cluster.get(VOLUME, "", name)

    def bind_claim(self, name: str, volume: str) -> None:
        """Simulate the volume controller."""
        claim = self.claim(name)
        bound = make_claim(
            name,
            size=None,
            volume=volume,
            annotations={**claim.annotations, BIND_COMPLETED: "yes"},
        )
        self.cluster.update(bound)

    def pod(self, *claims: str, name: str = "p") -> Pod:
        """A pod of the cluster that uses the claims."""
        volumes = [claim_volume(claim) for claim in claims]
        return self.cluster.add(make_pod(name, spec={"volumes": volumes}))

    def filtered(self, pod: Pod) -> CycleState:
        """The state of a pod after Filter."""
        state = CycleState()
        assert self.plugin.pre_filter(state, pod, self.table) == SUCCESS
        self.plugin.filter_rows(state, pod, self.table, ALL)
        return state

    def reserved(self, pod: Pod, node: str = "a") -> CycleState:
        """The state of a pod after Reserve."""
        state = self.filtered(pod)
        assert self.plugin.reserve(state, pod, node) == SUCCESS
        return state

    def pre_bind(self, state: CycleState, pod: Pod, node: str = "a") -> Status:
        """The result of PreBind; no real time passes."""
        placed = pod.with_node(node)
        return asyncio.run(_awaited(self.plugin.pre_bind(state, placed, node)))

    def fits(self, *claims: str) -> list[bool]:
        """The nodes on which another pod could use the claims."""
        pod = make_pod("other", spec={"volumes": [claim_volume(claim) for claim in claims]})
        state = CycleState()
        if not self.plugin.pre_filter(state, pod, self.table).is_success:
            return [False, False]
        verdict = self.plugin.filter_rows(state, pod, self.table, ALL)
        return [bool(f) for f in verdict.feasible]


async def _awaited(answer: Any) -> Status:
    status: Status = await answer
    return status
