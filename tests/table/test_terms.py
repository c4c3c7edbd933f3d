"""Pod terms: counts per row and per domain, kept up to date or computed again."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.api.selectors import LabelSelector, Requirement
from bayplan.table import NodeTable, PodTerm, terms
from bayplan.table.terms import NO_POD
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_pod, make_table
from tests.rig.random_examples import examples

ZONE = "zone"
WEB = LabelSelector.of({"app": "web"})
EVERYTHING = LabelSelector()


def in_zone(name: str, zone: str | None) -> Any:
    return make_node(name, labels={} if zone is None else {ZONE: zone})


def web(name: str, node_name: str, **more: Any) -> Pod:
    return make_pod(name, node_name=node_name, labels={"app": "web"}, **more)


def per_domain(table: NodeTable, term: PodTerm, key: str = ZONE) -> dict[str, int]:
    label = table.labels.column(key)
    counts = table.terms.count(term).per_domain(label)
    assert counts[-1] == 0, "the slot for nodes without the key stays empty"
    return dict(zip(label.values, counts.tolist(), strict=False))


CLUSTER = [
    web("p1", "a"),
    web("p2", "a", namespace="other"),
    web("p3", "b", terminating=True),
    make_pod("p4", node_name="b", labels={"app": "db"}),
    make_pod("p5", node_name="c"),
]


def cluster() -> NodeTable:
    return make_table(in_zone("a", "z1"), in_zone("b", "z1"), in_zone("c", "z2"), pods=CLUSTER)


@pytest.mark.parametrize(
    ("term", "per_row"),
    [
        pytest.param(PodTerm(None, WEB), [2, 1, 0], id="any namespace"),
        pytest.param(PodTerm(frozenset({"default"}), WEB), [1, 1, 0], id="one namespace"),
        pytest.param(PodTerm(frozenset({"default", "other"}), WEB), [2, 1, 0], id="two namespaces"),
        pytest.param(PodTerm(frozenset(), WEB), [0, 0, 0], id="no namespace"),
        pytest.param(PodTerm(None, WEB, terminating=False), [2, 0, 0], id="without leaving pods"),
        pytest.param(PodTerm(None, EVERYTHING), [2, 2, 1], id="the empty selector counts all"),
        pytest.param(NO_POD, [0, 0, 0], id="no pod"),
        pytest.param(
            PodTerm(
                None,
                LabelSelector(
                    match_expressions=(Requirement(key="app", operator="NotIn", values=("web",)),)
                ),
            ),
            [0, 1, 1],
            id="a selector that insists on no label",
        ),
    ],
)
def test_count_per_row_of_an_early_and_a_late_term(term: PodTerm, per_row: list[int]) -> None:
    early = make_table(in_zone("a", "z1"), in_zone("b", "z1"), in_zone("c", "z2"))
    early.terms.count(term)
    writer = TableWriter(early)
    for pod in CLUSTER:
        writer.add_pod(pod)

    assert cluster().terms.count(term).per_row.tolist() == per_row
    assert early.terms.count(term).per_row.tolist() == per_row
    assert early.terms.count(term).total == sum(per_row)


def test_equal_terms_are_one() -> None:
    table = cluster()
    written = LabelSelector(
        match_expressions=(Requirement(key="app", operator="In", values=("web",)),)
    )

    assert PodTerm(None, WEB) == PodTerm(None, written)
    assert table.terms.count(PodTerm(None, WEB)) is table.terms.count(PodTerm(None, written))
    assert PodTerm(None, WEB) != PodTerm(None, WEB, terminating=False)


def test_counts_follow_pods_that_come_and_go() -> None:
    table, term = cluster(), PodTerm(None, WEB)
    writer, counts = TableWriter(table), table.terms.count(term)
    assert per_domain(table, term) == {"z1": 3, "z2": 0}

    writer.add_pod(web("p6", "c"))
    writer.remove_pod(CLUSTER[0])

    assert counts.per_row.tolist() == [1, 1, 1]
    assert per_domain(table, term) == {"z1": 2, "z2": 1}


@pytest.mark.parametrize(
    "is_read_before", [True, False], ids=["a column that follows", "a late column"]
)
def test_counts_per_row_are_the_same_whenever_they_are_read(is_read_before: bool) -> None:
    """The column of a term is made when it is first read: before pods are added and removed, or after."""
    table, term = cluster(), PodTerm(None, WEB)
    writer, counts = TableWriter(table), table.terms.count(term)
    if is_read_before:
        assert counts.per_row.tolist() == [2, 1, 0]

    writer.add_pod(web("p6", "c"))
    writer.add_pods([web(f"q{i}", "b") for i in range(3)])
    writer.remove_pod(CLUSTER[0])
    writer.set_node(in_zone("b", "z2"))

    assert counts.per_row.tolist() == [1, 4, 1]
    assert counts.total == 6
    assert per_domain(table, term) == {"z1": 1, "z2": 5}


def test_counts_per_zone_need_no_count_per_row() -> None:
    table = cluster()
    before = len(table.size._columns)

    assert per_domain(table, PodTerm(None, WEB)) == {"z1": 3, "z2": 0}

    assert len(table.size._columns) - before <= 2, "only those of the label"


def test_counts_of_a_label_that_had_vanished() -> None:
    table, term = make_table(in_zone("a", "z1")), PodTerm(None, WEB)
    writer, pod = TableWriter(table), web("p", "a")
    for _ in range(3):
        writer.add_pod(pod)
        assert table.terms.count(term).per_row.tolist() == [1]
        writer.remove_pod(pod)
        assert table.terms.count(term).per_row.tolist() == [0]


def test_domain_counts_follow_node_labels() -> None:
    table, term = cluster(), PodTerm(None, WEB)
    writer = TableWriter(table)
    assert per_domain(table, term) == {"z1": 3, "z2": 0}

    writer.set_node(in_zone("b", "z3"))
    assert per_domain(table, term) == {"z1": 2, "z2": 0, "z3": 1}

    writer.add_pod(web("p6", "b"))
    writer.set_node(in_zone("a", None))
    assert per_domain(table, term) == {"z1": 0, "z2": 0, "z3": 2}

    writer.remove_node("b")
    assert per_domain(table, term) == {"z1": 0, "z2": 0, "z3": 0}


def test_terms_unused_for_longest_are_dropped_and_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = cluster()
    monkeypatch.setattr(terms, "MAX_CELLS", 2 * table.size.capacity)
    asked = [PodTerm(frozenset({f"n{i}", "default"}), WEB) for i in range(5)]
    kept = table.terms.count(asked[0])

    for term in asked[1:]:
        table.terms.count(term)
        assert table.terms.count(asked[0]) is kept, "what is used stays"
    assert len(table.terms._terms) <= 3

    TableWriter(table).add_pod(web("p6", "c"))

    for term in asked:
        assert table.terms.count(term).per_row.tolist() == [1, 1, 1]


LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("xy"))
SELECTORS = st.builds(
    LabelSelector,
    match_labels=LABELS,
    match_expressions=st.lists(
        st.builds(
            Requirement,
            key=st.sampled_from("kl"),
            operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
            values=st.lists(st.sampled_from("xy"), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)
TERMS = st.builds(
    PodTerm,
    st.none() | st.frozensets(st.sampled_from(["n1", "n2"])),
    SELECTORS,
    st.booleans(),
)
PODS = st.tuples(LABELS, st.sampled_from(["n1", "n2"]), st.booleans(), st.sampled_from("abc"))


STEPS = ["pod", "deletion", "term", "zone"]


@settings(max_examples=examples(40))
@given(
    st.lists(PODS, min_size=1, max_size=8),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 7)), max_size=25),
    st.lists(TERMS, min_size=1, max_size=4),
    st.sampled_from([64, 128, 1 << 20]),
)
def test_counts_equal_those_of_every_pod_asked(
    pods: list[Any], steps: list[tuple[str, int]], asked: list[PodTerm], cells: int
) -> None:
    zones: dict[str, str | None] = dict.fromkeys("abc", "z0")
    table = make_table(*(in_zone(name, zone) for name, zone in zones.items()))
    writer = TableWriter(table)
    there: dict[int, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terms, "MAX_CELLS", cells)
        for what, i in steps:
            if what == "pod":
                labels, namespace, leaving, node_name = pods[i % len(pods)]
                pod = there.pop(i, None)
                if pod is not None:
                    writer.remove_pod(pod)
                else:
                    there[i] = make_pod(
                        f"p{i}",
                        labels=labels,
                        namespace=namespace,
                        terminating=leaving,
                        node_name=node_name,
                    )
                    writer.add_pod(there[i])
            elif what == "deletion":
                if i in there:
                    leaving_pod = there[i].replace(deletion_timestamp="2030-01-01T00:00:00Z")
                    writer.replace_pod(there[i], leaving_pod)
                    there[i] = leaving_pod
            elif what == "zone":
                name = "abc"[i % 3]
                zones[name] = f"z{i}" if i else None
                writer.set_node(in_zone(name, zones[name]))
            else:
                term = asked[i % len(asked)]
                table.terms.count(term).per_domain(table.labels.column(ZONE))
        for term in asked:
            expected = Counter(pod.node_name for pod in there.values() if term.matches(pod))
            assert table.terms.count(term).per_row.tolist() == [expected[name] for name in "abc"]
            by_zone: Counter[Any] = Counter()
            for name, zone in zones.items():
                by_zone[zone] += expected[name]
            del by_zone[None]
            assert +Counter(per_domain(table, term)) == +by_zone
