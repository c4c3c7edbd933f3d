"""Estimates of node groups: the quick ways give the result of packing one pod after another in every group."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.api.affinity import NodeAffinity
from bayplan.api.pod import Pod
from bayplan.api.taints import Taint
from bayplan.autoscaling.amount_packer import amount_packing, classes_of
from bayplan.autoscaling.expanders import GroupEstimate
from bayplan.autoscaling.group_estimates import AlikeGroups, GroupPlanner
from bayplan.autoscaling.group_packing import settle_rows, takes_some
from bayplan.autoscaling.launch_options import LaunchOptions
from bayplan.clock import ManualClock
from bayplan.config.defaults import default_config
from bayplan.config.plugin_args import NodeAffinityArgs, NodeResourcesFitArgs
from bayplan.planning import NodePool, NodeType
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod
from bayplan.trials import TrialCluster
from tests.autoscaling.scaled import (
    GROUPS,
    make_pool,
    make_type,
    make_workload,
    run_scaled,
)

ZONE = "topology.kubernetes.io/zone"
FAMILY = "example.com/family"


def told(estimate: GroupEstimate) -> list[tuple[str, str, list[str]]]:
    """The nodes with the workloads of their pods; of equal pods any may be the one."""
    return [
        (one.label, one.zone, sorted(pod.labels["app"] for pod in pods))
        for one, pods in estimate.launches
    ]


class Compared:
    """Replaces the estimates of a run by themselves, and compares them with those of every group alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups = 0
        self.quick = 0
        self.shared = 0
        estimates, estimate = GroupPlanner._estimates, GroupPlanner._estimate
        packed: list[bool] = []

        def counted(planner: Any, growth: Any, most: int, pods: Any, quick: Any) -> GroupEstimate:
            packed.append(quick is not None)
            return estimate(planner, growth, most, pods, quick)

        def estimate_alone(planner: Any, growth: Any, pods: list[Pod]) -> GroupEstimate:
            rooms = planner._rooms(growth, planner._growing)
            most = min([planner._most_nodes(len(pods)), *rooms])
            able = takes_some(growth.members, planner._options, planner._shadow, classes_of(pods))
            assert able == growth.able
            return estimate(planner, growth, most, pods, None)

        def compared(planner: Any, pods: list[Pod]) -> list[GroupEstimate]:
            packed.clear()
            found = estimates(planner, pods)
            if not found:
                return found
            alone = [estimate_alone(planner, one, pods) for one in planner._growing]
            assert [told(one) for one in found] == [told(one) for one in alone]
            assert [one.waste() for one in found] == [one.waste() for one in alone]
            assert [one.price_score(3) for one in found if one.launches] == [
                one.price_score(3) for one in alone if one.launches
            ]
            self.groups += len(found)
            self.quick += sum(packed)
            self.shared += len(found) - len(packed)
            return found

        monkeypatch.setattr(GroupPlanner, "_estimate", counted)
        monkeypatch.setattr(GroupPlanner, "_estimates", compared)


amounts = st.sampled_from([(2, 0.1), (2, 0.2), (4, 0.2), (8, 0.5)])
kinds = st.tuples(amounts, st.sampled_from(["x", "y"]), st.sampled_from([("a",), ("a", "b")]))
workloads = st.tuples(
    st.integers(1, 9),
    st.sampled_from(["100m", "300m", "700m", "1500m"]),
    st.sampled_from(["", "zone", "family", "priority", "spread", "apart"]),
)


def make_type_of(number: int, kind: Any) -> NodeType:
    (cpu, price), family, zones = kind
    return make_type(f"t{number}", cpu, price, zones=zones, labels={FAMILY: family})


