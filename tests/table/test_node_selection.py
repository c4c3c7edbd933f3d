"""Node selection on columns against the scalar matching of `api.selectors`."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.pod import Pod
from mooring.api.selectors import matches_map
from mooring.table import ALL, NodeTable
from mooring.table.node_selection import match_required
from mooring.table.writer import TableWriter
from mooring.testing.builders import make_node, make_pod, make_table

KEYS = st.sampled_from(["k", "l", "missing", "not a key!"])
VALUES = st.sampled_from(["1", "2", "10", "-1", "x", "", "not a value!"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"])
NAMES = ["n0", "n1", "n2", "n3"]
EXPRESSIONS = st.fixed_dictionaries(
    {"key": KEYS, "operator": OPERATORS, "values": st.lists(VALUES, max_size=2)}
)
FIELDS = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
        "operator": st.sampled_from(["In", "NotIn", "Exists"]),
        "values": st.lists(st.sampled_from([*NAMES, "nobody"]), max_size=2),
    }
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(EXPRESSIONS, max_size=2),
        "matchFields": st.lists(FIELDS, max_size=1),
    },
)
LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from(["1", "2", "10", "-1", "x", ""]))
SELECTORS = st.none() | st.lists(TERMS, max_size=3)


def make_selective(selector: dict[str, str], terms: list[Any] | None) -> Pod:
    required = {"nodeSelectorTerms": terms}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return make_pod(node_selector=selector, node_affinity=None if terms is None else affinity)


def scalar(pod: Pod, table: NodeTable) -> list[bool]:
    required = pod.spec.required_node_selector
    return [
        matches_map(pod.spec.node_selector, node.labels)
        and (required is None or required.matches(node.labels, node.name))
        for node in table.nodes_at(ALL)
    ]


@settings(max_examples=300)
@given(
    st.lists(LABELS, min_size=4, max_size=4),
    st.lists(LABELS, min_size=4, max_size=4),
    st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=2),
    SELECTORS,
)
def test_match_required_equals_the_scalar_answer_for_every_node(
    labels: list[dict[str, str]],
    later: list[dict[str, str]],
    selector: dict[str, str],
    terms: list[Any] | None,
) -> None:
    pod = make_selective(selector, terms)
    table = make_table(*(make_node(n, labels=l) for n, l in zip(NAMES, labels, strict=True)))
    assert match_required(table, pod.spec, ALL).tolist() == scalar(pod, table)

    for name, changed in zip(NAMES, later, strict=True):
        TableWriter(table).set_node(make_node(name, labels=changed))
    assert match_required(table, pod.spec, ALL).tolist() == scalar(pod, table)

    some = np.array([0, 3], dtype=np.int64)
    expected = [scalar(pod, table)[row] for row in some]
    assert match_required(table, pod.spec, some).tolist() == expected


def test_match_required_says_yes_and_no() -> None:
    """The property above would hold for a matcher that always says no, were the scalar one so."""
    table = make_table(make_node("n0", labels={"k": "1"}), make_node("n1"))
    exists = {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}

    assert match_required(table, make_selective({}, [exists]).spec, ALL).tolist() == [True, False]
    assert match_required(table, make_selective({}, [named]).spec, ALL).tolist() == [False, True]
    assert match_required(table, make_selective({}, [exists, named]).spec, ALL).all()
    assert not match_required(table, make_selective({}, []).spec, ALL).any()
    assert not match_required(table, make_selective({}, [{}]).spec, ALL).any()
