"""Kube driver: the scheduler on the embedded API server, over the network, with threads and all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from bayplan.config.defaults import default_config
from bayplan.drivers.kube_driver import DriverOptions, KubeDriver
from bayplan.errors import ApiError
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from bayplan.kube.post_pipeline import PostPool
from tests.drivers.driven_server import (
    DEADLINE_S,
    NODES,
    condition,
    node_of,
    post_pod,
    reasons,
    until,
)
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree


def test_waiting_and_new_pods_are_bound(server: ServerInThread, drive: Any) -> None:
    server.make(NODES, node_tree("a"), node_tree("b"))
    post_pod(server, "waiting")

    async def work(driver: KubeDriver) -> None:
        post_pod(server, "new")
        await until(lambda: node_of(server, "waiting") and node_of(server, "new"))
        await until(lambda: {("waiting", "Scheduled"), ("new", "Scheduled")} <= reasons(server))

    drive(work)

    assert {node_of(server, "waiting"), node_of(server, "new")} == {"a", "b"}


def test_many_pods_are_bound_once_each(server: ServerInThread, drive: Any) -> None:
    server.make(NODES, *[node_tree(f"n{i}") for i in range(20)])
    for i in range(150):
        post_pod(server, f"p{i}", "10m")

    def all_bound() -> bool:
        items = server.get(PODS).tree["items"]
        return all(item["spec"].get("nodeName") for item in items)

    async def work(driver: KubeDriver) -> None:
        await until(all_bound)
        await until(lambda: len(reasons(server)) == 150)
        assert await driver.call(lambda: driver.metrics.bindings.value) == 0

    drive(work)


def test_pod_without_room_says_so_and_takes_the_node_that_comes(
    server: ServerInThread, drive: Any
) -> None:
    server.make(NODES, node_tree("small"))
    post_pod(server, "big", "4", nodeSelector={"kubernetes.io/hostname": "later"})

    async def work(driver: KubeDriver) -> None:
        said = await until(lambda: condition(server, "big", "PodScheduled"))
        assert (said["status"], said["reason"]) == ("False", "Unschedulable")
        assert "didn't match Pod's node affinity/selector" in said["message"]
        await until(lambda: ("big", "FailedScheduling") in reasons(server))
        server.make(NODES, node_tree("later"))
        await until(lambda: node_of(server, "big") == "later")

    drive(work)


def test_nothing_is_bound_before_it_leads_or_after(server: ServerInThread, drive: Any) -> None:
    server.make(NODES, node_tree("a"))
    post_pod(server, "first")

    async def work(driver: KubeDriver) -> None:
        assert await driver.call(lambda: driver.cluster.count("Pod")) == 1
        assert not node_of(server, "first")
        assert not driver.is_leader()
        driver.lead()
        await until(lambda: node_of(server, "first"))
        driver.follow()
        post_pod(server, "second")
        await until(lambda: driver.cluster.get("Pod", "default", "second"))
        await driver.call(lambda: None)
        assert not node_of(server, "second")
        driver.lead()
        await until(lambda: node_of(server, "second"))

    drive(work, leads=False)


def test_the_connection_for_bindings_is_made_before_there_is_one(
    server: ServerInThread, drive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[PostPool] = []
    monkeypatch.setattr(PostPool, "open_first", lambda pool: opened.append(pool))

    async def work(driver: KubeDriver) -> None:
        assert len(opened) == 1

    drive(work, leads=False)


def test_lease_that_is_lost_in_between_stops_what_was_decided(
    server: ServerInThread, drive: Any
) -> None:
    leads = True
    server.make(NODES, node_tree("a"))
    post_pod(server, "first")

    async def work(driver: KubeDriver) -> None:
        nonlocal leads
        leads = False  # the scheduler does not know yet: it decides, and nothing is sent
        driver.lead()
        while await driver.call(lambda: backing_off(driver)) == 0:
            await asyncio.sleep(0.01)
        assert not node_of(server, "first")
        leads = True
        await until(lambda: node_of(server, "first"))

    def backing_off(driver: KubeDriver) -> int:
        source = driver.metrics.pending_pods.source
        assert source is not None
        return int(source()["backoff",])

    drive(work, leads=False, options=DriverOptions(is_leading=lambda: leads))


def test_pods_of_lower_priority_make_room(server: ServerInThread, drive: Any) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    server.make(classes, {"metadata": {"name": "high"}, "value": 1000})
    server.make(NODES, node_tree("a"))
    post_pod(server, "low", "3")

    async def work(driver: KubeDriver) -> None:
        await until(lambda: node_of(server, "low"))
        post_pod(server, "high", "3", priorityClassName="high")
        await until(lambda: is_going(server, "low"))
        assert condition(server, "low", "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        server.delete(f"{PODS}/low", {"gracePeriodSeconds": 0})
        await until(lambda: node_of(server, "high") == "a")
        await until(lambda: ("low", "Preempted") in reasons(server))

    drive(work)


def is_going(server: ServerInThread, name: str) -> bool:
    answer = server.get(f"{PODS}/{name}")
    return answer.status == 404 or "deletionTimestamp" in answer.tree["metadata"]


def test_pod_that_another_bound_is_left_alone(server: ServerInThread, drive: Any) -> None:
    server.make(NODES, node_tree("a"), node_tree("b"))
    post_pod(server, "p")

    async def work(driver: KubeDriver) -> None:
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "b"}}
        server.post(f"{PODS}/p/binding", binding)
        driver.lead()
        post_pod(server, "next")
        await until(lambda: node_of(server, "next"))
        assert node_of(server, "p") == "b"
        assert len(await driver.call(lambda: list(driver.cluster.list("Pod")))) == 2

    drive(work, leads=False)


def test_everything_that_is_refused_at_the_start_is_named_and_tried_again(
    server: ServerInThread, tmp_path: Path
) -> None:
    problems: set[str | None] = set()
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(make_kubeconfig(server.server.url)))

    class Guarded(Connection):
        async def request(self, method: str, path: str, *args: Any, **options: Any) -> bytes:
            self.refuse(path, "list")
            return await super().request(method, path, *args, **options)

        @asynccontextmanager
        async def stream(self, path: str, *args: Any, **options: Any) -> AsyncIterator[Any]:
            self.refuse(path, "watch")
            async with super().stream(path, *args, **options) as body:
                yield body

        def refuse(self, path: str, verb: str) -> None:
            plural = path.rpartition("/")[2]
            refused = {"v1": 503, "pods": 403, "nodes": 500}.get(plural)
            if refused is not None and (plural, verb) not in allowed:
                allowed.add((plural, verb))
                raise ApiError(f"{plural} is refused", refused)

    async def go() -> None:
        connection = Guarded(await load_credentials(path))
        driver = KubeDriver(connection, default_config())
        try:
            async with asyncio.timeout(DEADLINE_S):
                starting = asyncio.ensure_future(driver.start())
                while not starting.done():
                    problems.add(driver.problem())
                    await asyncio.sleep(0.01)
                await starting
                assert driver.problem() is None
        finally:
            await driver.stop()
            await connection.close()

    allowed: set[tuple[str, str]] = set()
    asyncio.run(go())

    said = " ".join(map(str, problems))
    assert "handlers are not fully synchronized; v1 is refused" in said
    assert "pods: pods is refused" in said
    assert "nodes: nodes is refused" in said


def test_work_on_the_schedulers_thread_returns_or_raises(
    server: ServerInThread, drive: Any
) -> None:
    def wrong() -> None:
        raise ValueError("wrong")

    async def work(driver: KubeDriver) -> None:
        assert await driver.call(lambda: 7) == 7
        with pytest.raises(ValueError, match="wrong"):
            await driver.call(wrong)

    drive(work)


def test_scheduler_that_breaks_ends_the_driver(server: ServerInThread, drive: Any) -> None:
    class Broken(Exception):  # noqa: N818
        pass

    async def work(driver: KubeDriver) -> None:
        def breaks() -> None:
            raise Broken

        driver.core.loop.call_soon_threadsafe(breaks)
        await asyncio.sleep(DEADLINE_S)

    with pytest.raises(Broken):
        drive(work)
