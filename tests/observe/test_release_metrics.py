"""Metrics by release of kube-scheduler."""

import pytest

from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.release import RELEASES, find_release
from bayplan.testing.builders import make_node, make_pod
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
