"""Kube driver: the scheduler on the embedded API server, over the network, with threads and all."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from bayplan.api.pod import Pod
from bayplan.apiserver import make_kubeconfig
from bayplan.config import default_config
from bayplan.drivers.kube_driver import DriverOptions, KubeDriver
from bayplan.errors import ApiError
from bayplan.framework import (
    SKIP,
    SUCCESS,
    ActionType,
    CustomResource,
    CycleState,
    EventWithHint,
    FilterPlugin,
    NodeInfo,
    PreBindPlugin,
    Status,
    unschedulable,
    wait_for,
)
from bayplan.kube.connection import Connection
from bayplan.kube.credentials import load_credentials
from tests.rig.api_server import PODS, ServerInThread, api_server, node_tree, pod_tree

DEADLINE_S = 30.0
NODES = "/api/v1/nodes"
Work = Callable[[KubeDriver], Awaitable[None]]


@pytest.fixture
def server() -> Iterator[ServerInThread]:
    with api_server(runs_pods=False) as server:
        yield server


@pytest.fixture
def drive(server: ServerInThread, tmp_path: Path) -> Callable[..., None]:
    """Runs a driver on the server while some work is done."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(make_kubeconfig(server.server.url)))

    def run(work: Work, leads: bool = True, options: DriverOptions | None = None) -> None:
        async def go() -> None:
            connection = Connection(await load_credentials(path))
            driver = KubeDriver(connection, default_config(), options)
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await driver.start()
                    if leads:
                        driver.lead()
                    await driver.unless_it_fails(_as_coroutine(work(driver)))
            finally:
                await driver.stop()
                await connection.close()

        asyncio.run(go())

    return run


async def _as_coroutine(answer: Awaitable[None]) -> None:
    await answer


async def until(look: Callable[[], Any]) -> Any:
    """What `look` gives as soon as that is something; the test's deadline ends the wait."""
    while not (found := look()):
        await asyncio.sleep(0.01)
    return found


def node_of(server: ServerInThread, name: str) -> str:
    tree = server.get(f"{PODS}/{name}").tree
    return str(tree.get("spec", {}).get("nodeName", ""))


def condition(server: ServerInThread, name: str, kind: str) -> dict[str, Any]:
    status = server.get(f"{PODS}/{name}").tree.get("status", {})
    return next((c for c in status.get("conditions", ()) if c["type"] == kind), {})


def reasons(server: ServerInThread) -> set[tuple[str, str]]:
    items = server.get("/apis/events.k8s.io/v1/namespaces/default/events").tree["items"]
    return {(event["regarding"]["name"], event["reason"]) for event in items}


def asking(cpu: str, **spec: Any) -> dict[str, Any]:
    """The spec of a pod that asks for so much."""
    resources = {"requests": {"cpu": cpu}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}], **spec}


def make_pod(server: ServerInThread, name: str, cpu: str = "1", **spec: Any) -> None:
    server.make(PODS, {**pod_tree(name), "spec": asking(cpu, **spec)})


def test_waiting_and_new_pods_are_bound(server: ServerInThread, drive: Any) -> None:
    server.make(NODES, node_tree("a"), node_tree("b"))
    make_pod(server, "waiting")

    async def work(driver: KubeDriver) -> None:
        make_pod(server, "new")
        await until(lambda: node_of(server, "waiting") and node_of(server, "new"))
        await until(lambda: {("waiting", "Scheduled"), ("new", "Scheduled")} <= reasons(server))

    drive(work)

    assert {node_of(server, "waiting"), node_of(server, "new")} == {"a", "b"}


def test_many_pods_are_bound_once_each(server: ServerInThread, drive: Any) -> None:
    server.make(NODES, *[node_tree(f"n{i}") for i in range(20)])
    for i in range(150):
        make_pod(server, f"p{i}", "10m")

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
    make_pod(server, "big", "4", nodeSelector={"kubernetes.io/hostname": "later"})

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
    make_pod(server, "first")

    async def work(driver: KubeDriver) -> None:
        assert await driver.call(lambda: driver.cluster.count("Pod")) == 1
        assert not node_of(server, "first")
        assert not driver.is_leader()
        driver.lead()
        await until(lambda: node_of(server, "first"))
        driver.follow()
        make_pod(server, "second")
        await until(lambda: driver.cluster.get("Pod", "default", "second"))
        await driver.call(lambda: None)
        assert not node_of(server, "second")
        driver.lead()
        await until(lambda: node_of(server, "second"))

    drive(work, leads=False)


