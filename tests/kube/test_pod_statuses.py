"""Pod statuses are written one after the other, each as the difference to the last."""

import asyncio
from typing import Any

import msgspec
import pytest

from bayplan.api.pod import Pod, PodCondition
from bayplan.errors import ApiError
from bayplan.kube.pod_statuses import PodStatuses
from bayplan.testing.builders import make_pod

REFUSED = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")


class Server:
    """Accepts patches, and responds on request."""

    def __init__(self) -> None:
        self.pod: Pod = make_pod("p")
        self.sent: list[dict[str, Any]] = []
        self.under_way: list[asyncio.Future[bytes]] = []
        self.statuses = PodStatuses(self._send, lambda pod: self.pod, self._stored, lambda: "now")

    def _send(self, pod: Pod, patch: bytes) -> "asyncio.Future[bytes]":
        self.sent.append(msgspec.json.decode(patch)["status"])
        future = asyncio.get_running_loop().create_future()
        self.under_way.append(future)
        return future

    def _stored(self, pod: Pod, answer: bytes) -> None:
        self.pod = make_pod("p", uid=pod.uid, nominated_node_name=answer.decode())

    async def answer(self, nominated: str | ApiError) -> None:
        future = self.under_way.pop(0)
        if isinstance(nominated, ApiError):
            future.set_exception(nominated)
        else:
            future.set_result(nominated.encode())
        await asyncio.sleep(0)


def test_changes_during_a_patch_are_merged() -> None:
    async def run() -> Server:
        server = Server()
        server.statuses.write(server.pod, None, "a")
        server.statuses.write(server.pod, REFUSED, None)
        server.statuses.write(server.pod, None, "")
        assert len(server.sent) == 1
        await server.answer("a")
        await server.answer("")
        return server

    server = asyncio.run(run())

    first, second = server.sent
    assert first == {"nominatedNodeName": "a"}
    assert second["nominatedNodeName"] is None  # although no watch has shown the first
    assert second["conditions"][0]["reason"] == "Unschedulable"
    assert server.under_way == []


def test_a_change_reverted_at_once_is_written() -> None:
    """The watch still shows the pod without a nomination when the nomination ends."""

    async def run() -> Server:
        server = Server()
        server.statuses.write(server.pod, None, "a")
        await server.answer("a")
        server.statuses.write(make_pod("p"), None, "")
        return server

    assert asyncio.run(run()).sent == [{"nominatedNodeName": "a"}, {"nominatedNodeName": None}]


@pytest.mark.parametrize("code", [404, 500])
def test_a_failed_patch_does_not_block_the_next(code: int) -> None:
    async def run() -> Server:
        server = Server()
        server.statuses.write(server.pod, None, "a")
        server.statuses.write(server.pod, None, "b")
        await server.answer(ApiError("no", code=code))
        return server

    assert asyncio.run(run()).sent == [{"nominatedNodeName": "a"}, {"nominatedNodeName": "b"}]


def test_an_unchanged_status_is_not_written() -> None:
    async def run() -> Server:
        server = Server()
        server.statuses.write(server.pod, None, "")
        return server

    assert asyncio.run(run()).sent == []


@pytest.mark.parametrize("answer", ["a", ApiError("no", 500)], ids=["patched", "refused"])
def test_a_binding_follows_the_running_patch_and_replaces_what_waits(answer: Any) -> None:
    async def run() -> tuple[Server, list[str]]:
        server, bound = Server(), []
        server.statuses.write(server.pod, None, "a")
        server.statuses.write(server.pod, None, "b")
        server.statuses.bind_after(server.pod, lambda: bound.append("bound"))
        assert bound == []
        await server.answer(answer)
        return server, bound

    server, bound = asyncio.run(run())

    assert server.sent == [{"nominatedNodeName": "a"}]
    assert bound == ["bound"]


def test_a_binding_without_a_running_patch_is_sent_at_once() -> None:
    bound: list[str] = []
    unused: Any = None
    PodStatuses(unused, lambda pod: pod, unused, unused).bind_after(
        make_pod("p"), lambda: bound.append("bound")
    )
    assert bound == ["bound"]
