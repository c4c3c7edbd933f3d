"""InterPodAffinity against a slow reference that reads every pod on every node."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.node import Node
from bayplan.api.pod import Pod, PodAffinityTerm
from bayplan.api.wire.decode import decode_object
from bayplan.framework import SKIP, SUCCESS, CycleState, Status, unresolvable, unschedulable
from bayplan.plugins.inter_pod_affinity.plugin import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
)
from bayplan.table import NodeTable
from bayplan.table.writer import TableWriter
from tests.rig.random_examples import examples

NAMESPACES: dict[str, dict[str, str]] = {"n1": {"t": "1"}, "n2": {"t": "2"}, "n3": {}}
HARD_WEIGHT = 3
Pair = tuple[str, str]

# The reference. Nodes are the node objects, pods those with a node name.


def selects(
    term: PodAffinityTerm, owner: Pod, other: Pod, namespace_labels: Mapping[str, str]
) -> bool:
    """A term of a pod that is on a node, matched against the incoming pod."""
    names, selector = set(term.namespaces or ()), term.namespace_selector
    if not names and selector is None:
        names.add(owner.namespace)
    chosen = selector is not None and selector.matches(namespace_labels)
    if other.namespace not in names and not chosen:
        return False
    return term.label_selector is not None and term.label_selector.matches(other.labels)


def own_selects(term: PodAffinityTerm, pod: Pod, other: Pod) -> bool:
    """A term of the incoming pod, matched against a pod on a node."""
    selector = term.namespace_selector
    if selector is not None and not selector.is_empty:
        resolved = selector.matches(NAMESPACES.get(other.namespace, {}))
        if resolved and other.namespace in NAMESPACES:
            return term.label_selector is not None and term.label_selector.matches(other.labels)
    return selects(term, pod, other, {})


def matches_all(terms: Iterable[PodAffinityTerm], pod: Pod, other: Pod) -> bool:
    return all(own_selects(term, pod, other) for term in terms)


def reference_filter(pod: Pod, nodes: list[Node], pods: list[Pod]) -> list[Status] | None:
    """A status per node; None where the filter is skipped."""
    by_name = {node.name: node for node in nodes}
    existing: Counter[Pair] = Counter()
    affinity: Counter[Pair] = Counter()
    anti: Counter[Pair] = Counter()
    required, required_anti = pod.spec.required_affinity, pod.spec.required_anti_affinity

    def count(counter: Counter[Pair], node: Node, key: str) -> None:
        if key in node.labels:
            counter[key, node.labels[key]] += 1

    for other in pods:
        node = by_name.get(other.node_name)
        if node is None:
            continue
        for term in other.spec.required_anti_affinity:
            if selects(term, other, pod, NAMESPACES.get(pod.namespace, {})):
                count(existing, node, term.topology_key)
        for term in required:
            if matches_all(required, pod, other):
                count(affinity, node, term.topology_key)
        for term in required_anti:
            if own_selects(term, pod, other):
                count(anti, node, term.topology_key)
    if not existing and not required and not required_anti:
        return None
    is_first = not affinity and bool(required) and matches_all(required, pod, pod)

    def judge(node: Node) -> Status:
        keys = [term.topology_key for term in required]
        if any(key not in node.labels for key in keys):
            return unresolvable(REASON_AFFINITY)
        if not is_first and any(affinity[key, node.labels[key]] <= 0 for key in keys):
            return unresolvable(REASON_AFFINITY)
        if any(anti[t.topology_key, node.labels.get(t.topology_key, "-")] for t in required_anti):
            return unschedulable(REASON_ANTI_AFFINITY)
        if any(existing[pair] for pair in node.labels.items()):
            return unschedulable(REASON_EXISTING_ANTI_AFFINITY)
        return SUCCESS

    return [judge(node) for node in nodes]


def reference_scores(pod: Pod, nodes: list[Node], pods: list[Pod]) -> list[int] | None:
    """A raw score per node; None where Score is skipped."""
    by_name = {node.name: node for node in nodes}
    points: defaultdict[Pair, int] = defaultdict(int)

    def add(term: PodAffinityTerm, node: Node, weight: int) -> None:
        if term.topology_key in node.labels:
            points[term.topology_key, node.labels[term.topology_key]] += weight

    for other in pods:
        node = by_name.get(other.node_name)
        if node is None:
            continue
        for sign, mine, theirs in (
            (1, pod.spec.preferred_affinity, other.spec.preferred_affinity),
            (-1, pod.spec.preferred_anti_affinity, other.spec.preferred_anti_affinity),
        ):
            for wish in mine:
                if own_selects(wish.pod_affinity_term, pod, other):
                    add(wish.pod_affinity_term, node, sign * wish.weight)
            for wish in theirs:
                if selects(wish.pod_affinity_term, other, pod, NAMESPACES.get(pod.namespace, {})):
                    add(wish.pod_affinity_term, node, sign * wish.weight)
        for term in other.spec.required_affinity:
            if selects(term, other, pod, NAMESPACES.get(pod.namespace, {})):
                add(term, node, HARD_WEIGHT)
    if not points:
        return None
    return [sum(points.get(pair, 0) for pair in node.labels.items()) for node in nodes]


# Random clusters.

labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)
node_labels = st.dictionaries(st.sampled_from(["zone", "host"]), st.sampled_from(["", "x", "y"]))


@st.composite
def selectors(draw: st.DrawFn, keys: str = "ab") -> dict[str, Any] | None:
    if draw(st.integers(0, 9)) == 0:
        return None
    expressions = []
    for key in draw(st.lists(st.sampled_from(keys), max_size=2)):
        operator = draw(st.sampled_from(["In", "In", "NotIn", "Exists", "DoesNotExist"]))
        values = draw(st.lists(st.sampled_from("12"), min_size=1, max_size=2))
        with_values = {"values": values} if operator in ("In", "NotIn") else {}
        expressions.append({"key": key, "operator": operator, **with_values})
    return {"matchExpressions": expressions}


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": draw(st.sampled_from(["zone", "host"]))}
    if (selector := draw(selectors())) is not None:
        term["labelSelector"] = selector
    if draw(st.booleans()):
        term["namespaces"] = draw(st.lists(st.sampled_from(["n1", "n2", "n4"]), max_size=2))
    if draw(st.booleans()) and (selector := draw(selectors("t"))) is not None:
        term["namespaceSelector"] = selector
    return term


wishes = st.builds(lambda w, t: {"weight": w, "podAffinityTerm": t}, st.integers(1, 5), terms())


@st.composite
def pods(draw: st.DrawFn, name: str, places: list[str]) -> Pod:
    def affinity() -> dict[str, Any]:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": draw(st.lists(terms(), max_size=2)),
            "preferredDuringSchedulingIgnoredDuringExecution": draw(st.lists(wishes, max_size=2)),
        }

    spec: dict[str, Any] = {"nodeName": draw(st.sampled_from(places))}
    if draw(st.booleans()):
        spec["affinity"] = {"podAffinity": affinity(), "podAntiAffinity": affinity()}
    namespace = draw(st.sampled_from(["n1", "n2", "n3", "n4"]))
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": draw(labels)}
    pod = decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert isinstance(pod, Pod)
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    nodes = [Node(f"node{i}", labels=draw(node_labels)) for i in range(draw(st.integers(1, 4)))]
    places = [*(node.name for node in nodes), "ghost"]
    return nodes, [draw(pods(f"p{i}", places)) for i in range(draw(st.integers(0, 6)))]


def make_writer(nodes: list[Node], there: list[Pod]) -> TableWriter:
    writer = TableWriter(NodeTable())
    for name, its_labels in NAMESPACES.items():
        writer.set_namespace(name, its_labels)
    for node in nodes:
        writer.set_node(node)
    for pod in there:
        writer.add_pod(pod)
    return writer


def plugin_filter(plugin: InterPodAffinity, pod: Pod, table: NodeTable) -> list[Status] | None:
    state = CycleState()
    if plugin.pre_filter(state, pod, table) == SKIP:
        return None
    verdict = plugin.filter_rows(state, pod, table, table.live_rows)
    statuses = [verdict.status(position) for position in range(len(verdict))]
    one_by_one = [plugin.filter_node(state, pod, n) for n in table.nodes_at(table.live_rows)]
    assert one_by_one == statuses
    return statuses


def plugin_scores(plugin: InterPodAffinity, pod: Pod, table: NodeTable) -> list[int] | None:
    state = CycleState()
    if plugin.pre_score(state, pod, table, table.live_rows) == SKIP:
        return None
    scores: list[int] = plugin.score_rows(state, pod, table, table.live_rows).tolist()
    one_by_one = [plugin.score_node(state, pod, n) for n in table.nodes_at(table.live_rows)]
    assert one_by_one == scores
    return scores


@settings(max_examples=examples(30), deadline=None)
@given(clusters(), pods("new", [""]), st.data())
def test_filter_and_score_agree_with_the_reference(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
) -> None:
    nodes, there = cluster
    writer, plugin = make_writer(nodes, there), InterPodAffinity(HARD_WEIGHT)

    assert plugin_filter(plugin, pod, writer.table) == reference_filter(pod, nodes, there)
    assert plugin_scores(plugin, pod, writer.table) == reference_scores(pod, nodes, there)

    # The counts exist now; they follow added and removed pods, and changes of labels.
    gone = data.draw(st.lists(st.sampled_from(there), unique=True)) if there else []
    come = data.draw(pods("late", [node.name for node in nodes]))
    nodes[0] = nodes[0].replace(labels=data.draw(node_labels))
    for other in gone:
        writer.remove_pod(other)
    writer.add_pod(come)
    writer.set_node(nodes[0])
    there = [other for other in there if other not in gone] + [come]

    assert plugin_filter(plugin, pod, writer.table) == reference_filter(pod, nodes, there)
    assert plugin_scores(plugin, pod, writer.table) == reference_scores(pod, nodes, there)


@settings(max_examples=examples(30), deadline=None)
@given(clusters(), pods("new", [""]), st.data())
def test_what_if_is_the_same_as_the_changed_cluster(
    cluster: tuple[list[Node], list[Pod]], pod: Pod, data: st.DataObject
) -> None:
    nodes, there = cluster
    table, plugin, state = make_writer(nodes, there).table, InterPodAffinity(), CycleState()
    if plugin.pre_filter(state, pod, table) == SKIP:
        return
    before = plugin.filter_rows(state, pod, table, table.live_rows)
    node = data.draw(st.sampled_from(nodes))
    here = [other for other in there if other.node_name == node.name]
    gone = data.draw(st.lists(st.sampled_from(here), unique=True)) if here else []
    come = [data.draw(pods(f"late{i}", [node.name])) for i in range(data.draw(st.integers(0, 2)))]
    changed = [other for other in there if other not in gone] + come
    row = table.row_of[node.name]
    fork, what_if = table.fork_row(row), state.clone()

    for other in gone:
        plugin.remove_pod(what_if, pod, other, fork.node_at(0))
    for other in come:
        plugin.add_pod(what_if, pod, other, fork.node_at(0))

    expected = reference_filter(pod, nodes, changed) or [SUCCESS] * len(nodes)
    whole = plugin.filter_rows(what_if, pod, table, table.live_rows)
    assert [whole.status(position) for position in range(len(whole))] == expected
    assert plugin.filter_rows(what_if, pod, fork, fork.live_rows).status(0) == expected[row]
    assert plugin.filter_node(what_if, pod, fork.node_at(0)) == expected[row]
    again = plugin.filter_rows(state, pod, table, table.live_rows)
    assert again.codes.tolist() == before.codes.tolist(), "the what-if touched the live counts"
