"""Plugins under the driver of `run`: threads, whole objects, custom resources, faults."""

import re
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from bayplan.api.pod import Pod
from bayplan.drivers.kube_driver import DriverOptions, KubeDriver
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
from tests.drivers.driven_server import (
    DEADLINE_S,
    NODES,
    condition,
    node_of,
    post_pod,
    reasons,
    until,
)
from tests.rig.api_server import ServerInThread
from tests.rig.trees import node_tree


def test_plugin_that_blocks_holds_up_its_own_pod_only(server: ServerInThread, drive: Any) -> None:
    go_on, entered = threading.Event(), threading.Event()

    class Slow(PreBindPlugin):
        """Slow for one pod."""

        name = "Slow"

        def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            if pod.name == "slow":
                entered.set()
                assert go_on.wait(DEADLINE_S)
            return SUCCESS

    server.make(NODES, node_tree("a"))
    post_pod(server, "slow")

    async def work(driver: KubeDriver) -> None:
        await until(entered.is_set)
        post_pod(server, "quick")
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
    post_pod(server, "low", cpu="4")

    async def work(driver: KubeDriver) -> None:
        await until(entered.is_set)
        post_pod(server, "high", cpu="4", priorityClassName="system-cluster-critical")
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
    post_pod(server, "p")

    async def work(driver: KubeDriver) -> None:
        await until(lambda: node_of(server, "p"))

    drive(work, options=DriverOptions(plugins=[Waits]))

    assert threads == ["scheduler"]


class SecretReader(PreBindPlugin):
    """Notes the fields that it reads of the pods that it binds, and of their nodes."""

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
    post_pod(server, "waiting")

    async def work(driver: KubeDriver) -> None:
        post_pod(server, "new")
        await until(lambda: node_of(server, "waiting") and node_of(server, "new"))

    drive(work, options=DriverOptions(plugins=[SecretReader]))

    assert SecretReader.accounts == [("Always", "cloud://a")] * 2


def test_fields_that_cannot_be_read_are_counted(server: ServerInThread, drive: Any) -> None:
    options = DriverOptions()

    async def work(driver: KubeDriver) -> None:
        nodes = next(one for one in driver._reflectors if one.resource.kind.name == "Node")
        nodes.unreadable = 2  # type: ignore[misc]  # only of custom resources it is computed

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
    post_pod(server, "p")

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
    post_pod(server, "p")

    async def work(driver: KubeDriver) -> None:
        await until(lambda: ("p", "FailedScheduling") in reasons(server))
        server.make(NODES, node_tree("b"))  # which is no reason to try it again
        post_pod(server, "q")
        await until(lambda: ("q", "Scheduled") in reasons(server))

    drive(work, options=DriverOptions(plugins=[Fails]))

    found = condition(server, "p", "PodScheduled")
    items = server.get("/apis/events.k8s.io/v1/namespaces/default/events").tree["items"]
    (event,) = [event for event in items if event["regarding"]["name"] == "p"]
    assert found["reason"] == "SchedulerError"
    assert re.fullmatch(
        r'running "Fails" filter plugin: .*test_kube_driver_plugins.py:\d+: filter_node: '
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
