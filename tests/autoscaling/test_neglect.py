"""No pod waits at the end of a run that a new node of a pool would take."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bayplan.autoscaling import AutoscalerOptions
from bayplan.autoscaling.autoscaler import Autoscaler
from bayplan.autoscaling.launch_options import LaunchPlan
from bayplan.planning import NodePool
from bayplan.sim.autoscaling_record import NeglectedPod
from bayplan.testing.builders import make_pod
from tests.autoscaling.scaled import (
    GROUPS,
    KARPENTER,
    make_pool,
    make_type,
    make_workload,
    run_scaled,
    scaling_of,
)
from tests.rig.random_examples import examples

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SMALL = make_type("small", 4, 0.2)
BOTH = [
    pytest.param(KARPENTER, id="Karpenter"),
    pytest.param(GROUPS, id="Cluster Autoscaler"),
]


@pytest.mark.parametrize("options", BOTH)
def test_a_pod_whose_planned_node_is_taken_by_others_gets_another_one(
    options: AutoscalerOptions,
) -> None:
    """The scheduler spreads the small pods over both nodes, so that the large one fits neither."""
    pods = [make_pod(f"p{i}", cpu=cpu) for i, cpu in enumerate(["1", "1", "2", "4"])]

    report = run_scaled(pods, [make_pool(SMALL)], options, until_s=86_400.0)

    assert not report.pending
    assert scaling_of(report).launched >= 3
    assert not scaling_of(report).neglected


@pytest.mark.parametrize("options", BOTH)
def test_a_pod_that_is_not_planned_for_is_an_error(
    options: AutoscalerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Autoscaler, "_plan", lambda self, pods: LaunchPlan(left=pods))
    big = make_type("big", 16, 0.7, pool="q", zones=("a", "b"))
    pools = [make_pool(SMALL), make_pool(big, name="q", weight=1)]

    report = run_scaled([make_pod("lost", cpu="2")], pools, options, until_s=600.0)

    assert scaling_of(report).neglected == [NeglectedPod("default/lost", "q", "big", "a")]
    (error,) = report.to_dict()["scaling"]["errors"]
    assert error["message"] == (
        "pod default/lost waits at the end, though pool q may have a new node of type big in zone a that would take it"
    )


@pytest.mark.parametrize("options", BOTH)
@pytest.mark.parametrize(
    ("pool", "until_s"),
    [
        pytest.param(make_pool(SMALL, maximum=1), 600.0, id="the pool may have no further node"),
        pytest.param(make_pool(make_type("tiny", 1, 0.1)), 600.0, id="no type holds the pod"),
        pytest.param(make_pool(SMALL), 15.0, id="the node boots"),
    ],
)
def test_a_pod_that_has_to_wait_is_no_error(
    options: AutoscalerOptions, pool: NodePool, until_s: float
) -> None:
    report = run_scaled([make_workload("web", 2, "3")], [pool], options, until_s=until_s)

    assert report.pending
    assert not scaling_of(report).neglected


@st.composite
def make_forms(draw: st.DrawFn) -> dict[str, Any]:
    """Constraints of the pods of a workload besides amounts."""
    selector = {"labelSelector": {"matchLabels": {"app": draw(st.sampled_from("ab"))}}}
    kind = draw(st.sampled_from(["plain", "spread", "apart", "together"]))
    if kind == "spread":
        spread = {
            "maxSkew": draw(st.integers(1, 2)),
            "topologyKey": draw(st.sampled_from([ZONE, HOST])),
            "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
        }
        return {"topologySpreadConstraints": [spread | selector]}
    if kind == "plain":
        return {}
    term = {"topologyKey": draw(st.sampled_from([ZONE, HOST]))} | selector
    part = "podAntiAffinity" if kind == "apart" else "podAffinity"
    if draw(st.booleans()):
        return {"affinity": {part: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    wish = {"weight": draw(st.integers(1, 100)), "podAffinityTerm": term}
    return {"affinity": {part: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}}


@st.composite
def make_case(draw: st.DrawFn) -> tuple[list[Any], list[NodePool], AutoscalerOptions]:
    objects = [
        make_workload(
            name,
            draw(st.integers(1, 6)),
            draw(st.sampled_from(["300m", "1", "2", "4"])),
            **draw(make_forms()),
        )
        for name in ("a", "b", "c")
    ]
    types = [
        make_type("small", 4, 0.2, zones=("x", "y")),
        make_type("big", 16, 0.7, zones=("y", "z")),
        make_type("odd", 5, 0.3),
    ]
    one, other = draw(st.permutations(types))[:2]
    limits = draw(st.sampled_from([{}, {"cpu": 12_000}]))
    pools = [
        make_pool(one, name="p", weight=draw(st.integers(0, 1))),
        make_pool(other, name="q", maximum=draw(st.sampled_from([None, 2])), limits=limits),
    ]
    options = AutoscalerOptions(
        autoscaler=draw(st.sampled_from(["karpenter", "cluster-autoscaler"])),
        seed=draw(st.integers(0, 9)),
    )
    return objects, pools, options


@settings(max_examples=examples(15), deadline=None, derandomize=True, phases=(Phase.generate,))
@given(make_case())
def test_no_pod_is_neglected(case: tuple[list[Any], list[NodePool], AutoscalerOptions]) -> None:
    objects, pools, options = case

    report = run_scaled(objects, pools, options, until_s=1800.0)

    assert not scaling_of(report).neglected
