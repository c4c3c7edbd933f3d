"""DeviceWorld: a device plugin alone over a cluster in memory.

For tests that follow one pod from Filter to PreBind and inject faults on the way.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, cast

from bayplan.api.dra import ResourceClaim
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.framework import CycleState, Handle, Status, Verdict
from bayplan.framework.handle import Client
from bayplan.table import ALL, NodeTable
from bayplan.table.writer import TableWriter


class DeviceWorld:
    """A cluster in memory with slow or failing writes, and a plugin over it.

    Nodes among the `objects` are in the table. `failures` are the exceptions of the next writes,
    None for success. Time advances only while the plugin sleeps; `each_sleep` is called after that.
    """

    def __init__(self, plugin: Any, *objects: Any) -> None:
        self.cluster = MemoryCluster()
        self.writer = TableWriter(NodeTable())
        self.clock = ManualClock()
        self.failures: list[Exception | None] = []
        self.is_slow = False
        self.events: list[Any] = []
        self.each_sleep: Callable[[], None] = lambda: None
        for obj in objects:
            self.add(obj)
        self.plugin = plugin
        self.plugin.handle = Handle(
            self.writer.table,
            clock=self.clock,
            lister=self.cluster,
            client=cast(Client, self),  # only some of its methods are called
            sleep=self._sleep,
        )

    @property
    def table(self) -> NodeTable:
        return self.writer.table

    def add(self, obj: Any) -> Any:
        """Add an object to the cluster, and a node to the table."""
        if isinstance(obj, Node):
            self.writer.set_node(obj)
        return self.cluster.add(obj)

    # The client

    def update(self, obj: Any) -> Any:
        return self._write(self.cluster.update, obj)

    def update_status(self, obj: Any) -> Any:
        return self._write(self.cluster.update_status, obj)

    def create(self, obj: Any) -> Any:
        return self._write(self.cluster.create, obj)

    def delete(self, obj: Any) -> Any:
        return self._write(self.cluster.delete, obj)

    def record_event(self, event: Any) -> None:
        self.events.append(event)

    def _write(self, write: Callable[[Any], Any], obj: Any) -> Any:
        if self.is_slow:
            return self._write_late(write, obj)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return write(obj)

    async def _write_late(self, write: Callable[[Any], Any], obj: Any) -> Any:
        await self._sleep(1)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return write(obj)

    async def _sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.each_sleep()

    # The steps of a pod

    def claim(self, name: str = "claim") -> ResourceClaim:
        """The claim as stored."""
        found = self.cluster.get(ResourceClaim.kind, "default", name)
        assert isinstance(found, ResourceClaim), f"the cluster has no claim {name}"
        return found

    def pre_filter(self, pod: Pod) -> tuple[CycleState, Status]:
        """The state of a pod after PreFilter, and its status."""
        state = CycleState()
        return state, self.plugin.pre_filter(state, pod, self.table)

    def filter(self, pod: Pod) -> tuple[CycleState, Verdict]:
        """The state of a pod after Filter, and the verdict on all nodes."""
        state, status = self.pre_filter(pod)
        assert status.is_success, status.message
        return state, self.plugin.filter_rows(state, pod, self.table, ALL)

    def statuses(self, pod: Pod) -> dict[str, str]:
        """The Filter result of each node; empty for feasible."""
        _, verdict = self.filter(pod)
        names = [self.table.names[row] for row in self.table.numbers(self.table.live_rows)]
        assert verdict.error is None, verdict.error
        return {name: verdict.status(i).message for i, name in enumerate(names)}

    def reserve(self, pod: Pod, node: str = "a") -> CycleState:
        """The state of a pod after Reserve."""
        state, verdict = self.filter(pod)
        assert verdict.status(self.table.row_of[node]).is_success, verdict.status(0)
        status = self.plugin.reserve(state, pod.with_node(node), node)
        assert status.is_success, status.message
        return state

    def pre_bind(self, state: CycleState, pod: Pod, node: str = "a") -> Status:
        """The result of PreBind; no real time passes."""
        answer = self.plugin.pre_bind(state, pod.with_node(node), node)
        return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer

    def unreserve(self, state: CycleState, pod: Pod, node: str = "a") -> None:
        self.plugin.unreserve(state, pod.with_node(node), node)

    def place(self, pod: Pod, node: str = "a") -> list[str]:
        """Run a pod through PreBind; return its devices, written `request=pool/device`."""
        state = self.reserve(pod, node)
        status = self.pre_bind(state, pod, node)
        assert status.is_success, status.message
        return [
            device
            for claim in self.cluster.list(ResourceClaim.kind)
            if claim.is_reserved_for(pod)
            for device in devices_of(claim)
        ]


def devices_of(claim: ResourceClaim) -> list[str]:
    """The devices of a claim, written `request=pool/device`."""
    results = claim.allocation.devices.results if claim.allocation is not None else None
    return [f"{result.request}={result.pool}/{result.device}" for result in results or ()]


async def _awaited(answer: Any) -> Status:
    status: Status = await answer
    return status
