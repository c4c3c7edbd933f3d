"""Compare: metrics are correct, and equal schedulers give equal results."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.answers.compare import Comparison, compare, fragmentation, typical_request
from bayplan.config import parse_config
from bayplan.errors import InputError
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod, make_table

PACK = parse_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {
                                "type": "MostAllocated",
                                "resources": [{"name": "cpu", "weight": 1}],
                            }
                        },
                    }
                ],
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}
                },
            }
        ],
    }
)


def run(objects: list[Any], *configs: Any, **options: Any) -> Comparison:
    schedulers = [(f"c{i}", Settings(config)) for i, config in enumerate(configs)]
    return compare(objects, schedulers, **options)


def test_spreading_and_packing_leave_different_free_resources() -> None:
    objects = [make_node("a"), make_node("b"), *(make_pod(f"p{i}", cpu="1") for i in range(4))]

    found = run(objects, None, PACK)

    spread, pack = ({m.name: m.mean for m in c.metrics.values()} for c in found.contenders)
    assert (spread["emptyNodes"], pack["emptyNodes"]) == (0, 1)
    assert (spread["cpuSpread"], pack["cpuSpread"]) == (0.0, 0.5)
    assert spread["cpuUtilisation"] == pack["cpuUtilisation"] == 0.5
    assert spread["placed"] == pack["placed"] == 4
    assert len(found.differences()) == 2


def test_waiting_time_is_counted() -> None:
    short = {"bayplan.dev/duration": "10s"}
    objects = [
        make_node("a", cpu="1"),
        make_pod("first", cpu="1", annotations=short),
        make_pod("second", cpu="1", annotations=short),
    ]

    found = run(objects, None)

    metrics = found.contenders[0].metrics
    assert metrics["maxLatency"].mean >= 10
    assert metrics["meanLatency"].mean == pytest.approx(metrics["maxLatency"].mean / 2)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param((0, 0), 0.0, id="empty nodes"),
        pytest.param((3, 3), 1.0, id="one core free on each of two nodes, and a pod takes two"),
        pytest.param((4, 2), 0.0, id="two cores free on one node"),
        pytest.param((3, 1), 0.5, id="four cores free, one of them alone on its node"),
        pytest.param((4, 4), 0.0, id="nothing free gives no fragmentation"),
    ],
)
def test_fragmentation(used: tuple[int, int], expected: float) -> None:
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="4"), make_node("c", unschedulable=True)]
    pods = [
        make_pod(f"p{i}", cpu=str(cpu), node_name=name)
        for i, (name, cpu) in enumerate(zip("ab", used, strict=True))
    ]

    assert fragmentation(make_table(*nodes, pods=pods), {"cpu": 2000}) == expected


def test_the_typical_pod_has_the_median_requests() -> None:
    pods = [make_pod("a", cpu="1", memory="1Gi"), make_pod("b", cpu="2"), make_pod("c", cpu="9")]

    assert typical_request(pods) == {"cpu": 2000}
    assert typical_request([]) == {}


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=25)
def test_a_scheduler_compared_with_itself_shows_no_difference(
    cpus: list[int], nodes: int, seeds: int
) -> None:
    objects = [make_node(f"n{i}") for i in range(nodes)]
    objects += [make_pod(f"p{i}", cpu=str(cpu)) for i, cpu in enumerate(cpus)]

    found = run(objects, PACK, PACK, seeds=seeds)

    first, second = found.contenders
    assert first.metrics == second.metrics
    assert found.differences() == []
    assert found.seeds == list(range(seeds))


def test_seeds_give_mean_and_deviation() -> None:
    objects = [make_node("a"), make_node("b", cpu="5"), make_pod("p"), make_pod("q", cpu="4")]

    found = run(objects, None, seeds=6)

    for metric in found.contenders[0].metrics.values():
        assert len(metric.values) == 6
        assert min(metric.values) - 1e-9 <= metric.mean <= max(metric.values) + 1e-9


def test_an_empty_comparison_is_rejected() -> None:
    with pytest.raises(InputError, match="expected at least one scheduler"):
        run([make_node("a")])
