"""Conditions of PodGroups are sent as strategic merge patches, one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bayplan.api.pod_groups import PodGroup, PodGroupCondition, PodGroupStatus
from bayplan.api.wire.encode import to_dict
from bayplan.clock import ManualClock
from bayplan.errors import ApiError, NotFoundError
from bayplan.kube.connection import STRATEGIC_MERGE_PATCH
from bayplan.kube.kube_cluster import KubeCluster
from bayplan.kube.pod_statuses import group_status_patch
from bayplan.kube.reflector import ObjectEvent
from bayplan.kube.sender import Order, PostOrder
from bayplan.testing.builders import make_object

PATH = "/apis/scheduling.k8s.io/v1alpha2/namespaces/n/podgroups/g/status"
TIME = "2026-01-01T00:00:00Z"
WAITING = PodGroupCondition(
    type="PodGroupScheduled",
    status="False",
    reason="Unschedulable",
    message="m",
    last_transition_time=TIME,
)
PLACED = PodGroupCondition(
    type="PodGroupScheduled", status="True", reason="Scheduled", last_transition_time=TIME
)


def make_group(version: str = "1", *conditions: PodGroupCondition, uid: str = "u") -> PodGroup:
    metadata = {"uid": uid, "resourceVersion": version}
    group: PodGroup = make_object("PodGroup", "g", namespace="n", metadata=metadata)
    return with_conditions(group, *conditions)


def with_conditions(group: PodGroup, *conditions: PodGroupCondition) -> PodGroup:
    return replace(group, status=PodGroupStatus(conditions=conditions or None))


class FakeServer:
    """Stores the conditions that it is sent; answers wait until `release` is called, if `is_slow`."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.error = error
        self.sent: list[Any] = []
        self.held: list[asyncio.Event] = []
        self.is_slow = False
        self.cluster: KubeCluster
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, order: Order | PostOrder) -> None:
        assert isinstance(order, Order)
        self._tasks.add(asyncio.get_running_loop().create_task(self._do(order)))

    async def _do(self, order: Order) -> None:
        assert order.future is not None
        try:
            answer = await order.job(self)  # type: ignore[arg-type]
        except ApiError as error:
            self.cluster.answer((order.future, None, error))
        else:
            self.cluster.answer((order.future, answer, None))

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        assert (path, content_type) == (PATH, STRATEGIC_MERGE_PATCH)
        tree = msgspec.json.decode(body)
        self.sent.append(tree)
        if self.is_slow:
            self.held.append(asyncio.Event())
            await self.held[-1].wait()
        if self.error is not None:
            raise self.error
        conditions = msgspec.convert(tree["status"]["conditions"], tuple[PodGroupCondition, ...])
        version = str(len(self.sent) + 1)
        return msgspec.json.encode(to_dict(make_group(version, *conditions)))


def run(server: FakeServer, work: Callable[[KubeCluster], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        loop = asyncio.get_running_loop()
        server.cluster = KubeCluster(loop, ManualClock(), server.take, lambda event: None)
        server.cluster.apply([ObjectEvent("ADDED", make_group())])
        async with asyncio.timeout(20):
            return await work(server.cluster)

    return asyncio.run(go())


def sent(*conditions: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "u"}, "status": {"conditions": list(conditions)}}


def test_a_patch_has_only_the_conditions_that_differ() -> None:
    other = PodGroupCondition(type="Other", status="True", reason="R", last_transition_time=TIME)
    old = make_group("1", other)

    patch = group_status_patch(old, with_conditions(old, other, PLACED))

    assert patch is not None
    assert msgspec.json.decode(patch) == sent(
        {
            "type": "PodGroupScheduled",
            "status": "True",
            "reason": "Scheduled",
            "message": "",
            "lastTransitionTime": TIME,
        }
    )
    assert group_status_patch(old, with_conditions(old, other)) is None


def test_a_condition_is_sent_without_being_awaited() -> None:
    server = FakeServer()

    async def work(cluster: KubeCluster) -> None:
        cluster.update_status(with_conditions(make_group(), WAITING))
        while not cluster._written:
            await asyncio.sleep(0)

    run(server, work)

    assert [tree["status"]["conditions"][0]["message"] for tree in server.sent] == ["m"]


def test_a_group_that_was_changed_meanwhile_is_written_all_the_same() -> None:
    server = FakeServer()

    async def work(cluster: KubeCluster) -> Any:
        cluster.apply([ObjectEvent("MODIFIED", make_group("5"))])
        return await cluster.update_status(with_conditions(make_group("1"), WAITING))

    written = run(server, work)

    assert written.resource_version == "2"
    assert len(server.sent) == 1


def test_a_second_write_follows_the_first() -> None:
    server = FakeServer()
    server.is_slow = True

    async def work(cluster: KubeCluster) -> None:
        first = cluster.update_status(with_conditions(make_group(), WAITING))
        second = cluster.update_status(with_conditions(make_group(), PLACED))
        while not server.held:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(server.sent) == 1
        server.held[0].set()
        await first
        while len(server.held) < 2:
            await asyncio.sleep(0)
        server.held[1].set()
        await second

    run(server, work)

    statuses = [tree["status"]["conditions"][0]["status"] for tree in server.sent]
    assert statuses == ["False", "True"]


def test_an_unchanged_status_is_not_sent() -> None:
    server = FakeServer()

    async def work(cluster: KubeCluster) -> None:
        await cluster.update_status(with_conditions(make_group(), WAITING))
        await cluster.update_status(with_conditions(make_group(), WAITING))

    run(server, work)

    assert len(server.sent) == 1


def test_a_refusal_is_raised_and_the_next_write_is_sent() -> None:
    server = FakeServer(ApiError("no", 403))

    async def work(cluster: KubeCluster) -> None:
        with pytest.raises(ApiError, match="no"):
            await cluster.update_status(with_conditions(make_group(), WAITING))
        server.error = None
        await cluster.update_status(with_conditions(make_group(), PLACED))

    run(server, work)

    assert len(server.sent) == 2


def test_another_group_of_the_name_is_not_written() -> None:
    server = FakeServer()

    async def work(cluster: KubeCluster) -> None:
        await cluster.update_status(with_conditions(make_group(uid="old"), WAITING))

    with pytest.raises(NotFoundError):
        run(server, work)
    assert server.sent == []
