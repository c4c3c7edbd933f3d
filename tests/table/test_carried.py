"""Carried terms: the affinity terms of pods on nodes, each distinct one counted once."""

from typing import Any

from bayplan.api.pod import Pod
from bayplan.table import NodeTable, TermKind
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod, make_table

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(app: str = "web", **more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **more}


def wanting(name: str, node_name: str, side: str, *terms: Any, how: str = REQUIRED) -> Pod:
    affinity = {side: {how: list(terms)}}
    return make_pod(name, node_name=node_name, affinity=affinity, namespace="n1")


def carried(table: NodeTable, pod: Pod, **labels: str) -> dict[tuple[TermKind, int], list[int]]:
    found = table.carried.matching(pod, labels)
    return {(term.kind, term.weight): term.carriers.per_row.tolist() for term in found}


WEB = make_pod("web", namespace="n1", labels={"app": "web"})
NODES = [make_node("a"), make_node("b")]


def test_equal_terms_are_counted_together_per_row() -> None:
    pods = [wanting(name, node, "podAntiAffinity", term()) for name, node in ("pa", "qa", "rb")]
    table = make_table(*NODES, pods=pods)

    assert carried(table, WEB) == {(TermKind.REQUIRED_ANTI_AFFINITY, 0): [2, 1]}


def test_each_kind_and_weight_is_a_term_of_its_own() -> None:
    weighted = [{"weight": weight, "podAffinityTerm": term()} for weight in (5, 7)]
    table = make_table(
        *NODES,
        pods=[
            wanting("p", "a", "podAffinity", term()),
            wanting("q", "a", "podAntiAffinity", term()),
            wanting("r", "b", "podAffinity", *weighted, how=PREFERRED),
            wanting("s", "b", "podAntiAffinity", weighted[0], how=PREFERRED),
        ],
    )

    assert carried(table, WEB) == {
        (TermKind.REQUIRED_AFFINITY, 0): [1, 0],
        (TermKind.REQUIRED_ANTI_AFFINITY, 0): [1, 0],
        (TermKind.PREFERRED_AFFINITY, 5): [0, 1],
        (TermKind.PREFERRED_AFFINITY, 7): [0, 1],
        (TermKind.PREFERRED_ANTI_AFFINITY, 5): [0, 1],
    }


def test_a_term_selects_by_labels_and_namespace() -> None:
    def is_selected(pod: Pod, carried_term: dict[str, Any], **labels: str) -> bool:
        carrier = wanting("p", "a", "podAntiAffinity", carried_term)
        return bool(carried(make_table(*NODES, pods=[carrier]), pod, **labels))

    elsewhere = make_pod("web", namespace="n2", labels={"app": "web"})
    team: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    assert is_selected(WEB, term())
    assert not is_selected(make_pod("db", namespace="n1", labels={"app": "db"}), term())
    assert not is_selected(elsewhere, term()), "by default only the carrier's namespace"
    assert is_selected(elsewhere, term(namespaces=["n2", "n3"]))
    assert not is_selected(WEB, term(namespaces=["n2"]))
    assert is_selected(elsewhere, term(**team), team="x")
    assert not is_selected(elsewhere, term(**team), team="y")
    assert is_selected(elsewhere, term(namespaceSelector={})), "the empty selector means all"
    assert is_selected(WEB, {"topologyKey": "zone", "labelSelector": {}})
    assert not is_selected(WEB, {"topologyKey": "zone"}), "no selector selects no pod"
    anything_else = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}
    assert is_selected(WEB, {"topologyKey": "zone", "labelSelector": anything_else})


def test_a_term_is_forgotten_with_its_last_carrier() -> None:
    pods = [wanting(name, "a", "podAntiAffinity", term()) for name in "pq"]
    table = make_table(*NODES, pods=pods)
    writer, start = TableWriter(table), table.carried.version

    writer.remove_pod(pods[0])
    assert carried(table, WEB) == {(TermKind.REQUIRED_ANTI_AFFINITY, 0): [1, 0]}
    assert table.carried.version == start

    writer.remove_pod(pods[1])
    assert carried(table, WEB) == {}
    assert table.carried.version > start


def test_a_term_written_twice_counts_twice_and_goes_as_a_whole() -> None:
    pod = wanting("p", "a", "podAntiAffinity", term(), term())
    table = make_table(*NODES, pods=[pod])
    assert carried(table, WEB) == {(TermKind.REQUIRED_ANTI_AFFINITY, 0): [2, 0]}

    TableWriter(table).remove_pod(pod)

    assert carried(table, WEB) == {}


def test_equal_terms_of_two_namespaces_are_two() -> None:
    one = wanting("p", "a", "podAntiAffinity", term())
    two = make_pod(
        "q", namespace="n2", node_name="b", affinity={"podAntiAffinity": {REQUIRED: [term()]}}
    )
    table = make_table(*NODES, pods=[one, two])

    assert carried(table, WEB) == {(TermKind.REQUIRED_ANTI_AFFINITY, 0): [1, 0]}


def test_carriers_per_domain_follow_the_node() -> None:
    pod = wanting("p", "a", "podAntiAffinity", term())
    table = make_table(make_node("a", labels={"zone": "z1"}), make_node("b"), pods=[pod])
    (found,) = table.carried.matching(WEB, {})
    zone = table.labels.column("zone")
    assert found.carriers.per_domain(zone).tolist() == [1, 0]

    TableWriter(table).set_node(make_node("a", labels={"zone": "z2"}))

    assert found.carriers.per_domain(zone).tolist() == [0, 1, 0]