def test_lease_that_is_lost_in_between_stops_what_was_decided(
    server: ServerInThread, drive: Any
) -> None:
    leads = True
    server.make(NODES, node_tree("a"))
    make_pod(server, "first")

    async def work(driver: KubeDriver) -> None:
        nonlocal leads
        leads = False  # the scheduler is not told yet: it decides, and nothing is sent
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
    make_pod(server, "low", "3")

    async def work(driver: KubeDriver) -> None:
        await until(lambda: node_of(server, "low"))
        make_pod(server, "high", "3", priorityClassName="high")
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
    make_pod(server, "p")

    async def work(driver: KubeDriver) -> None:
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "b"}}
        server.post(f"{PODS}/p/binding", binding)
        driver.lead()
        make_pod(server, "next")
        await until(lambda: node_of(server, "next"))
        assert node_of(server, "p") == "b"
        assert len(await driver.call(lambda: list(driver.cluster.list("Pod")))) == 2

    drive(work, leads=False)


def test_plugin_that_blocks_holds_up_its_own_pod_only(server: ServerInThread, drive: Any) -> None:
    go_on, entered = threading.Event(), threading.Event()

    class Slow(PreBindPlugin):
        """Takes its time for one pod."""

        name = "Slow"

        def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            if pod.name == "slow":
                entered.set()
                assert go_on.wait(DEADLINE_S)
            return SUCCESS

    server.make(NODES, node_tree("a"))
    make_pod(server, "slow")

    async def work(driver: KubeDriver) -> None:
        await until(entered.is_set)
        make_pod(server, "quick")
        await until(lambda: node_of(server, "quick"))
        assert not node_of(server, "slow")
        go_on.set()
        await until(lambda: node_of(server, "slow"))

    drive(work, options=DriverOptions(plugins=[Slow]))


def test_preempted_plugin_that_blocks_reads_its_cancellation(
    server: ServerInThread, drive: Any
) -> None:
    entered, reasons_read = threading.Event(), []

    class Provisions(PreBindPlugin):
        """Blocks until the pod is preempted."""

        name = "Provisions"

        def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return SUCCESS if pod.name == "low" else SKIP

        def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            entered.set()
            assert state.cancellation.wait(DEADLINE_S)
            reasons_read.append(state.cancellation.reason)
            return SUCCESS

    server.make(NODES, node_tree("a"))
    make_pod(server, "low", cpu="4", priority=1)

    async def work(driver: KubeDriver) -> None:
        await until(entered.is_set)
        make_pod(server, "high", cpu="4", priority=1000)
        await until(lambda: node_of(server, "high"))
        assert not node_of(server, "low")

    drive(work, options=DriverOptions(plugins=[Provisions]))

    assert reasons_read == ["preempted by DefaultPreemption"]


def test_asynchronous_plugin_runs_on_the_schedulers_thread(
    server: ServerInThread, drive: Any
) -> None:
    threads: list[str] = []

    class Waits(PreBindPlugin):
        """Waits a little."""

        name = "Waits"

        async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            await self.handle.sleep(0)
            threads.append(threading.current_thread().name)
            return SUCCESS

    server.make(NODES, node_tree("a"))
    make_pod(server, "p")

    async def work(driver: KubeDriver) -> None:
        await until(lambda: node_of(server, "p"))

    drive(work, options=DriverOptions(plugins=[Waits]))

    assert threads == ["scheduler"]


def test_everything_that_is_refused_at_the_start_is_named_and_tried_again(
    server: ServerInThread, tmp_path: Path
) -> None:
    problems: set[str | None] = set()
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(make_kubeconfig(server.server.url)))

    class Guarded(Connection):
        async def request(self, method: str, path: str, *args: Any, **options: Any) -> bytes:
            plural = path.rpartition("/")[2]
            refused = {"v1": 503, "pods": 403, "nodes": 500}.get(plural)
            if refused is not None and plural not in allowed:
                allowed.add(plural)
                raise ApiError(f"{plural} is refused", refused)
            return await super().request(method, path, *args, **options)

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

    allowed: set[str] = set()
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


class SecretReader(PreBindPlugin):
    """Notes what it reads of the pods that it binds, and of their nodes."""

    name = "SecretReader"
    reads_whole_objects = True
    accounts: ClassVar[list[tuple[str, str]]] = []

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        node = self.handle.table.nodes[self.handle.table.row_of[node_name]]
        assert node is not None
        spec = self.handle.whole(pod)["spec"]
        provider = self.handle.whole(node)["spec"]["providerID"]
        self.accounts.append((spec["restartPolicy"], provider))
        return SUCCESS


