"""Spread and preferences as in Karpenter: required at first, relaxed in its order."""

from collections import Counter
from typing import Any

import pytest

from bayplan.api.taints import Taint
from bayplan.api.wire.decode import decode_object
from bayplan.autoscaling.preferences import planned_forms
from bayplan.testing.builders import make_node
from tests.autoscaling.scaled import (
    GROUPS,
    KARPENTER,
    make_pool,
    make_type,
    make_workload,
    run_scaled,
    scaling_of,
)

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
BIG = make_type("big", 16, 0.7, zones=("a", "b", "c"))
MINE = {"labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def make_spread(key: str, when: str, skew: int = 1) -> dict[str, Any]:
    spread = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when}
    return {"topologySpreadConstraints": [spread | MINE]}


def make_wish(kind: str, key: str, weight: int = 1) -> dict[str, Any]:
    term = {"topologyKey": key} | MINE
    return {"affinity": {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}}


def make_expression(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def nodes_by_zone(*objects: Any, options: Any = KARPENTER, **pool: Any) -> list[int]:
    """Number of nodes in each zone at the end, the largest first; every pod has a place."""
    report = run_scaled(list(objects), [make_pool(BIG, **pool)], options, until_s=1800.0)
    assert not report.pending
    zones = Counter(node.zone for node in scaling_of(report).nodes if node.removed_s is None)
    return sorted(zones.values(), reverse=True)


@pytest.mark.parametrize(
    ("replicas", "more", "nodes"),
    [
        pytest.param(9, make_spread(HOST, "DoNotSchedule"), 9, id="a host for each pod"),
        pytest.param(9, make_spread(HOST, "DoNotSchedule", 2), 5, id="two pods on a host"),
        pytest.param(6, make_spread(HOST, "ScheduleAnyway"), 6, id="a soft spread over hosts"),
        pytest.param(4, make_wish("podAntiAffinity", HOST), 4, id="preferred to be apart"),
        pytest.param(4, make_wish("podAffinity", HOST), 1, id="preferred to be together"),
        pytest.param(4, {}, 1, id="no wish"),
    ],
)
def test_hosts(replicas: int, more: dict[str, Any], nodes: int) -> None:
    assert sum(nodes_by_zone(make_workload("web", replicas, "500m", **more))) == nodes


@pytest.mark.parametrize(
    ("replicas", "more", "zones"),
    [
        pytest.param(6, make_spread(ZONE, "ScheduleAnyway"), [1, 1, 1], id="a soft spread"),
        pytest.param(
            6, make_spread(ZONE, "DoNotSchedule", 3), [1, 1], id="as full as a skew allows"
        ),
        pytest.param(5, make_wish("podAntiAffinity", ZONE), [1, 1, 1], id="relaxed after three"),
    ],
)
def test_zones(replicas: int, more: dict[str, Any], zones: list[int]) -> None:
    web = make_workload("web", replicas, "500m", **more)

    assert nodes_by_zone(web, consolidate_after_s=None) == zones


def test_cluster_autoscaler_leaves_wishes_to_the_scheduler() -> None:
    soft = make_workload("web", 6, "500m", **make_spread(HOST, "ScheduleAnyway"))

    assert nodes_by_zone(soft, options=GROUPS) == [1]


def test_a_claim_goes_where_a_later_pod_needs_it() -> None:
    free = make_workload("free", 1, "2")
    bound = make_workload("bound", 1, "1", nodeSelector={ZONE: "c"})

    assert nodes_by_zone(free, bound) == [1]


def test_the_heaviest_preferred_node_affinity_is_kept_as_long_as_it_can_be() -> None:
    def wish(weight: int, zone: str) -> dict[str, Any]:
        return {"weight": weight, "preference": make_expression(ZONE, zone)}

    wishes = [wish(1, "a"), wish(9, "nowhere"), wish(5, "b")]
    web = make_workload("web", 2, affinity={"nodeAffinity": {PREFERRED: wishes}})

    report = run_scaled([web], [make_pool(BIG)])

    assert [node.zone for node in scaling_of(report).nodes] == ["b"]


def test_a_soft_taint_is_avoided_until_nothing_else_is_left() -> None:
    taint = Taint(key="spot", effect="PreferNoSchedule")
    soft = make_type("soft", 4, 0.1, pool="soft", taints=(taint,))
    pools = [make_pool(soft, name="soft", weight=9), make_pool(BIG, maximum=1)]

    report = run_scaled([make_workload("web", 5, "4")], pools)

    assert not report.pending
    assert Counter(node.type for node in scaling_of(report).nodes) == {"big": 1, "soft": 1}


def test_alternatives_of_a_required_node_affinity_are_tried_in_their_order() -> None:
    terms = [make_expression(ZONE, "c"), make_expression(ZONE, "a")]
    web = make_workload(
        "web", 2, affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    )
    there = make_node(
        "there", cpu="16", memory="64Gi", labels={ZONE: "a"}, taints=["no=1:NoSchedule"]
    )

    report = run_scaled([there, web], [make_pool(BIG)])

    assert [node.zone for node in scaling_of(report).nodes] == ["c"]


def test_the_order_of_relaxations() -> None:
    spec = {
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [make_expression("t", "1"), make_expression("t", "2")]
                },
                PREFERRED: [{"weight": 1, "preference": make_expression("w", "1")}],
            },
            "podAffinity": make_wish("podAffinity", ZONE)["affinity"]["podAffinity"],
            "podAntiAffinity": make_wish("podAntiAffinity", HOST)["affinity"]["podAntiAffinity"],
        },
        **make_spread(ZONE, "ScheduleAnyway"),
        "containers": [{"name": "c"}],
    }
    pod: Any = decode_object(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    )

    def outline(form: Any) -> tuple[str, bool, bool, bool, int, int]:
        (term,) = form.required_node_selector.terms
        values = {one.key: one.values[0] for one in term.expressions}
        return (
            values["t"],
            bool(form.required_affinity),
            bool(form.required_anti_affinity),
            "w" in values,
            len(form.topology_spread_constraints or ()),
            len(form.tolerations or ()),
        )

    assert [outline(form) for form in planned_forms(pod.spec, has_soft_taints=True)] == [
        ("1", True, True, True, 2, 0),
        ("2", True, True, True, 2, 0),
        ("2", False, True, True, 2, 0),
        ("2", False, False, True, 2, 0),
        ("2", False, False, False, 2, 0),
        ("2", False, False, False, 0, 0),
        ("2", False, False, False, 0, 1),
    ]
