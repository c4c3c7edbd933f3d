"""Node selection on columns against the scalar matching of `api.selectors`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Affinity, NodeAffinity, PodSpec
from bayplan.api.selectors import (
    NODE_OPERATORS,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    matches_map,
)
from bayplan.table import ALL, NodeTable
from bayplan.table.node_selection import match_required
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_table

KEYS = st.sampled_from(["k", "l", "missing", "not a key!"])
VALUES = st.sampled_from(["1", "2", "10", "-1", "x", "", "not a value!"])
NAMES = ["n0", "n1", "n2", "n3"]
EXPRESSIONS = st.builds(
    Requirement,
    key=KEYS,
    operator=st.sampled_from([*NODE_OPERATORS, "Like"]),
    values=st.lists(VALUES, max_size=2).map(tuple),
)
FIELDS = st.builds(
    Requirement,
    key=st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
    operator=st.sampled_from(["In", "NotIn", "Exists"]),
    values=st.lists(st.sampled_from([*NAMES, "unknown"]), max_size=2).map(tuple),
)
TERMS = st.builds(
    NodeSelectorTerm,
    match_expressions=st.none() | st.lists(EXPRESSIONS, max_size=2).map(tuple),
    match_fields=st.none() | st.lists(FIELDS, max_size=1).map(tuple),
)
LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from(["1", "2", "10", "-1", "x", ""]))
EXISTS = NodeSelectorTerm(match_expressions=(Requirement(key="k", operator="Exists"),))
NAMED = NodeSelectorTerm(
    match_fields=(Requirement(key="metadata.name", operator="In", values=("n1",)),)
)


def make_spec(selector: dict[str, str], terms: list[NodeSelectorTerm] | None) -> PodSpec:
    """A spec made by hand: the decoder would refuse terms that cannot be used."""
    if terms is None:
        return PodSpec(node_selector=selector)
    required = NodeSelector(node_selector_terms=tuple(terms))
    wish = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    return PodSpec(node_selector=selector, affinity=Affinity(node_affinity=wish))


def scalar(spec: PodSpec, table: NodeTable) -> list[bool]:
    required = spec.required_node_selector
    return [
        matches_map(spec.node_selector, node.labels)
        and (required is None or required.matches(node.labels, node.name))
        for node in table.nodes_at(ALL)
    ]


@settings(max_examples=300)
@given(
    st.lists(LABELS, min_size=4, max_size=4),
    st.lists(LABELS, min_size=4, max_size=4),
    st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=2),
    st.none() | st.lists(TERMS, max_size=3),
)
def test_match_required_equals_the_scalar_answer_for_every_node(
    labels: list[dict[str, str]],
    later: list[dict[str, str]],
    selector: dict[str, str],
    terms: list[NodeSelectorTerm] | None,
) -> None:
    spec, table = make_spec(selector, terms), make_table()
    writer = TableWriter(table)
    for given_labels in (labels, later):
        for name, its_labels in zip(NAMES, given_labels, strict=True):
            writer.set_node(make_node(name, labels=its_labels))
        assert match_required(table, spec, ALL).tolist() == scalar(spec, table)

    some = np.array([0, 3], dtype=np.int64)
    expected = [scalar(spec, table)[row] for row in some]
    assert match_required(table, spec, some).tolist() == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([EXISTS], [True, False], id="by label"),
        pytest.param([NAMED], [False, True], id="by name"),
        pytest.param([EXISTS, NAMED], [True, True], id="one of two terms is enough"),
        pytest.param([NodeSelectorTerm()], [False, False], id="the empty term picks nothing"),
        pytest.param([], [False, False], id="no term picks nothing"),
        pytest.param(None, [True, True], id="no affinity picks all"),
    ],
)
def test_match_required(terms: list[NodeSelectorTerm] | None, expected: list[bool]) -> None:
    table = make_table(make_node("n0", labels={"k": "1"}), make_node("n1"))

    assert match_required(table, make_spec({}, terms), ALL).tolist() == expected
