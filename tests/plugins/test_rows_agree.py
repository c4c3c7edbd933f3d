"""Every in-tree Filter and Score plugin, on random clusters: all its forms agree.

The vectors run in the scheduler, the one-node forms in preemption and for few changed rows: neither may drift.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.node import HOSTNAME, ZONE, Node
from bayplan.api.pod import Pod
from bayplan.config.plugin_args import (
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    InterPodAffinityArgs,
    NodeLabelArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    ServiceAffinityArgs,
    UtilizationShapePoint,
)
from bayplan.framework import FilterPlugin, Plugin, ScorePlugin
from bayplan.plugins.in_tree import IN_TREE
from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity
from bayplan.plugins.node_declared_features import RESTART_ALL_CONTAINERS
from bayplan.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.table import NodeTable
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_object, make_pod, make_table
from bayplan.testing.conformance import check_conformance
from tests.rig.random_examples import examples

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GPU, STORAGE = "example.com/gpu", "ephemeral-storage"
MIB = 1024 * 1024
CORDON = "node.kubernetes.io/unschedulable"
NODE_NAMES = [f"n{i}" for i in range(6)]

maybe = st.booleans()
few_cpu = st.sampled_from([None, "0", "100m", "1", "1500m", "3"])
few_memory = st.sampled_from([None, "0", "100Mi", "1Gi", "3Gi"])
namespaces = st.sampled_from(["default", "blue"])
effects = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
taints = st.builds("{}={}:{}".format, st.sampled_from("ab"), st.sampled_from("xy"), effects)
tolerations = st.one_of(taints, st.sampled_from(["a", "b:PreferNoSchedule", "a=x", CORDON]))
images = st.sampled_from(["app:v1", "nginx", "registry:5000/db"])
ports = st.sampled_from([80, "80/UDP", "10.0.0.1:80", "10.0.0.2:80", 81])
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["db", "web"]))
numbers = st.sampled_from(["2", "10", "many"])
extended: st.SearchStrategy[dict[str, int | str]] = st.fixed_dictionaries(
    {}, optional={GPU: st.integers(0, 3), STORAGE: st.just("4Gi")}
)


def lists(elements: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(elements, max_size=most)


@st.composite
def requirements(draw: st.DrawFn, key: st.SearchStrategy[str]) -> dict[str, Any]:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.lists(st.sampled_from(["db", "web", "z1"]), min_size=1, max_size=2))
    return {
        "key": draw(key),
        "operator": operator,
        "values": values if operator.endswith("In") else [],
    }


def selectors(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    conditions = lists(requirements(st.sampled_from(keys)))
    return st.builds(lambda found: {"matchExpressions": found}, conditions)


@st.composite
def node_terms(draw: st.DrawFn) -> dict[str, Any]:
    term = draw(selectors(["app", "tier", ZONE]))
    if draw(maybe):
        operator = draw(st.sampled_from(["Gt", "Lt"]))
        condition = {"key": "cores", "operator": operator, "values": [draw(numbers)]}
        term["matchExpressions"].append(condition)
    if draw(maybe):
        name = {"key": "metadata.name", "operator": draw(st.sampled_from(["In", "NotIn"]))}
        term["matchFields"] = [{**name, "values": [draw(st.sampled_from(NODE_NAMES))]}]
    return term


@st.composite
def node_affinities(draw: st.DrawFn) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    if draw(maybe):
        affinity[REQUIRED] = {"nodeSelectorTerms": draw(lists(node_terms()))}
    if draw(maybe):
        terms = draw(lists(node_terms()))
        affinity[PREFERRED] = [
            {"weight": draw(st.integers(1, 5)), "preference": term} for term in terms
        ]
    return affinity


topology_keys = st.sampled_from([ZONE, HOSTNAME, "app"])


@st.composite
def pod_terms(draw: st.DrawFn) -> dict[str, Any]:
    term = {"topologyKey": draw(topology_keys), "labelSelector": draw(selectors(["app", "tier"]))}
    if draw(maybe):
        term["namespaces"] = ["default", "blue"]
    if draw(maybe):
        term["namespaceSelector"] = draw(st.sampled_from([{}, {"matchLabels": {"team": "blue"}}]))
    return term


@st.composite
def pod_affinities(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(maybe):
            wishes = [
                {"weight": draw(st.integers(1, 9)), "podAffinityTerm": term}
                for term in draw(lists(pod_terms(), 1))
            ]
            found[kind] = {REQUIRED: draw(lists(pod_terms(), 1)), PREFERRED: wishes}
    return found


@st.composite
def spreads(draw: st.DrawFn) -> dict[str, Any]:
    action = draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]))
    constraint = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(topology_keys),
        "whenUnsatisfiable": action,
        "labelSelector": draw(selectors(["app", "tier"])),
        "nodeTaintsPolicy": draw(st.sampled_from(["Honor", "Ignore"])),
        "nodeAffinityPolicy": draw(st.sampled_from(["Honor", "Ignore"])),
    }
    if action == "DoNotSchedule" and draw(maybe):
        constraint["minDomains"] = draw(st.integers(1, 3))
    return constraint


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Fields that pods seldom have."""
    spec: dict[str, Any] = {}
    if draw(maybe):
        rules = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
        spec["initContainers"] = [{"name": "i", "image": draw(images), **rules}]
    if draw(maybe):
        spec |= {"hostNetwork": True, "hostUsers": False}
    return spec


