"""Pins: a pod that names its node goes there exactly when the long road sends it there."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.clock import ManualClock
from bayplan.cluster.memory import MemoryCluster
from bayplan.config import default_config, parse_config
from bayplan.framework import FilterPlugin, Handle
from bayplan.framework.status import SUCCESS
from bayplan.plugins.registry import IN_TREE
from bayplan.runtime import ProfileRuntime, Registry
from bayplan.scheduler import Attempt, FirstFound, Scheduler, build_scheduler
from bayplan.table import NodeTable
from bayplan.testing.builders import make_node, make_pod, make_table

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NAMES = [f"n{i}" for i in range(5)]
ZONE = "topology.kubernetes.io/zone"


def term(*names: str, disk: str | None = None, operator: str = "In") -> dict[str, Any]:
    """A term that names nodes, and maybe asks for a disk as well."""
    fields = [{"key": "metadata.name", "operator": operator, "values": [name]} for name in names]
    asks = [{"key": "disk", "operator": "In", "values": [disk]}] if disk else []
    return {"matchFields": fields, "matchExpressions": asks}


def pinned(*terms: dict[str, Any], **pod: Any) -> Pod:
    return make_pod(
        pod.pop("name", "p"),
        node_affinity={REQUIRED: {"nodeSelectorTerms": list(terms)}},
        **pod,
    )


def make_profile(
    table: NodeTable, plugins: Any = None, *more: type[FilterPlugin]
) -> ProfileRuntime:
    """A profile of the default plugins, changed by `plugins` of a configuration."""
    config = parse_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins or {}}],
        }
    )
    return ProfileRuntime(config.profiles[0], Registry((*IN_TREE, *more)), Handle(table))


@pytest.mark.parametrize(
    ("pod", "pin"),
    [
        pytest.param(make_pod("p"), "", id="no affinity"),
        pytest.param(pinned(term("n1")), "n1", id="one term, one name"),
        pytest.param(pinned(term("n1", disk="ssd")), "n1", id="a name and a label"),
        pytest.param(pinned(term("n1"), term("n1", disk="ssd")), "n1", id="twice the same name"),
        pytest.param(pinned(term("n1"), term("n2")), "", id="two names"),
        pytest.param(pinned(term("n1"), term(disk="ssd")), "", id="one term names no node"),
        pytest.param(pinned(term("n1", "n2")), "", id="a contradiction"),
        pytest.param(pinned(term("n1", operator="NotIn")), "", id="any but that one"),
    ],
)
def test_a_pin_is_the_only_name_in_every_term(pod: Pod, pin: str) -> None:
    assert pod.spec.pin == pin
    assert (pod.spec.unpinned is None) == (pin == "")


def test_pods_that_differ_in_the_pin_only_are_one_class() -> None:
    one, other = pinned(term("n1"), cpu="1"), pinned(term("n2"), cpu="1")

    assert one.spec.unpinned is other.spec.unpinned
    assert one.pod_class is other.pod_class
    assert one.spec.unpinned is make_pod("p", cpu="1").spec
    assert one.spec.requests is other.spec.requests


nodes = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.sampled_from([{"disk": "ssd"}, {"disk": "hdd"}]),
        "taints": st.sampled_from([["gpu=yes:NoSchedule"], ["slow:PreferNoSchedule"]]),
        "unschedulable": st.booleans(),
        "cpu": st.sampled_from(["1", "4"]),
    },
)
terms = st.builds(
    term, st.sampled_from([*NAMES, "gone"]), disk=st.sampled_from([None, "ssd", "hdd"])
)
wishes = st.one_of(
    st.lists(terms, min_size=1, max_size=2),
    terms.map(lambda one: [one, one]),
)
pods = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["500m", "2", "8"]),
        "tolerations": st.sampled_from([["gpu"], ["node.kubernetes.io/unschedulable"]]),
        "host_ports": st.just([80]),
        "node_selector": st.just({"disk": "ssd"}),
        "labels": st.sampled_from([{"app": "web"}, {"app": "db"}]),
        "spread": st.just(
            [
                {
                    "maxSkew": 1,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        ),
    },
)


def make_scheduler(world: list[Node], explain: bool) -> tuple[MemoryCluster, Scheduler]:
    cluster = MemoryCluster()
    for node in world:
        cluster.add(node)
    scheduler = build_scheduler(
        default_config(), cluster, clock=ManualClock(), ties=FirstFound(), explain=explain
    )
    cluster.watch(scheduler)
    return cluster, scheduler


def told(attempt: Attempt | None) -> tuple[Any, ...]:
    assert attempt is not None
    return attempt.node_name, attempt.feasible_nodes, attempt.evaluated_nodes, attempt.message


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(
    st.lists(nodes, min_size=len(NAMES), max_size=len(NAMES)),
    st.lists(st.one_of(st.tuples(wishes, pods), st.tuples(st.none(), pods)), max_size=8),
    st.integers(0, 4),
)
def test_the_shortcut_and_the_long_road_come_to_the_same(
    world: list[dict[str, Any]], wanted: list[tuple[list[Any] | None, dict[str, Any]]], gone: int
) -> None:
    made = [make_node(name, zone="z1", **each) for name, each in zip(NAMES, world, strict=True)]
    sides = [make_scheduler(made, explain) for explain in (False, True)]
    for number, (wish, more) in enumerate(wanted):
        pod = pinned(*wish, **more) if wish else make_pod("p", **more)
        attempts = []
        for cluster, scheduler in sides:
            if number == 4:
                cluster.delete(made[gone])
            cluster.add(pod.replace(name=f"p{number}", uid=f"u{number}"))
            attempts.append(scheduler.schedule_one())
        short, long = attempts
        assert told(short) == told(long)


def test_the_next_search_begins_one_node_further() -> None:
    cluster, scheduler = make_scheduler([make_node(name) for name in NAMES], explain=False)
    for pod in (pinned(term("n3"), name="first"), make_pod("second")):
        cluster.add(pod)

    names = [told(scheduler.schedule_one())[0] for _ in range(2)]

    assert names == ["n3", "n1"]


class WatchesPins(FilterPlugin):
    """A filter that looks at the affinity."""

    name = "WatchesPins"

    def filter_node(self, state: Any, pod: Pod, node: Any) -> Any:
        return SUCCESS


def test_a_plugin_that_may_look_at_the_pin_takes_the_long_road() -> None:
    table = make_table(make_node("n1"))
    watching = {"filter": {"enabled": [{"name": "WatchesPins"}]}}

    assert make_profile(table).pins.find(pinned(term("n1")), table) == 0
    assert make_profile(table, watching, WatchesPins).pins.find(pinned(term("n1")), table) is None


def test_without_node_affinity_a_pin_means_nothing() -> None:
    table = make_table(make_node("n1"))
    without = {"multiPoint": {"disabled": [{"name": "NodeAffinity"}]}}

    assert make_profile(table, without).pins.find(pinned(term("n1")), table) is None
