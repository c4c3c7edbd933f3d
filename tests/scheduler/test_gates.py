"""Feature gates of the scheduler's path, in both positions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.pod import Pod
from bayplan.api.pod_groups import GroupPreemptor
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.errors import ApiError, ConfigError
from bayplan.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    PreBindPlugin,
    Status,
)
from bayplan.scheduler import Inquiry
from bayplan.scheduler.build import _warn_once
from bayplan.testing.builders import make_node, make_pod
from tests.rig.objects import stored
from tests.rig.scenarios import Scenario

POSITIONS = pytest.mark.parametrize("is_on", [True, False])


class Slow(PreBindPlugin):
    """Has nothing to do, and notes when it is run."""

    name = "Slow"
    runs: list[str]

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SKIP if "idle" in pod.labels else SUCCESS

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        found = stored(self.handle.lister, Pod, pod.name)
        self.runs.append(f"{pod.name} {found.nominated_node_name}".strip())
        return SUCCESS


@POSITIONS
def test_nominated_node_name_for_expectation(is_on: bool) -> None:
    Slow.runs = []
    scenario = Scenario(
        make_node("a"),
        plugins=[Slow],
        feature_gates={"NominatedNodeNameForExpectation": is_on},
    )
    scenario.add(make_pod("busy"), make_pod("idle", labels={"idle": ""}))

    scenario.run()

    assert [attempt.node_name for attempt in scenario.ended] == ["a", "a"]
    assert Slow.runs == (["busy a"] if is_on else ["busy", "idle"])


@pytest.mark.parametrize(
    ("is_on", "attempts"),
    [
        pytest.param(True, [1, 0], id="on: the pod is tried at once"),
        pytest.param(False, [0, 1], id="off: it is tried after its backoff"),
    ],
)
def test_pop_from_backoff_queue(is_on: bool, attempts: list[int]) -> None:
    scenario = Scenario(make_node("a", cpu="1"), feature_gates={"SchedulerPopFromBackoffQ": is_on})
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()
    scenario.add(make_node("b", cpu="2"))

    tried = [len(scenario.run()), len(scenario.advance(3))]

    assert tried == attempts
    assert scenario.pod("p").node_name == "b"


# Preemption


class Stubborn(MemoryCluster):
    """A cluster that does not delete pods."""

    def evict(self, victim: Pod, preemptor: Pod | GroupPreemptor) -> None:
        raise ApiError(f"{victim.name} cannot be deleted")


@pytest.mark.parametrize(
    ("is_on", "message", "nominated"),
    [
        pytest.param(True, "", "a", id="on: the attempt is over before"),
        pytest.param(
            False, "preemption: victim cannot be deleted", "", id="off: the attempt fails"
        ),
    ],
)
def test_async_preemption_and_a_victim_that_stays(
    is_on: bool, message: str, nominated: str
) -> None:
    scenario = Scenario(
        make_node("a", cpu="2"),
        cluster=Stubborn(),
        feature_gates={"SchedulerAsyncPreemption": is_on},
    )
    scenario.add(make_pod("victim", cpu="2", node_name="a"), make_pod("high", cpu="2", priority=9))

    attempt = scenario.scheduler.schedule_one()

    assert attempt is not None
    assert message in attempt.message
    assert (message != "") is ("preemption:" in attempt.message)
    assert scenario.pod("high").nominated_node_name == nominated


@POSITIONS
def test_async_preemption_makes_room(is_on: bool) -> None:
    scenario = Scenario(make_node("a", cpu="2"), feature_gates={"SchedulerAsyncPreemption": is_on})
    victims = [make_pod(f"v{i}", cpu="1", node_name="a") for i in range(2)]
    scenario.add(*victims, make_pod("high", cpu="2", priority=9))

    scenario.settle()

    assert scenario.pod("high").node_name == "a"
    events = scenario.scheduler.profiles["default-scheduler"].plugins["DefaultPreemption"]
    assert len(events.events_to_register()) == (1 if is_on else 0)


# Fields of pods


def with_pod_level(name: str, cpu: str, **fields: Any) -> Pod:
    """A pod whose containers request 1 cpu, and which as a whole requests `cpu`."""
    return make_pod(name, cpu="1", spec={"resources": {"requests": {"cpu": cpu}}}, **fields)


WITHOUT_POD_LEVEL = {
    "PodLevelResources": False,
    "InPlacePodLevelResourcesVerticalScaling": False,
}


@pytest.mark.parametrize(
    ("gates", "fits"),
    [
        pytest.param({}, False, id="on: the request of the whole pod counts"),
        pytest.param(WITHOUT_POD_LEVEL, True, id="off: those of the containers count"),
    ],
)
def test_pod_level_resources(gates: dict[str, bool], fits: bool) -> None:
    scenario = Scenario(make_node("a", cpu="2"), feature_gates=gates)
    pod = with_pod_level("p", "3")

    judged = Inquiry(scenario.scheduler, pod)
    asked = Inquiry(scenario.scheduler, pod).decide()
    scenario.add(pod)
    scenario.run()

    assert judged.feasible_nodes == asked.node_name.count("a") == int(fits)
    assert scenario.pod("p").node_name == ("a" if fits else "")
    assert scenario.pod("p").spec.resources is not None


def test_pod_level_resources_of_a_pod_that_is_tried_again() -> None:
    """The failed pod is read from the cluster once more."""
    scenario = Scenario(make_node("a", cpu="0"), feature_gates=WITHOUT_POD_LEVEL)
    scenario.add(with_pod_level("p", "3"))
    scenario.run()

    scenario.add(make_node("b", cpu="2"))
    scenario.settle()

    assert scenario.pod("p").node_name == "b"


def test_a_pod_that_is_written_keeps_the_fields_that_are_not_read() -> None:
    given = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
    scenario = Scenario(make_node("a"), feature_gates=WITHOUT_POD_LEVEL)
    scenario.add(with_pod_level("p", "3", status=given), make_pod("q"))
    handle = scenario.scheduler.profiles["default-scheduler"].handle
    (read,) = (pod for pod in handle.lister.list("Pod") if pod.name == "p")
    before = scenario.pod("p")

    handle.client.update_status(read.with_status(replace(read.status, phase="Running")))

    written = scenario.pod("p")
    assert (read.spec.resources, read.status.resources) == (None, None)
    assert written.status == replace(before.status, phase="Running")
    assert written.spec is before.spec
    assert stored(handle.lister, Pod, "p").spec is read.spec
    lister: Any = handle.lister
    assert lister.changes_since(0) == scenario.cluster.changes_since(0)


@pytest.mark.parametrize(
    ("is_on", "fits"),
    [
        pytest.param(True, False, id="on: what the pod was given counts"),
        pytest.param(False, True, id="off: what its spec asks for counts"),
    ],
)
def test_in_place_pod_level_resources_vertical_scaling(is_on: bool, fits: bool) -> None:
    scenario = Scenario(
        make_node("a", cpu="4"),
        feature_gates={"InPlacePodLevelResourcesVerticalScaling": is_on},
    )
    given = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
    scenario.add(with_pod_level("resized", "1", node_name="a", status=given))
    scenario.add(make_pod("p", cpu="2"))

    scenario.run()

    assert bool(scenario.pod("p").node_name) is fits


@pytest.mark.parametrize(
    ("is_on", "fits"),
    [
        pytest.param(True, True, id="on: only pods of the same version count"),
        pytest.param(False, False, id="off: all pods that are selected count"),
    ],
)
def test_match_label_keys_in_pod_topology_spread(is_on: bool, fits: bool) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["version"],
    }
    scenario = Scenario(
        make_node("a"),
        make_node("b", unschedulable=True),
        feature_gates={
            "MatchLabelKeysInPodTopologySpread": is_on,
            "MatchLabelKeysInPodTopologySpreadSelectorMerge": is_on,
        },
    )
    old, new = {"app": "web", "version": "1"}, {"app": "web", "version": "2"}
    scenario.add(make_pod("old", labels=old, node_name="a"))
    scenario.add(make_pod("p", labels=new, spec={"topologySpreadConstraints": [constraint]}))

    scenario.run()

    assert bool(scenario.pod("p").node_name) is fits


def test_with_all_gates_at_their_defaults_pods_are_not_read_again() -> None:
    assert type(Scenario(make_node("a")).scheduler).__name__ == "Scheduler"


# Plugins


@pytest.mark.parametrize(
    ("is_on", "fits"),
    [
        pytest.param(True, False, id="on: the node must declare the feature"),
        pytest.param(False, True, id="off: the plugin does nothing"),
    ],
)
def test_node_declared_features_where_a_profile_enables_it(is_on: bool, fits: bool) -> None:
    needing = (
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    )
    gates = {} if is_on else dict.fromkeys(("NodeDeclaredFeatures", *needing), False)
    enabled: dict[str, list[Any]] = {"preFilter": [], "filter": []}
    profile = {
        "plugins": {point: {"enabled": [{"name": "NodeDeclaredFeatures"}]} for point in enabled}
    }
    scenario = Scenario(make_node("a"), profile=profile, feature_gates=gates)
    scenario.add(make_pod("p", spec={"hostNetwork": True, "hostUsers": False}))

    scenario.run()

    assert bool(scenario.pod("p").node_name) is fits


class Mine(FilterPlugin):
    """Reads a gate."""

    name = "Mine"

    def filter_node(self, state: CycleState, pod: Pod, node: Any) -> Status:
        assert self.handle.feature_gates["StorageCapacityScoring"]
        assert self.handle.feature_gates.get("SchedulerAsyncAPICalls") is False
        return SUCCESS


def test_a_plugin_reads_the_position_of_any_gate() -> None:
    scenario = Scenario(
        make_node("a"), plugins=[Mine], feature_gates={"StorageCapacityScoring": True}
    )
    scenario.add(make_pod("p"))

    assert [attempt.node_name for attempt in scenario.run()] == ["a"]


def test_what_has_no_effect_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    _warn_once.cache_clear()  # other tests set the same gates
    generator = {"enabled": [{"name": "TopologyPlacementGenerator"}]}
    for _ in range(2):
        Scenario(
            make_node("a"),
            profile={"plugins": {"placementGenerate": generator}},
            feature_gates={"KubeletInUserNamespace": True, "MemoryQoS": True},
        )

    assert sorted(record.message.partition(":")[2].split()[0] for record in caplog.records) == [
        "KubeletInUserNamespace,",
        "TopologyPlacementGenerator:",
    ]


def test_a_scheduler_is_not_built_with_gates_that_cannot_be_set() -> None:
    with pytest.raises(ConfigError, match="feature is locked to true"):
        Scenario(make_node("a"), feature_gates={"SidecarContainers": False})