@st.composite
def pods(draw: st.DrawFn, name: str, on_node: bool) -> Pod:
    affinity = draw(pod_affinities()) if draw(maybe) else {}
    if draw(maybe):
        affinity["nodeAffinity"] = draw(node_affinities())
    there = draw(st.sampled_from(NODE_NAMES)) if on_node or draw(st.integers(0, 4)) == 0 else ""
    return make_pod(
        name,
        namespace=draw(namespaces),
        labels=draw(labels),
        cpu=draw(few_cpu),
        memory=draw(few_memory),
        requests=draw(extended),
        images=draw(st.lists(images, min_size=1, max_size=2)),
        host_ports=draw(lists(ports)),
        node_name=there,
        node_selector=draw(st.none() | labels),
        affinity=affinity,
        tolerations=draw(lists(tolerations)),
        spread=draw(lists(spreads())),
        terminating=on_node and draw(maybe),
        spec=draw(specs()),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    found = draw(labels)
    if draw(maybe):
        found["cores"] = draw(numbers)
    return make_node(
        name,
        labels=found,
        zone=draw(st.sampled_from([None, "z1", "z2"])),
        taints=draw(lists(taints)),
        unschedulable=draw(maybe),
        cpu=draw(st.sampled_from([None, "1", "3", "4"])),
        memory=draw(st.sampled_from([None, "3Gi", "8Gi"])),
        pods=draw(st.integers(0, 4)),
        extended=draw(extended),
        images=draw(st.dictionaries(images, st.integers(0, 900).map(lambda size: size * MIB))),
        features=(RESTART_ALL_CONTAINERS,) if draw(maybe) else (),
    )


@st.composite
def tables(draw: st.DrawFn) -> NodeTable:
    """A cluster, with pods of one node that may be deleted or not yet added."""
    count = draw(st.integers(1, len(NODE_NAMES)))
    residents = [draw(pods(f"r{i}", on_node=True)) for i in range(draw(st.integers(0, 5)))]
    table = make_table(
        *(draw(nodes(name)) for name in NODE_NAMES[:count]),
        pods=residents,
        namespaces={"default": {}, "blue": {"team": "blue"}},
    )
    if count > 1 and draw(maybe):
        TableWriter(table).remove_node(NODE_NAMES[draw(st.integers(0, count - 1))])
        table.images.refresh()
    return table


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Pod], NodeTable]:
    incoming = [draw(pods(f"p{i}", on_node=False)) for i in range(2)]
    return incoming, draw(tables())


RESOURCES = (ResourceSpec("cpu", 2), ResourceSpec("memory", 1), ResourceSpec(GPU, 3))
SHAPE = (
    UtilizationShapePoint(0, 3),
    UtilizationShapePoint(40, 10),
    UtilizationShapePoint(90, 0),
)


def strategy(kind: str, shape: RequestedToCapacityRatioParam | None = None) -> NodeResourcesFitArgs:
    return NodeResourcesFitArgs(
        ignored_resource_groups=("example.com",) if shape else (),
        scoring_strategy=ScoringStrategy(kind, RESOURCES, shape),
    )


JUDGES = [plugin for plugin in IN_TREE if issubclass(plugin, FilterPlugin | ScorePlugin)]
ARGS = {
    "NodeLabel": NodeLabelArgs(("app",), ("tier",), ("tier", ZONE), ("app",)),
    "RequestedToCapacityRatio": RequestedToCapacityRatioArgs(SHAPE, RESOURCES),
    "ServiceAffinity": ServiceAffinityArgs(("app", ZONE), (ZONE, "tier")),
}
"""Without a key for plugins that declare none."""
CASES: list[tuple[type[Plugin], Any]] = [
    *((plugin, ARGS.get(plugin.name)) for plugin in JUDGES),
    (NodeResourcesFit, strategy(MOST_ALLOCATED)),
    (
        NodeResourcesFit,
        strategy(REQUESTED_TO_CAPACITY_RATIO, RequestedToCapacityRatioParam(SHAPE)),
    ),
    (
        NodeResourcesBalancedAllocation,
        NodeResourcesBalancedAllocationArgs(
            resources=tuple(ResourceSpec(name, 1) for name in ("cpu", "memory", GPU, STORAGE))
        ),
    ),
    (InterPodAffinity, InterPodAffinityArgs(hard_pod_affinity_weight=50)),
]
SERVICE = make_object("Service", "db", spec={"selector": {"app": "db"}})


def test_all_kinds_of_plugins_are_there() -> None:
    assert {"NodeResourcesFit", "InterPodAffinity", "PodTopologySpread", "ImageLocality"} <= {
        plugin.name for plugin in JUDGES
    }


@given(cluster=clusters())
@settings(max_examples=examples(12), deadline=None)
def test_rows_agree(cluster: tuple[list[Pod], NodeTable]) -> None:
    incoming, table = cluster

    # Making a cluster takes longer than judging it: all plugins share one, and the message names the plugin.
    for plugin, args in CASES:
        check_conformance(plugin, incoming, table, args, objects=[SERVICE])
