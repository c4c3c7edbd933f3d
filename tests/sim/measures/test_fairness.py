"""Fairness: dominant shares and slowdowns of namespaces, and the time until jobs are done."""

from typing import Any

import pytest

from bayplan import Cluster, simulate
from bayplan.sim import Simulation
from bayplan.sim.measures.run_measures import jain_index
from bayplan.testing.builders import make_node, make_pod
from tests.rig.trees import node_tree


def timed(name: str, namespace: str, at_s: int, lasts_s: int, **fields: Any) -> Any:
    notes = {"bayplan.dev/created-at": f"{at_s}s", "bayplan.dev/duration": f"{lasts_s}s"}
    return make_pod(name, namespace=namespace, annotations=notes, **fields)


def test_jains_index() -> None:
    assert jain_index([2, 2, 2]) == 1
    assert jain_index([1, 0, 0, 0]) == 0.25
    assert jain_index([]) == jain_index([0, 0]) == 1


def test_shares_are_means_over_the_time_by_the_dominant_resource() -> None:
    node = make_node("n", cpu="4", memory="16Gi")
    report = Simulation(
        [
            node,
            timed("a", "red", 0, 100, cpu="4", memory="1Gi"),
            timed("b", "blue", 0, 100, cpu="1", memory="16Gi"),
        ],
        seed=0,
    ).run()

    found = report.measures()

    assert found["maxDominantShare"] == pytest.approx(0.5, abs=0.01), "half of the time each"
    shares = sorted((0.5, 0.5 / 1.0))
    assert found["namespaceFairness"] == pytest.approx(jain_index([1.0, shares[0]]), abs=0.01)
    assert found["slowdownFairness"] == pytest.approx(jain_index([1.0, 2.0]), abs=0.01)
    assert found["maxJobCompletion"] == pytest.approx(200, abs=2)
    assert found["meanJobCompletion"] == pytest.approx(150, abs=2)


def test_with_one_namespace_there_is_no_fairness() -> None:
    report = Simulation([make_node("n"), make_pod("p", cpu="1")], seed=0).run()
    assert not any("airness" in name for name in report.measures())


def test_a_job_is_complete_with_its_last_pod() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "completions": 3,
            "parallelism": 3,
            "template": {
                "metadata": {"annotations": {"bayplan.dev/duration": "50s"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {"name": "a", "image": "a", "resources": {"requests": {"cpu": "2"}}}
                    ],
                },
            },
        },
    }
    report = simulate(Cluster.of(node_tree("n", "4"), job), seed=0)

    found = report.measures()
    assert found["maxSlowdown"] == pytest.approx(2, abs=0.1)
    assert found["meanJobCompletion"] == found["maxJobCompletion"] == pytest.approx(100, abs=2)