def test_plugin_that_declares_it_reads_whole_objects(server: ServerInThread, drive: Any) -> None:
    SecretReader.accounts.clear()
    server.make(NODES, {**node_tree("a"), "spec": {"providerID": "cloud://a"}})
    make_pod(server, "waiting")

    async def work(driver: KubeDriver) -> None:
        make_pod(server, "new")
        await until(lambda: node_of(server, "waiting") and node_of(server, "new"))

    drive(work, options=DriverOptions(plugins=[SecretReader]))

    assert SecretReader.accounts == [("Always", "cloud://a")] * 2


def test_fields_that_cannot_be_read_are_counted(server: ServerInThread, drive: Any) -> None:
    options = DriverOptions()

    async def work(driver: KubeDriver) -> None:
        nodes = next(one for one in driver._reflectors if one.resource.kind.name == "Node")
        nodes.unreadable = 2

    drive(work, options=options)

    assert options.metrics.unreadable_objects.read() == {("Node",): 2}


class SwitchedOn(FilterPlugin):
    """Accepts nodes that a ConfigMap names, and reads a resource that no server has, too."""

    name = "SwitchedOn"
    custom_resources = (
        CustomResource("configmaps.v1.", "ConfigMap"),
        CustomResource("foos.v1.example.com", "Foo"),
    )

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert not self.handle.custom_objects("foos.v1.example.com").list()
        switch = self.handle.custom_objects("configmaps.v1.").get(node.name, "default")
        is_on = switch is not None and switch.raw["data"]["on"] == "yes"
        return SUCCESS if is_on else unschedulable("switched off")

    def events_to_register(self) -> Sequence[EventWithHint]:
        return [wait_for("configmaps.v1.", ActionType.All)]


def test_objects_of_a_resource_of_a_plugin_are_followed(server: ServerInThread, drive: Any) -> None:
    folder = "/api/v1/namespaces/default/configmaps"
    server.make(NODES, node_tree("a"), node_tree("b"))
    off = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"on": "no"}}
    server.make(folder, off)
    make_pod(server, "p")

    async def work(driver: KubeDriver) -> None:
        refused = await until(lambda: condition(server, "p", "PodScheduled"))
        assert "2 switched off" in refused["message"]
        server.put(f"{folder}/a", {**off, "data": {"on": "yes"}})
        await until(lambda: node_of(server, "p"))

    drive(work, options=DriverOptions(plugins=[SwitchedOn]))

    assert node_of(server, "p") == "a"


class Fails(FilterPlugin):
    """Raises for one pod."""

    name = "Fails"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if pod.name == "p":
            raise KeyError("missing")
        return SUCCESS


def test_a_pod_that_a_fault_of_a_plugin_fails_has_the_message_once(
    server: ServerInThread, drive: Any
) -> None:
    server.make(NODES, node_tree("a"))
    make_pod(server, "p")

    async def work(driver: KubeDriver) -> None:
        await until(lambda: ("p", "FailedScheduling") in reasons(server))
        server.make(NODES, node_tree("b"))  # which is no reason to try it again
        make_pod(server, "q")
        await until(lambda: ("q", "Scheduled") in reasons(server))

    drive(work, options=DriverOptions(plugins=[Fails]))

    found = condition(server, "p", "PodScheduled")
    items = server.get("/apis/events.k8s.io/v1/namespaces/default/events").tree["items"]
    (event,) = [event for event in items if event["regarding"]["name"] == "p"]
    assert found["reason"] == "SchedulerError"
    assert re.fullmatch(
        r'running "Fails" filter plugin: .*test_kube_driver.py:\d+: filter_node: '
        r"KeyError: 'missing'",
        found["message"],
    )
    assert (event["note"], event.get("series")) == (found["message"], None)


@pytest.mark.parametrize(
    "is_on",
    [
        pytest.param(True, id="on: it is asked for"),
        pytest.param(False, id="off: it is not"),
    ],
)
def test_a_kind_behind_a_feature_gate_is_read_with_the_gate(
    drive: Any, caplog: pytest.LogCaptureFixture, is_on: bool
) -> None:
    caplog.set_level("INFO")

    async def work(driver: KubeDriver) -> None:
        pass  # the start is enough

    drive(work, options=DriverOptions(feature_gates={"DRADeviceTaintRules": is_on}))

    assert ("devicetaintrules" in caplog.text) is is_on
