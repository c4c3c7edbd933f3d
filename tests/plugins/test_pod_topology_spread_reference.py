"""PodTopologySpread against a slow reference that reads every pod on every node."""

import math
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.node import Node
from bayplan.api.pod import Pod, TopologySpreadConstraint
from bayplan.api.selectors import LabelSelector
from bayplan.api.taints import Taint, find_untolerated
from bayplan.api.wire.decode import decode_object
from bayplan.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    Handle,
    Status,
    unresolvable,
    unschedulable,
)
from bayplan.plugins.pod_topology_spread.plugin import (
    REASON,
    REASON_MISSING_LABEL,
    PodTopologySpread,
)
from bayplan.table import NodeTable, Rows
from bayplan.table.writer import TableWriter
from tests.rig.random_examples import examples

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SERVICE = decode_object(
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "n1"},
        "spec": {"selector": {"a": "1"}},
    }
)
SYSTEM = [
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="soft"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="soft"),
]
Counted = list[dict[str, int]]


class OneService:
    """A cluster whose only other object is a service."""

    version = 1

    def version_of(self, *kinds: str) -> int:
        return self.version

    def list(self, kind: str, namespace: str | None = None) -> list[Any]:
        return [SERVICE] if kind == "Service" and namespace == "n1" else []

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        return None


# The reference.


def selector_of(constraint: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    selector = constraint.label_selector
    for key in constraint.match_label_keys or ():
        if key in pod.labels and selector is not None:
            selector = selector.with_requirement(key, "In", [pod.labels[key]])
    return selector


def count_on(node: Node, pods: list[Pod], selector: LabelSelector | None, pod: Pod) -> int:
    if selector is None or selector.is_empty:
        return 0
    return sum(
        other.node_name == node.name
        and other.namespace == pod.namespace
        and not other.is_terminating
        and selector.matches(other.labels)
        for other in pods
    )


def is_included(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    wanted = (pod.spec.node_selector or {}).items()
    if constraint.node_affinity_policy != "Ignore" and not wanted <= node.labels.items():
        return False
    honors_taints = constraint.node_taints_policy == "Honor"
    return not honors_taints or find_untolerated(node.taints, pod.tolerations) is None


def has_all(constraints: list[TopologySpreadConstraint], node: Node) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)


def hard_counts(pod: Pod, nodes: list[Node], pods: list[Pod]) -> Counted:
    """Pods per value, for each hard constraint."""
    hard = constraints_of(pod, "DoNotSchedule")
    counted: Counted = [{} for _ in hard]
    for node in nodes:
        for constraint, counts in zip(hard, counted, strict=True):
            if has_all(hard, node) and is_included(constraint, pod, node):
                value = node.labels[constraint.topology_key]
                found = count_on(node, pods, selector_of(constraint, pod), pod)
                counts[value] = counts.get(value, 0) + found
    return counted


def change_counts(counted: Counted, pod: Pod, changed: Pod, node: Node, change: int) -> None:
    hard = constraints_of(pod, "DoNotSchedule")
    if changed.namespace != pod.namespace or not has_all(hard, node):
        return
    for constraint, counts in zip(hard, counted, strict=True):
        selector = selector_of(constraint, pod)
        selected = selector is not None and selector.matches(changed.labels)
        if selected and is_included(constraint, pod, node):
            counts[node.labels[constraint.topology_key]] += change


def reference_filter(pod: Pod, nodes: list[Node], counted: Counted) -> list[Status]:
    def judge(node: Node) -> Status:
        hard = constraints_of(pod, "DoNotSchedule")
        for constraint, counts in zip(hard, counted, strict=True):
            if constraint.topology_key not in node.labels:
                return unresolvable(REASON_MISSING_LABEL)
            enough = len(counts) >= (constraint.min_domains or 1)
            lowest = min(counts.values()) if enough else 0
            selector = selector_of(constraint, pod)
            self_match = selector is not None and selector.matches(pod.labels)
            here = counts.get(node.labels[constraint.topology_key], 0)
            if here + self_match - lowest > constraint.max_skew:
                return unschedulable(REASON)
        return SUCCESS

    return [judge(node) for node in nodes]


def reference_scores(
    pod: Pod, nodes: list[Node], pods: list[Pod], feasible: list[Node]
) -> tuple[list[int], list[int]] | None:
    """Raw (-1: ignored) and normalised scores of the feasible nodes; None where skipped."""
    own = bool(pod.spec.topology_spread_constraints)
    soft = constraints_of(pod, "ScheduleAnyway") if own else SYSTEM
    selectors = [selector_of(c, pod) if own else LabelSelector.of({"a": "1"}) for c in soft]
    if not soft or (not own and (pod.namespace != "n1" or pod.labels.get("a") != "1")):
        return None
    ignored = [own and not has_all(soft, node) for node in feasible]
    kept = [node for node, skip in zip(feasible, ignored, strict=True) if not skip]
    totals = [0.0] * len(feasible)
    for constraint, selector in zip(soft, selectors, strict=True):
        key = constraint.topology_key
        counts: defaultdict[str, int] = defaultdict(int)
        for node in nodes:
            if (has_all(soft, node) or not own) and is_included(constraint, pod, node):
                counts[node.labels.get(key, "")] += count_on(node, pods, selector, pod)
        values = {node.labels.get(key, "") for node in kept}
        weight = math.log((len(kept) if key == HOSTNAME else len(values)) + 2)
        for i, node in enumerate(feasible):
            if key in node.labels:
                on_node = count_on(node, pods, selector, pod)
                number = on_node if key == HOSTNAME else counts[node.labels[key]]
                totals[i] += number * weight + (constraint.max_skew - 1)
    raw = [-1 if s else math.floor(t + 0.5) for t, s in zip(totals, ignored, strict=True)]
    highest = max([score for score in raw if score >= 0], default=0)
    lowest = min([score for score in raw if score >= 0], default=0)

    def normal(score: int) -> int:
        if score < 0:
            return 0
        return 100 * (highest + lowest - score) // highest if highest else 100

    return raw, [normal(score) for score in raw]


def constraints_of(pod: Pod, action: str) -> list[TopologySpreadConstraint]:
    given_constraints = pod.spec.topology_spread_constraints or ()
    return [c for c in given_constraints if c.when_unsatisfiable == action]


# Random clusters.

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)
NODE_LABELS = st.fixed_dictionaries(
    {},
    optional={
        ZONE: st.sampled_from(["", "x", "y"]),
        "rack": st.sampled_from(["", "r", "s"]),
        HOSTNAME: st.sampled_from(["h1", "h2", "h3"]),
        "pool": st.just("p"),
    },
)
TAINTS = st.sampled_from([(), (Taint(key="k", effect="NoSchedule"),)])
SELECTORS = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"a": "1"}},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]},
    ]
)


