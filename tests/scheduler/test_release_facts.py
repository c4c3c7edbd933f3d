"""Facts of releases about the queue, victims and pods that are being bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.errors import ApiError
from bayplan.framework import SUCCESS, CycleState, PreBindPlugin, Status, wait
from bayplan.framework.events import FORCE_ACTIVATE, NODE_ADD
from bayplan.plugins.default_preemption.evictions import _evicted
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.queue.backoff import QueueSettings
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import RELEASES, find_release
from bayplan.runtime.commit_plugins import pre_bind_groups
from bayplan.testing.builders import make_node, make_pod
from tests.queue.queue_bench import Bench, gated_pod
from tests.rig.scenarios import DelayedResult, Scenario, Scripted

SCRIPTED = [{"name": "Scripted"}]
PROFILE = {"plugins": {"multiPoint": {"enabled": SCRIPTED}, "bind": {"enabled": SCRIPTED}}}


def bench_of(release: str) -> Bench:
    return Bench(QueueSettings(gates=FeatureGates(release=RELEASES[release])))


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        pytest.param("1.33", [0, 0, 0], id="SchedulingGates keeps a pod from the flush"),
        pytest.param("1.34", [0, 0, 0], id="no flush"),
        pytest.param("1.35", [1, 1, 1], id="every flush"),
        pytest.param("1.36", [1, 0, 0], id="the limit begins anew"),
    ],
)
def test_which_flushes_look_at_a_gated_pod(release: str, expected: list[int]) -> None:
    bench = bench_of(release)
    bench.queue.add(gated_pod())
    bench.clock.advance(301)
    found = []
    for _ in expected:
        bench.gated.clear()
        bench.queue.flush_unschedulable_leftover(bench.clock.timestamp())
        found.append(len(bench.gated))
        bench.clock.advance(30)

    assert found == expected
    assert bench.where("p") == "unschedulable"
    assert bench.queue.next_timer() is not None


@pytest.mark.parametrize(
    ("release", "expected"), [("1.33", []), ("1.34", []), ("1.35", ["p"]), ("1.36", ["p"])]
)
def test_an_event_about_everything_and_a_gated_pod(release: str, expected: list[str]) -> None:
    bench = bench_of(release)
    bench.queue.add(gated_pod())
    bench.gated.clear()

    bench.on(FORCE_ACTIVATE)

    assert bench.gated == expected


def test_in_1_33_pods_that_others_hold_are_looked_at_after_every_event() -> None:
    bench = bench_of("1.33")
    plan = bench.queue._hints.plan(NODE_ADD)

    assert plan.can_open("DefaultPreemption")
    assert not plan.can_open("SchedulingGates")
    assert not Bench().queue._hints.plan(NODE_ADD).can_open("DefaultPreemption")


@pytest.mark.parametrize(("release", "runs"), [("1.34", 1), ("1.35", 0)])
def test_activation_of_a_pod_that_backs_off(release: str, runs: int) -> None:
    bench = bench_of(release)
    bench.add("p")
    bench.fail("Fit")
    bench.on(NODE_ADD)
    assert bench.where("p") == "backoff"
    bench.gated.clear()

    bench.queue.activate([make_pod("p", uid="p")])

    assert bench.where("p") == "active"
    assert len(bench.gated) == runs


def scenario_of(release: str, *objects: Any) -> Scenario:
    gates = FeatureGates(release=find_release(release))
    return Scenario(*objects, plugins=(Scripted,), profile=PROFILE, feature_gates=gates)


@pytest.mark.parametrize(("release", "pods"), [("1.34", 1), ("1.35", 0)])
def test_a_pod_deleted_during_pre_bind_frees_its_place(release: str, pods: int) -> None:
    scenario = scenario_of(release, make_node("a", cpu="2"))
    scenario.plugin(Scripted).answers["pre_bind"] = DelayedResult(30)
    scenario.add(make_pod("p", cpu="2"))
    scenario.run()

    scenario.cluster.delete(scenario.pod("p"))

    table = scenario.scheduler.cache.table
    assert int(table.pod_count[table.row_of["a"]]) == pods
    scenario.advance(31)
    assert int(table.pod_count[table.row_of["a"]]) == 0


@pytest.mark.parametrize(("release", "expected"), [("1.36", False), ("1.37", True)])
def test_a_victim_that_waits_on_permit_makes_way(release: str, expected: bool) -> None:
    scenario = scenario_of(release, make_node("a", cpu="2"))
    scenario.plugin(Scripted).answers["permit"] = (wait("a moment"), 30)
    scenario.add(make_pod("low", cpu="2", priority=1))
    scenario.run()
    scenario.plugin(Scripted).answers.clear()
    activated: list[str] = []
    queue = scenario.scheduler.queue
    activate = queue.activate

    def note(pods: Any) -> None:
        listed = list(pods)
        activated.extend(pod.name for pod in listed)
        activate(listed)

    queue.activate = note  # type: ignore[method-assign]
    scenario.add(make_pod("urgent", cpu="2", priority=9))
    scenario.run()

    assert ("urgent" in activated) is expected


@pytest.mark.parametrize(
    ("release", "held"),
    [
        pytest.param("1.34", [True, False], id="until the deletion of the last begins"),
        pytest.param("1.35", [True, True], id="until it has begun to terminate"),
    ],
)
def test_how_long_a_preemptor_is_held(release: str, held: list[bool]) -> None:
    scenario = scenario_of(release, make_node("a", cpu="2"))
    scenario.add(make_pod("low-1", cpu="1", priority=1), make_pod("low-2", cpu="1", priority=1))
    scenario.run()
    answers = [asyncio.Event(), asyncio.Event()]
    waiting = list(answers)
    scenario.cluster.evict = lambda victim, preemptor: waiting.pop(0).wait()
    preemption = scenario.plugin(DefaultPreemption)
    found: list[bool] = []

    async def follow() -> None:
        scenario.scheduler.schedule(QueuedPodInfo(urgent, 0.0))
        for answer in answers:
            await asyncio.sleep(0)
            found.append(not preemption.pre_enqueue(urgent).is_success)
            answer.set()
            for _ in range(5):
                await asyncio.sleep(0)

    preemption.handle.executor = LoopExecutor()
    urgent = make_pod("urgent", cpu="2", priority=9, uid="urgent")
    asyncio.run(follow())

    assert found == held
    assert preemption.pre_enqueue(urgent).is_success


class LoopExecutor:
    """Runs work on the running loop of asyncio."""

    def run(self, work: Any, finished: Any) -> None:
        async def follow() -> None:
            status = work()
            finished(status if isinstance(status, Status) else await status)

        asyncio.get_running_loop().create_task(follow())


class Beside(PreBindPlugin):
    """A PreBind plugin that may run beside its neighbours."""

    name = "Beside"
    allow_parallel = True

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS


@pytest.mark.parametrize(("release", "groups"), [("1.35", [1, 1]), ("1.36", [2])])
def test_pre_bind_plugins_run_together_from_1_36_on(release: str, groups: list[int]) -> None:
    plugins = [Beside(), Beside()]

    found = pre_bind_groups(plugins, plugins, RELEASES[release].pre_binds_together)

    assert [len(group) for group in found] == groups


@pytest.mark.parametrize(
    ("release", "labels"),
    [
        ("1.36", ["UnschedulablePodAdd", "UnschedulablePodUpdatePodLabel"]),
        ("1.37", ["UnscheduledPodAdd", "TargetPodUpdatePodLabel"]),
    ],
)
def test_labels_of_events_of_pods_that_wait(release: str, labels: list[str]) -> None:
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"x": "1"}},
                }
            ]
        }
    }
    scenario = scenario_of(release, make_node("a", labels={"kubernetes.io/hostname": "a"}))
    scenario.add(make_pod("p", labels={"x": "1"}))
    scenario.run()
    scenario.add(make_pod("q", labels={"x": "1"}, spec={"affinity": affinity}))
    scenario.run()

    scenario.change("q", labels={"x": "2"})
    scenario.run()

    counted = scenario.scheduler.queue.counters.incoming
    found = {label for _, label in counted if "Pod" in label}
    assert set(labels) <= found
    assert not [label for label in found if ("UnschedulablePod" in label) is (release == "1.37")]


@pytest.mark.parametrize(("release", "last"), [("1.35", ["last"]), ("1.36", [])])
def test_the_last_victim_after_a_failed_deletion(release: str, last: list[str]) -> None:
    deleted: list[str] = []

    async def fail() -> None:
        raise ApiError("no")

    def delete_last() -> Awaitable[None] | None:
        deleted.append("last")
        return None

    always = RELEASES[release].deletes_last_after_failure
    status = asyncio.run(_evicted([fail()], delete_last, always))

    assert not status.is_success
    assert deleted == last
