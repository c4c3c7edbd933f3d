"""Metrics by release of kube-scheduler."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.node import ZONE
from bayplan.api.pod_groups import DisruptionMode
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import RELEASES, find_release
from bayplan.testing.builders import make_gang, make_node, make_object, make_pod
from tests.rig.scenarios import Scenario


def shown(version: str) -> tuple[set[str], str]:
    """The names of the metrics of a release after one pod was placed, and their text."""
    gates = FeatureGates(release=find_release(version))
    scenario = Scenario(make_node("a"), make_pod("p"), feature_gates=gates)
    scenario.run()
    metrics = scenario.scheduler.metrics
    return {family.name for family in metrics.families}, metrics.render()


@pytest.mark.parametrize(
    ("version", "there", "missing"),
    [
        ("1.33", "scheduler_scheduler_cache_size", "scheduler_batch_attempts_total"),
        ("1.34", "scheduler_cache_size", "scheduler_scheduler_cache_size"),
        ("1.35", "scheduler_batch_attempts_total", "scheduler_pod_scheduled_after_flush_total"),
        ("1.36", "scheduler_resourceclaim_creates_total", "scheduler_queued_entities"),
        (
            "1.37",
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "scheduler_resourceclaim_creates_total",
        ),
    ],
)
def test_metrics_of_a_release(version: str, there: str, missing: str) -> None:
    names, _ = shown(version)

    assert (there in names, missing in names) == (True, False)
    assert not names & RELEASES[version].missing_metrics


def test_1_37_counts_entries_of_the_queue() -> None:
    _, text = shown("1.37")

    line = 'scheduler_queue_incoming_entities_total{event="UnscheduledPodAdd",queue="active",type="pod"} 1.0'
    assert line in text
    assert 'scheduler_queued_entities{queue="active",type="pod"} 0.0' in text


# Pod groups of v1.37

GROUPS = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
NAMES = "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"
LOW: dict[str, Any] = {"priority": 0, "cpu": "1"}
ZONE_SPREAD = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}


def run_groups(*objects: Any, version: str = "1.37", **gates: bool) -> Scenario:
    wanted = FeatureGates(GROUPS | gates, release=find_release(version))
    names = NAMES if wanted.enabled("TopologyAwareWorkloadScheduling") else NAMES[:1]
    enabled = [{"name": name} for name in names]
    profile = {"plugins": {"multiPoint": {"enabled": enabled}}}
    scenario = Scenario(profile=profile, feature_gates=wanted)
    scenario.add(*objects)
    scenario.run()
    return scenario


def make_high_gang(name: str, size: int, **fields: Any) -> list[Any]:
    """A gang of priority 10, which the PodGroup has, too."""
    group, *pods = make_gang(name, size, priority=10, **fields)
    return [replace(group, spec=replace(group.spec, priority=10)), *pods]


def lines_of(scenario: Scenario, name: str) -> list[str]:
    """The lines of a metric without buckets and times."""
    lines = scenario.scheduler.metrics.render().splitlines()
    return [
        line for line in lines if line.startswith(f"scheduler_{name}") and "_bucket" not in line
    ]


def test_preemptions_for_groups_are_counted() -> None:
    whole = replace(make_gang("low", 2)[0].spec, disruption_mode=DisruptionMode(all={}))
    group, *running = make_gang("low", 2, **LOW)
    objects = [
        make_node("a", cpu="2"),
        make_object("PodDisruptionBudget", "b", spec={"selector": {"matchLabels": {"app": "x"}}}),
        replace(group, spec=whole),
        *(pod.replace(labels={"app": "x"}).with_node("a") for pod in running),
    ]

    scenario = run_groups(*objects, *make_high_gang("high", 2, cpu="1"))

    attempts = 'scheduler_workload_preemption_attempts_total{result="Success"} '
    assert lines_of(scenario, "workload_preemption_attempts")[0].startswith(attempts)
    assert "scheduler_workload_preemption_victims_sum 2.0" in lines_of(
        scenario, "workload_preemption_victims"
    )
    assert 'scheduler_preemption_workload_disruptions_sum{preemptor="podgroup"} 1.0' in lines_of(
        scenario, "preemption_workload_disruptions"
    )
    assert lines_of(scenario, "preemption_pdb_violations_total") == [
        'scheduler_preemption_pdb_violations_total{preemptor="podgroup"} 2.0'
    ]
    labels = 'preemptor="podgroup",result="success"'
    executed = lines_of(scenario, "preemption_execution_duration_seconds_count")
    assert executed == [f"scheduler_preemption_execution_duration_seconds_count{{{labels}}} 1.0"]
    evaluated = lines_of(scenario, "preemption_evaluation_duration_seconds_count")
    assert 'preemptor="podgroup",result="Success"' in evaluated[0]
    assert "scheduler_preemption_victims_count 0.0" in lines_of(scenario, "preemption_victims")


@pytest.mark.parametrize("is_async", [True, False])
def test_preemptions_for_pods_are_counted_beside_them(is_async: bool) -> None:
    running = make_pod("low", node_name="a", **LOW)
    objects = [make_node("a", cpu="1"), running, make_pod("high", priority=10, cpu="1")]

    scenario = run_groups(*objects, SchedulerAsyncPreemption=is_async)

    executed = lines_of(scenario, "preemption_execution_duration_seconds_count")
    assert executed == [
        'scheduler_preemption_execution_duration_seconds_count{preemptor="pod",result="success"} 1.0'
    ]
    assert bool(lines_of(scenario, "preemption_goroutines_execution_total")) is is_async
    labels = 'preemptor="pod",result="Success"'
    evaluated = lines_of(scenario, "preemption_evaluation_duration_seconds_count")
    assert evaluated == [f"scheduler_preemption_evaluation_duration_seconds_count{{{labels}}} 1.0"]
    assert "scheduler_preemption_victims_sum 1.0" in lines_of(scenario, "preemption_victims")
    assert "scheduler_workload_preemption_victims_count 0.0" in lines_of(
        scenario, "workload_preemption_victims"
    )


@pytest.mark.parametrize("spread", [[], [ZONE_SPREAD]], ids=["searched", "tried one by one"])
def test_placements_are_counted(spread: list[Any]) -> None:
    nodes = [
        make_node(name, cpu=cpu, labels={ZONE: name}) for name, cpu in (("a", "4"), ("b", "1"))
    ]

    scenario = run_groups(*nodes, *make_gang("red", 2, topology_key=ZONE, cpu="2", spread=spread))

    profile = 'profile="default-scheduler"'
    assert lines_of(scenario, "generated_placements_total") == [
        f"scheduler_generated_placements_total{{{profile}}} 2.0"
    ]
    assert lines_of(scenario, "placement_evaluations_total") == [
        f'scheduler_placement_evaluations_total{{{profile},result="feasible"}} 1.0',
        f'scheduler_placement_evaluations_total{{{profile},result="infeasible"}} 1.0',
    ]


def test_a_group_is_one_entry_of_the_queue() -> None:
    scenario = run_groups(
        make_node("a", cpu="1"), *make_gang("red", 3, cpu="1"), make_pod("single", cpu="1")
    )
    metrics = scenario.scheduler.metrics

    incoming = metrics.incoming_entities()
    assert incoming["unschedulable", "UnscheduledPodAdd", "podgroup"] == 1
    assert incoming["active", "UnscheduledPodAdd", "podgroup"] == 1
    assert incoming["active", "UnscheduledPodAdd", "pod"] == 1
    assert incoming["backoff", "ScheduleAttemptFailure", "podgroup"] == 1
    assert metrics.incoming_pods.source()["backoff", "ScheduleAttemptFailure"] == 3
    assert metrics.queued_entities()["backoff", "podgroup"] == 1
    assert metrics.queued_entities()["backoff", "pod"] == 0
    assert metrics.pending_pods.source()["backoff",] == 3


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_metrics_of_groups_need_their_gates_and_their_release(version: str) -> None:
    gangs = {"GangScheduling": True} if version == "1.36" else {}
    without = run_groups(version=version, TopologyAwareWorkloadScheduling=False, **gangs)

    names = {family.name for family in without.scheduler.metrics.families}

    assert "scheduler_podgroup_schedule_attempts_total" in names
    assert ("scheduler_workload_preemption_victims" in names) is (version == "1.37")
    assert "scheduler_generated_placements_total" not in names