@st.composite
def constraints(draw: st.DrawFn) -> dict[str, Any]:
    made: dict[str, Any] = {
        "maxSkew": draw(st.integers(1, 3)),
        "topologyKey": draw(st.sampled_from([ZONE, ZONE, "rack", HOSTNAME])),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
        "nodeAffinityPolicy": draw(st.sampled_from([None, "Honor", "Ignore"])),
        "nodeTaintsPolicy": draw(st.sampled_from([None, "Honor", "Ignore"])),
        "labelSelector": draw(SELECTORS),
    }
    if made["whenUnsatisfiable"] == "DoNotSchedule":
        made["minDomains"] = draw(st.sampled_from([None, 1, 2, 3]))
    if made["labelSelector"] and draw(st.booleans()):
        made["matchLabelKeys"] = ["b"] if "matchLabels" in made["labelSelector"] else None
    return {name: value for name, value in made.items() if value is not None}


@st.composite
def pods(draw: st.DrawFn, name: str, places: list[str], constrained: bool = False) -> Pod:
    spec: dict[str, Any] = {"nodeName": draw(st.sampled_from(places))}
    metadata: dict[str, Any] = {"name": name, "uid": name, "labels": draw(LABELS)}
    metadata["namespace"] = draw(st.sampled_from(["n1", "n1", "n1", "n2"]))
    if constrained:
        own = draw(st.lists(constraints(), max_size=3))
        unique = {(c["topologyKey"], c["whenUnsatisfiable"]): c for c in own}
        spec["topologySpreadConstraints"] = list(unique.values())
        spec["nodeSelector"] = draw(st.sampled_from([{}, {}, {"pool": "p"}]))
        spec["tolerations"] = draw(st.sampled_from([[], [{"operator": "Exists"}]]))
    elif draw(st.integers(0, 5)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pod = decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert isinstance(pod, Pod)
    return pod


@st.composite
def nodes_and_pods(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    nodes = [
        Node(f"node{i}", labels=draw(NODE_LABELS), taints=draw(TAINTS))
        for i in range(draw(st.integers(1, 5)))
    ]
    places = [*(node.name for node in nodes), "ghost"]
    return nodes, [draw(pods(f"p{i}", places)) for i in range(draw(st.integers(0, 8)))]


def make_writer(nodes: list[Node], there: list[Pod]) -> TableWriter:
    writer = TableWriter(NodeTable())
    for node in nodes:
        writer.set_node(node)
    for pod in there:
        writer.add_pod(pod)
    return writer


def plugin_filter(plugin: PodTopologySpread, pod: Pod, table: NodeTable) -> list[Status]:
    state = CycleState()
    if plugin.pre_filter(state, pod, table) == SKIP:
        return [SUCCESS] * table.node_count
    verdict = plugin.filter_rows(state, pod, table, table.live_rows)
    statuses = [verdict.status(position) for position in range(len(verdict))]
    one_by_one = [plugin.filter_node(state, pod, n) for n in table.nodes_at(table.live_rows)]
    assert one_by_one == statuses
    return statuses


def plugin_scores(
    plugin: PodTopologySpread, pod: Pod, table: NodeTable, rows: Rows
) -> tuple[list[int], list[int]] | None:
    state = CycleState()
    if plugin.pre_score(state, pod, table, rows) == SKIP:
        return None
    raw = plugin.score_rows(state, pod, table, rows)
    assert [plugin.score_node(state, pod, n) for n in table.nodes_at(rows)] == raw.tolist()
    return raw.tolist(), plugin.normalize(raw).tolist()


@settings(max_examples=examples(70), deadline=None)
@given(nodes_and_pods(), pods("new", [""], constrained=True), st.data())
def test_filter_and_score_agree_with_the_reference(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
) -> None:
    nodes, there = cluster
    writer = make_writer(nodes, there)
    table = writer.table
    plugin = PodTopologySpread.from_args(None, Handle(table, lister=OneService()))

    def check() -> None:
        counted = hard_counts(pod, nodes, there)
        assert plugin_filter(plugin, pod, table) == reference_filter(pod, nodes, counted)
        feasible = [node for node in nodes if data.draw(st.booleans())] or nodes
        rows = table.numbers(table.live_rows)
        rows = rows[[table.nodes[row] in feasible for row in rows]]
        expected = reference_scores(pod, nodes, there, feasible)
        assert plugin_scores(plugin, pod, table, rows) == expected

    check()
    # The counts exist now; they follow added and removed pods, and changes of nodes.
    gone = data.draw(st.lists(st.sampled_from(there), unique=True)) if there else []
    come = data.draw(pods("late", [node.name for node in nodes]))
    nodes[0] = nodes[0].replace(labels=data.draw(NODE_LABELS), taints=data.draw(TAINTS))
    for other in gone:
        writer.remove_pod(other)
    writer.add_pod(come)
    writer.set_node(nodes[0])
    there = [other for other in there if other not in gone] + [come]
    check()


@settings(max_examples=examples(70), deadline=None)
@given(nodes_and_pods(), pods("new", [""], constrained=True), st.data())
def test_what_if_is_the_same_as_the_changed_counts(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
) -> None:
    nodes, there = cluster
    table, state = make_writer(nodes, there).table, CycleState()
    plugin = PodTopologySpread.from_args(None, Handle(table))
    if plugin.pre_filter(state, pod, table) == SKIP:
        return
    before = plugin.filter_rows(state, pod, table, table.live_rows)
    counted = hard_counts(pod, nodes, there)
    node = data.draw(st.sampled_from(nodes))
    row = table.row_of[node.name]
    fork, what_if = table.fork_row(row), state.clone()
    here = [other for other in there if other.node_name == node.name]
    gone = data.draw(st.lists(st.sampled_from(here), unique=True)) if here else []
    come = [data.draw(pods(f"late{i}", [node.name])) for i in range(data.draw(st.integers(0, 2)))]

    for other in gone:
        plugin.remove_pod(what_if, pod, other, fork.node_at(0))
        change_counts(counted, pod, other, node, -1)
    for other in come:
        plugin.add_pod(what_if, pod, other, fork.node_at(0))
        change_counts(counted, pod, other, node, 1)

    expected = reference_filter(pod, nodes, counted)
    whole = plugin.filter_rows(what_if, pod, table, table.live_rows)
    assert [whole.status(position) for position in range(len(whole))] == expected
    assert plugin.filter_rows(what_if, pod, fork, fork.live_rows).status(0) == expected[row]
    assert plugin.filter_node(what_if, pod, fork.node_at(0)) == expected[row]
    again = plugin.filter_rows(state, pod, table, table.live_rows)
    assert again.codes.tolist() == before.codes.tolist(), "the what-if touched the live counts"

    # Pods being deleted and empty selectors apart, this equals a fresh count of the cluster.
    hard = constraints_of(pod, "DoNotSchedule")
    plain = all(c.label_selector is None or not c.label_selector.is_empty for c in hard)
    if plain and not any(other.is_terminating for other in [*gone, *come]):
        changed = [other for other in there if other not in gone] + come
        assert counted == hard_counts(pod, nodes, changed)
