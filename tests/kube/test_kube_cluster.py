"""KubeCluster: reads delivered objects, sends writes, and bases each write on its original."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bayplan.api.pod import Pod, PodCondition
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.clock import ManualClock
from bayplan.errors import ApiError, ConflictError, NotFoundError
from bayplan.framework.handle import PodEvent
from bayplan.kube import kube_cluster as module
from bayplan.kube.kube_cluster import KubeCluster
from bayplan.kube.reflector import ObjectEvent
from bayplan.kube.sender import Order, PostOrder


def claim(version: str, annotations: dict[str, str] | None = None, uid: str = "u") -> Any:
    metadata = {"name": "c", "namespace": "n", "uid": uid, "resourceVersion": version}
    if annotations:
        metadata["annotations"] = annotations  # type: ignore[assignment]
    return decode_object(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    )


def annotated(obj: Any, **annotations: str) -> Any:
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))


def pod(**fields: Any) -> Pod:
    return Pod("p", "n", uid="u", **fields)


class Outside:
    """Executes orders as the API server would: `reply` gives the response to each request."""

    def __init__(self, reply: Callable[[str, str, Any], Any]) -> None:
        self._reply = reply
        self.requests: list[tuple[str, str, Any]] = []
        self.events: list[PodEvent] = []
        self.cluster: KubeCluster
        self._tasks: set[Any] = set()

    def take(self, order: Order | PostOrder) -> None:
        task = asyncio.get_running_loop().create_task(self._do(order))
        self._tasks.add(task)

    async def _do(self, order: Order | PostOrder) -> None:
        answer, problem = None, None
        try:
            if isinstance(order, PostOrder):
                answer = await self.request("POST", order.path, order.body)
            else:
                answer = await order.job(self)  # type: ignore[arg-type]
        except ApiError as error:
            problem = error
        if order.future is not None:
            self.cluster.answer((order.future, answer, problem))

    async def request(self, method: str, path: str, body: bytes, content_type: str = "") -> bytes:
        tree = msgspec.json.decode(body)
        self.requests.append((method, path, tree))
        answer = self._reply(method, path, tree)
        if isinstance(answer, ApiError):
            raise answer
        return msgspec.json.encode(answer)

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        return await self.request("PATCH", path, body)


def run(outside: Outside, work: Callable[[KubeCluster], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        loop = asyncio.get_running_loop()
        outside.cluster = KubeCluster(loop, ManualClock(), outside.take, outside.events.append)
        async with asyncio.timeout(20):
            return await work(outside.cluster)

    return asyncio.run(go())


def echo(version: str) -> Callable[[str, str, Any], Any]:
    """A fake server that stores the annotations it receives, with a version."""
    return lambda method, path, tree: to_dict(
        claim(version, tree.get("metadata", {}).get("annotations"))
    )


def test_changes_are_applied_and_watchers_are_notified() -> None:
    told: list[tuple[str, str]] = []

    class Handler:
        def on_add(self, obj: Any) -> None:
            told.append(("add", obj.resource_version))

        def on_update(self, old: Any, new: Any) -> None:
            told.append((f"update {old.resource_version}", new.resource_version))

        def on_delete(self, obj: Any) -> None:
            told.append(("delete", obj.resource_version))

    async def work(cluster: KubeCluster) -> None:
        cluster.watch(Handler())
        cluster.apply([ObjectEvent("ADDED", claim("1")), ObjectEvent("MODIFIED", claim("2"))])
        cluster.apply([ObjectEvent("DELETED", claim("3")), ObjectEvent("DELETED", claim("3"))])

    run(Outside(echo("1")), work)

    assert told == [("add", "1"), ("update 1", "2"), ("delete", "3")]


def test_binding_names_the_pod_by_its_uid() -> None:
    outside = Outside(lambda *request: {})

    async def work(cluster: KubeCluster) -> None:
        await cluster.bind(pod(), "node")

    run(outside, work)

    assert outside.requests == [
        (
            "POST",
            "/api/v1/namespaces/n/pods/p/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "p", "namespace": "n", "uid": "u"},
                "target": {"kind": "Node", "name": "node"},
            },
        )
    ]


def test_binding_that_is_refused_raises() -> None:
    async def work(cluster: KubeCluster) -> None:
        await cluster.bind(pod(), "node")

    with pytest.raises(ConflictError, match="already assigned"):
        run(Outside(lambda *request: ConflictError("already assigned")), work)


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(None, id="an existing pod"),
        pytest.param(NotFoundError("gone"), id="a deleted pod"),
        pytest.param(ConflictError("another uid"), id="a pod replaced under its name"),
    ],
)
def test_eviction_writes_the_condition_and_deletes_the_same_pod(problem: ApiError | None) -> None:
    outside = Outside(lambda method, *rest: problem if method == "DELETE" and problem else {})

    async def work(cluster: KubeCluster) -> None:
        cluster.apply([ObjectEvent("ADDED", pod(node_name="node"))])
        answer = cluster.evict(pod(node_name="node"), Pod("winner", uid="w"))
        assert answer is not None
        await answer

    run(outside, work)

    assert [(method, path) for method, path, _ in outside.requests] == [
        ("PATCH", "/api/v1/namespaces/n/pods/p/status"),
        ("DELETE", "/api/v1/namespaces/n/pods/p"),
    ]
    (condition,) = outside.requests[0][2]["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    assert outside.requests[1][2] == {"preconditions": {"uid": "u"}}
    assert [event.reason for event in outside.events] == ["Preempted"]


def test_eviction_that_fails_raises() -> None:
    async def work(cluster: KubeCluster) -> None:
        cluster.apply([ObjectEvent("ADDED", pod(node_name="node"))])
        answer = cluster.evict(pod(node_name="node"), Pod("winner", uid="w"))
        assert answer is not None
        await answer

    with pytest.raises(ApiError, match="forbidden"):
        run(Outside(lambda *request: ApiError("forbidden", 403)), work)


def test_pod_that_is_being_deleted_is_not_evicted_again() -> None:
    async def work(cluster: KubeCluster) -> Any:
        cluster.apply([ObjectEvent("ADDED", pod(deletion_timestamp="2026-01-01T00:00:00Z"))])
        return cluster.evict(pod(), Pod("winner"))

    assert run(Outside(lambda *request: {}), work) is None


def test_an_unchanged_status_is_not_written() -> None:
    outside = Outside(lambda *request: {})
    condition = PodCondition(type="PodScheduled", status="False")

    async def work(cluster: KubeCluster) -> None:
        stored = pod().with_status(replace(pod().status, conditions=(condition,)))
        cluster.patch_status(stored, condition, "")
        await asyncio.sleep(0)

    run(outside, work)

    assert outside.requests == []


def test_write_is_based_on_what_was_read() -> None:
    outside = Outside(echo("8"))

    async def work(cluster: KubeCluster) -> Any:
        cluster.apply([ObjectEvent("ADDED", claim("7"))])
        return await cluster.update(annotated(claim("7"), a="1"))

    written = run(outside, work)

    assert written.resource_version == "8"
    metadata = {"uid": "u", "resourceVersion": "7", "annotations": {"a": "1"}}
    assert outside.requests == [
        ("PATCH", "/api/v1/namespaces/n/persistentvolumeclaims/c", {"metadata": metadata})
    ]


def test_second_write_is_based_on_the_first_before_a_watch_shows_it() -> None:
    outside = Outside(echo("8"))

    async def work(cluster: KubeCluster) -> None:
        cluster.apply([ObjectEvent("ADDED", claim("7"))])
        written = await cluster.update(annotated(claim("7"), a="1"))
        await cluster.update_status(annotated(written, a="1", b="2"))
        assert cluster._written
        cluster.apply([ObjectEvent("MODIFIED", claim("8"))])
        assert not cluster._written

    run(outside, work)

    _, path, tree = outside.requests[1]
    assert path.endswith("/status")
    assert tree["metadata"] == {"uid": "u", "resourceVersion": "8", "annotations": {"b": "2"}}


def test_a_write_based_on_a_stale_object_is_a_conflict_at_once() -> None:
    outside = Outside(echo("9"))

    async def work(cluster: KubeCluster) -> None:
        cluster.apply([ObjectEvent("ADDED", claim("8"))])
        await cluster.update(annotated(claim("7"), a="1"))

    with pytest.raises(ConflictError):
        run(outside, work)
    assert outside.requests == []


def test_a_write_of_a_deleted_object_is_not_found() -> None:
    async def work(cluster: KubeCluster) -> None:
        await cluster.update(claim("7"))

    with pytest.raises(NotFoundError):
        run(Outside(echo("9")), work)


def test_a_conflict_is_raised_when_its_cause_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CONFLICT_WAIT_S", 10.0)
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    outside = Outside(lambda *request: ConflictError("changed"))

    async def work(cluster: KubeCluster) -> None:
        cluster.apply([ObjectEvent("ADDED", claim("7"))])
        task = asyncio.ensure_future(cluster.update(annotated(claim("7"), a="1")))
        while not outside.requests:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
        cluster.apply([ObjectEvent("MODIFIED", claim("8"))])
        with pytest.raises(ConflictError):
            await task

    run(outside, work)