def make_workload_of(number: int, workload: Any) -> Any:
    replicas, cpu, demand = workload
    selector = {"labelSelector": {"matchLabels": {"app": f"app-{number}"}}}
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": ZONE} | selector
    term = selector | {"topologyKey": "kubernetes.io/hostname"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    demands: dict[str, dict[str, Any]] = {
        "": {},
        "zone": {"nodeSelector": {ZONE: "b"}},
        "family": {"nodeSelector": {FAMILY: "x"}},
        "priority": {"priority": 5},
        "spread": {"topologySpreadConstraints": [rule]},
        "apart": {"affinity": {"podAntiAffinity": required}},
    }
    return make_workload(f"app-{number}", replicas, cpu, **demands[demand])


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    st.lists(kinds, min_size=1, max_size=4),
    st.lists(workloads, min_size=1, max_size=4),
    st.sampled_from([{}, {"maximum": 2}, {"limits": {"cpu": 9000}}]),
    st.booleans(),
)
def test_every_estimate_is_that_of_its_group_alone(
    types: list[Any], pods: list[Any], bounds: dict[str, Any], with_daemon: bool
) -> None:
    pool = make_pool(*(make_type_of(i, kind) for i, kind in enumerate(types)), **bounds)
    objects = [make_workload_of(i, one) for i, one in enumerate(pods)]
    if with_daemon:
        objects.append(make_workload("agent", 0, "100m", kind="DaemonSet"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        Compared(monkeypatch)

        run_scaled([make_node("here", cpu="1", memory="4Gi"), *objects], [pool], GROUPS)


def test_equal_types_are_packed_once_and_only_amounts_need_no_scheduler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = Compared(monkeypatch)
    pool = make_pool(*(make_type(f"t{i}", 4 + i % 2, 0.1 + i / 100) for i in range(6)))

    run_scaled([make_workload("a", 9), make_workload("b", 4, "300m")], [pool], GROUPS)

    assert (compared.groups % 6, compared.quick * 3) == (0, compared.groups)
    assert compared.shared == compared.groups - compared.quick


def test_a_pod_for_one_zone_is_not_packed_on_a_node_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = Compared(monkeypatch)
    objects = [make_workload("a", 1, "2"), make_workload_of(0, (2, "300m", "zone"))]

    run_scaled(objects, [make_pool(make_type("t", 4, 0.1, zones=("a", "b")))], GROUPS)

    assert compared.quick


def test_types_with_other_daemons_are_packed_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Compared(monkeypatch)
    types = [make_type(name, 4, 0.1, labels={FAMILY: name}) for name in ("x", "y")]
    daemon = make_workload("agent", 0, "1", kind="DaemonSet", nodeSelector={FAMILY: "x"})

    run_scaled([daemon, make_workload("a", 9)], [make_pool(*types)], GROUPS)

    assert compared.groups
    assert not compared.shared


def test_one_pod_with_a_spread_is_enough_for_no_quick_packing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = Compared(monkeypatch)
    objects = [make_workload("a", 9), make_workload_of(0, (2, "1", "spread"))]

    run_scaled(objects, [make_pool(make_type("t", 4, 0.1, zones=("a", "b")))], GROUPS)

    assert compared.groups
    assert not compared.quick


def planned(
    pods: list[Pod], *types: NodeType, given_settings: Settings | None = None, **bounds: Any
) -> tuple[LaunchOptions, TrialCluster]:
    scheduler = given_settings or Settings(seed=0)
    shadow = TrialCluster((), scheduler, ManualClock(), in_full=False)
    options = LaunchOptions([NodePool("p", types, **bounds)], [], scheduler, shadow)
    options.learn(pods)
    return options, shadow


def configured(plugin: str, args: Any) -> Settings:
    config = default_config()
    (profile,) = config.profiles
    arguments = {**profile.plugin_config, plugin: args}
    return Settings(config=replace(config, profiles=(replace(profile, plugin_config=arguments),)))


def test_amounts_that_the_scheduler_ignores_are_not_packed_by() -> None:
    pods, kind = [make_pod("p", cpu="1")], make_type("t", 4, 0.1)
    ignoring = configured("NodeResourcesFit", NodeResourcesFitArgs(("example.com/gpu",)))
    options, shadow = planned(pods, kind)

    assert amount_packing(options, shadow, Settings(), pods) is not None
    assert amount_packing(options, shadow, ignoring, pods) is None


PLAIN = make_type("one", 4, 0.1, labels={FAMILY: "x"})


@pytest.mark.parametrize(
    ("other", "pod", "bounds", "is_alike"),
    [
        pytest.param({}, {}, {}, True, id="another name, price and label"),
        pytest.param(
            {}, {"node_selector": {FAMILY: "z"}}, {}, False, id="a label that a pod reads"
        ),
        pytest.param(
            {"taints": (Taint(key="a", effect="PreferNoSchedule"),)}, {}, {}, False, id="a taint"
        ),
        pytest.param({"zones": ("b",)}, {}, {}, False, id="another zone"),
        pytest.param({"memory": 5}, {}, {}, False, id="other amounts"),
        pytest.param({"capacity": 5000}, {}, {}, True, id="a capacity that nothing limits"),
        pytest.param(
            {"capacity": 5000}, {}, {"limits": {"cpu": 99_000}}, False, id="a limited capacity"
        ),
    ],
)
def test_types_are_alike_if_no_pod_can_tell_them_apart(
    other: dict[str, Any], pod: dict[str, Any], bounds: dict[str, Any], is_alike: bool
) -> None:
    amounts = dict(PLAIN.allocatable) | ({"memory": 5 << 30} if "memory" in other else {})
    capacity = dict(PLAIN.capacity) | ({"cpu": other["capacity"]} if "capacity" in other else {})
    labels = {**PLAIN.labels, FAMILY: "y"}
    more = {name: other[name] for name in ("taints", "zones") if name in other}
    second = NodeType("two", capacity, amounts, labels, price=0.3, **more)
    pods = [make_pod("p", cpu="1", **pod)]
    options, shadow = planned(pods, PLAIN, second, **bounds)

    alike = AlikeGroups(Settings(), shadow.table, pods)

    assert (alike.key([options.all[0]]) == alike.key([options.all[1]])) == is_alike


def test_no_types_are_alike_where_the_configuration_reads_labels() -> None:
    pods = [make_pod("p", cpu="1")]
    second = NodeType("two", PLAIN.capacity, PLAIN.allocatable, PLAIN.labels, price=0.3)
    options, shadow = planned(pods, PLAIN, second)
    reading = configured("NodeAffinity", NodeAffinityArgs(NodeAffinity()))

    keys = [
        [AlikeGroups(one, shadow.table, pods).key([option]) for option in options.all]
        for one in (Settings(), reading)
    ]

    assert keys[0][0] == keys[0][1]
    assert keys[1][0] != keys[1][1]


@pytest.mark.parametrize(
    ("had", "counts"),
    [
        pytest.param([], [3, 1, 5, 2], id="nothing was there"),
        pytest.param([3, 5], [3, 1, 5, 2], id="some were there"),
        pytest.param([2, 2], [2, 2], id="all were there"),
    ],
)
def test_rows_are_left_as_if_every_group_had_its_nodes(had: list[int], counts: list[int]) -> None:
    def rows_after(turns: list[int], *settled: list[int]) -> list[int]:
        shadow = TrialCluster((), Settings(), ManualClock(), in_full=False)
        for turn in ([2], turns):
            for count in turn:
                nodes = [make_node(f"n{i}") for i in range(count)]
                shadow.put(nodes)
                shadow.drop(nodes)
        for given_counts in settled:
            settle_rows(shadow, turns, given_counts)
        after = [make_node(f"after-{i}") for i in range(7)]
        shadow.put(after)
        return [shadow.table.row_of[node.name] for node in after]

    assert rows_after(had, counts) == rows_after(counts)
