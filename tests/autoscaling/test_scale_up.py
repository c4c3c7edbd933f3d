"""Scaling up: launches of Karpenter and Cluster Autoscaler, their times and prices."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.taints import Taint
from bayplan.api.wire.decode import decode_object
from bayplan.autoscaling import AutoscalerOptions, autoscaled
from bayplan.config.defaults import default_config
from bayplan.config.types import Extender
from bayplan.errors import InputError
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod
from tests.autoscaling.scaled import (
    GROUPS,
    KARPENTER,
    launched_types,
    make_pool,
    make_type,
    make_workload,
    run_scaled,
    scaling_of,
)

SMALL, BIG = make_type("small", 4, 0.2), make_type("big", 16, 0.7)
BOTH = [
    pytest.param(KARPENTER, id="Karpenter"),
    pytest.param(GROUPS, id="Cluster Autoscaler"),
]
ZONED = make_type("zoned", 4, 0.2, zones=("a", "b", "c"))
SPREAD: dict[str, Any] = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}
APART: dict[str, Any] = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        }
    }
}


@pytest.mark.parametrize("options", BOTH)
@pytest.mark.parametrize(
    ("objects", "pools", "launched"),
    [
        pytest.param([make_workload("web", 4)], [make_pool(SMALL)], 1, id="pods that fill a node"),
        pytest.param([make_workload("web", 5)], [make_pool(SMALL)], 2, id="a pod more than fits"),
        pytest.param(
            [make_workload("web", 3), make_workload("agent", 0, kind="DaemonSet")],
            [make_pool(SMALL)],
            1,
            id="a daemon has its place beside the pods",
        ),
        pytest.param(
            [make_workload("web", 4), make_workload("agent", 0, kind="DaemonSet")],
            [make_pool(SMALL)],
            2,
            id="daemons take room on every node",
        ),
        pytest.param(
            [make_workload("web", 3, **APART)],
            [make_pool(SMALL)],
            3,
            id="pods that repel each other need a node each",
        ),
        pytest.param(
            [make_node("there", cpu="4", memory="16Gi"), make_workload("web", 6)],
            [make_pool(SMALL)],
            1,
            id="existing nodes come first",
        ),
        pytest.param(
            [make_workload("web", 4)], [make_pool(SMALL, minimum=1)], 0, id="the minimum is there"
        ),
    ],
)
def test_launches_what_the_scheduler_needs(
    options: AutoscalerOptions, objects: list[Any], pools: list[Any], launched: int
) -> None:
    report = run_scaled(objects, pools, options)

    assert not report.pending
    assert scaling_of(report).launched == launched


@pytest.mark.parametrize("options", BOTH)
@pytest.mark.parametrize(
    ("pool", "nodes"),
    [
        pytest.param(make_pool(SMALL, maximum=2), 2, id="a maximum of nodes"),
        pytest.param(make_pool(SMALL, limits={"cpu": 9000}), 2, id="a limit of cpu"),
        pytest.param(make_pool(SMALL, maximum=2, minimum=1), 2, id="a maximum beside a minimum"),
    ],
)
def test_a_pool_never_exceeds_its_limits(options: AutoscalerOptions, pool: Any, nodes: int) -> None:
    report = run_scaled([make_workload("web", 20)], [pool], options)

    assert len(scaling_of(report).nodes) == nodes
    assert len(report.pending) == 12


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([("a", 3, "1")], {"small": 1}, id="a small batch gets the cheapest type"),
        pytest.param([("a", 16, "1")], {"big": 1}, id="a batch that fills the largest type"),
        pytest.param(
            [("a", 18, "1")], {"big": 1, "small": 1}, id="the rest gets the cheapest that holds it"
        ),
        pytest.param(
            [("a", 3, "1"), ("b", 1, "10")],
            {"big": 1},
            id="large pods first, small ones beside them",
        ),
    ],
)
def test_karpenter_launches_the_cheapest_type_that_holds_a_batch(
    pods: list[tuple[str, int, str]], expected: dict[str, int]
) -> None:
    objects = [make_workload(name, replicas, cpu) for name, replicas, cpu in pods]

    assert launched_types(run_scaled(objects, [make_pool(SMALL, BIG)])) == expected


def test_karpenter_narrows_the_types_to_what_every_pod_of_a_node_accepts() -> None:
    chosen: dict[str, Any] = {"nodeSelector": {"node.kubernetes.io/instance-type": "small"}}

    objects = [make_workload("any", 1), make_workload("picky", 1, **chosen)]

    assert launched_types(run_scaled(objects, [make_pool(SMALL, BIG)])) == {"small": 1}


@pytest.mark.parametrize(
    ("options", "zones"),
    [
        pytest.param(KARPENTER, ["a", "b", "c"], id="Karpenter counts zones that have no node yet"),
        pytest.param(GROUPS, ["a"], id="Cluster Autoscaler counts the zones of nodes"),
    ],
)
def test_a_spread_over_zones(options: AutoscalerOptions, zones: list[str]) -> None:
    report = run_scaled([make_workload("web", 3, **SPREAD)], [make_pool(ZONED)], options)

    assert not report.pending
    assert [node.zone for node in scaling_of(report).nodes] == zones


def test_karpenter_takes_the_pool_with_the_highest_weight() -> None:
    dear = make_type("dear", 4, 9.0, pool="preferred")
    pools = [make_pool(SMALL), make_pool(dear, name="preferred", weight=10, maximum=1)]

    report = run_scaled([make_workload("web", 8)], pools)

    assert launched_types(report) == {"dear": 1, "small": 1}


@pytest.mark.parametrize(
    ("expander", "expected"),
    [
        pytest.param("least-waste", "small", id="least-waste prefers what is filled"),
        pytest.param("price", "cheap", id="price prefers what costs least for the pods"),
        pytest.param("priority", "big", id="priority goes by the weight of the pool"),
    ],
)
def test_cluster_autoscaler_chooses_by_its_expander(expander: str, expected: str) -> None:
    pools = [
        make_pool(make_type("small", 4, 0.4, pool="s"), name="s"),
        make_pool(make_type("big", 16, 0.7, pool="b"), name="b", weight=5),
        make_pool(make_type("cheap", 6, 0.1, pool="c"), name="c"),
    ]
    options = AutoscalerOptions(autoscaler="cluster-autoscaler", expander=expander)

    report = run_scaled([make_workload("web", 4)], pools, options)

    assert launched_types(report) == {expected: 1}


def test_the_random_expander_is_drawn_from_the_seed() -> None:
    pools = [make_pool(make_type(f"t{i}", 4, 0.4, pool=f"p{i}"), name=f"p{i}") for i in range(4)]

    def types(seed: int) -> dict[str, int]:
        options = AutoscalerOptions(autoscaler="cluster-autoscaler", expander="random", seed=seed)
        return launched_types(run_scaled([make_workload("web", 4)], pools, options))

    assert types(1) == types(1)
    assert len({str(types(seed)) for seed in range(8)}) > 1


def test_cluster_autoscaler_launches_nothing_for_pods_below_its_cutoff() -> None:
    report = run_scaled([make_workload("low", 1, priority=-11)], [make_pool(SMALL)], GROUPS)

    assert not scaling_of(report).nodes


def test_karpenter_waits_for_its_batch_and_the_node_for_its_boot_time() -> None:
    slow = make_type("slow", 4, 1.0, boot_s=90)

    (node,) = scaling_of(run_scaled([make_workload("web", 2)], [make_pool(slow)])).nodes

    assert (node.launched_s, node.joined_s) == (1.0, 91.0)


def test_cluster_autoscaler_acts_at_its_scans() -> None:
    late = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "late", "annotations": {"bayplan.dev/created-at": "12s"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        }
    )

    (node,) = scaling_of(run_scaled([late], [make_pool(SMALL)], GROUPS)).nodes

    assert (node.launched_s, node.joined_s) == (20.0, 80.0)


def test_pods_that_no_pool_can_hold_are_named_with_the_reasons() -> None:
    taint = (Taint(key="only", value="gpu", effect="NoSchedule"),)
    pools = [make_pool(SMALL), make_pool(make_type("t", 32, 1.0, taints=taint), name="tainted")]

    report = run_scaled([make_workload("huge", 2, "20")], pools)

    (unplaceable,) = scaling_of(report).unplaceable
    assert (unplaceable.workload, unplaceable.count) == ("deployment default/huge", 2)
    assert unplaceable.reasons == {
        "Insufficient cpu": ["p/small"],
        "node(s) had untolerated taint(s)": ["tainted/t"],
    }
    assert not scaling_of(report).nodes


def test_a_pod_with_a_nominated_node_needs_no_new_one() -> None:
    low = make_pod("low", cpu="4", memory="1Gi", node_name="there")
    high = make_pod("high", cpu="4", memory="1Gi", priority=10)
    node = make_node("there", cpu="4", memory="16Gi")

    report = run_scaled([node, low, high], [make_pool(SMALL)])

    assert not scaling_of(report).nodes


def test_a_node_costs_its_price_from_its_launch_until_the_end() -> None:
    report = run_scaled([make_workload("web", 4)], [make_pool(SMALL)], until_s=3601.0)

    scaling = scaling_of(report)
    assert scaling.cost == pytest.approx(0.2)
    cost, nodes, by_type = scaling.series()
    assert (cost.times_s, cost.values) == ([0.0, 1.0], [0.0, 0.2])
    assert nodes.values == by_type.values == [0.0, 1.0]
    assert report.to_dict()["scaling"]["waiting"]["max"] > 61
    assert report.to_frame("scaled")["cost"].sum() == pytest.approx(0.2)
    changes = report.to_frame("cost")
    assert changes[changes["name"] == "cost"]["value"].tolist() == [0.0, 0.2]


def test_a_node_without_a_price_is_counted_apart() -> None:
    report = run_scaled([make_workload("web", 1)], [make_pool(make_type("free", 4, None))])

    assert (scaling_of(report).cost, scaling_of(report).unpriced) == (0.0, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param(
            {"autoscaler": "k"},
            'autoscaler: expected karpenter or cluster-autoscaler; got "k"',
            id="an unknown autoscaler",
        ),
        pytest.param(
            {"scan_interval_s": 0}, "scan_interval_s: expected more than 0", id="no scans"
        ),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AutoscalerOptions(**wrong)


def test_extenders_are_refused_since_they_cannot_be_asked_about_new_nodes() -> None:
    config = replace(default_config({}), extenders=(Extender(url_prefix="http://127.0.0.1:9/"),))

    with pytest.raises(
        InputError, match=r"not asked about nodes that do not exist yet; got \"http"
    ):
        autoscaled(Settings(config=config), [make_workload("a", 1)], [make_pool(SMALL)])
