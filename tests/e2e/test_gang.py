"""Gangs: pods of a group are bound together or not at all, by the Coscheduling plugin."""

from pathlib import Path

import pytest
import yaml

from tests.rig.live.cluster import ClusterUnderTest
from tests.rig.live.schedulers import BAYPLAN, scheduler_under_test

EXAMPLE = Path(__file__).parents[2] / "examples" / "gang-labels" / "config.yaml"

pytestmark = pytest.mark.skipif(
    scheduler_under_test() != BAYPLAN, reason="Coscheduling is a plugin of Bayplan's"
)


def make_gang(cluster: ClusterUnderTest, name: str, size: int) -> list[str]:
    prefix = "pod-group.scheduling.sigs.k8s.io"
    labels = {f"{prefix}/name": name, f"{prefix}/min-available": str(size)}
    names = [f"{name}-{number}" for number in range(size)]
    for pod in names:
        cluster.pod(pod, {"cpu": "1"}, labels)
    return names


def test_a_gang_is_bound_together_or_not_at_all(cluster: ClusterUnderTest) -> None:
    cluster.node("a", room={"cpu": "3"})
    profiles = yaml.safe_load(EXAMPLE.read_text())["profiles"]
    cluster.start_scheduler(profiles=profiles)

    names = make_gang(cluster, "red", 4)
    cluster.wait_refused(names[-1])
    cluster.pod("single", {"cpu": "1"})
    assert cluster.wait_bound("single") == "a"  # three would fit, but hold nothing
    assert [cluster.node_of(name) for name in names] == [""] * 4
    cluster.node("b", room={"cpu": "2"})

    nodes = cluster.wait_all_bound(5)
    assert sorted(nodes[name] for name in names) == ["a", "a", "b", "b"]
