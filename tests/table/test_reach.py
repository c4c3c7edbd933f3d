"""Reach: the first of many selectors that matches a row, compared with evaluating each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from bayplan.table import ALL
from bayplan.table.reach import EVERYWHERE, Alternatives, Reach, alternatives_of, match_alternatives
from bayplan.table.writer import TableWriter
from bayplan.testing.builders import make_node, make_table

NODES = [
    make_node(f"n{i}", labels={"zone": f"z{i % 2}", **({"rack": f"r{i % 3}"} if i else {})})
    for i in range(5)
]
TABLE = make_table(*NODES)

conditions = st.builds(
    lambda key, operator, values: Requirement(
        key=key, operator=operator, values=tuple(values) if operator.endswith("In") else ()
    ),
    st.sampled_from(["zone", "rack"]),
    st.sampled_from(["In", "In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["z0", "z1", "r0", "r1", "none"]), min_size=1, max_size=2),
)
alternatives = st.lists(st.lists(conditions, max_size=2).map(tuple), max_size=2).map(tuple)


@given(
    st.lists(alternatives, max_size=5), st.lists(st.integers(0, 4), max_size=8), st.integers(1, 3)
)
def test_first_is_what_asking_each_would_find(
    known: list[Alternatives], wanted: list[int], depth: int
) -> None:
    reach = Reach()
    numbers = [reach.number(selector) for selector in known]
    asked = [place for place in wanted if place < len(known)]
    selectors = np.array([numbers[place] for place in asked], dtype=np.int64)

    found = reach.first(selectors, TABLE, ALL, depth)

    for row in range(len(NODES)):
        picks = [
            position
            for position, place in enumerate(asked)
            if match_alternatives(TABLE, known[place], ALL)[row]
        ]
        padded = [*picks, *([len(asked)] * depth)][:depth]
        assert found[:, row].tolist() == padded
    some = np.array([1, 3], dtype=np.int64)
    assert np.array_equal(reach.first(selectors, TABLE, some, depth), found[:, some])


def test_equal_selectors_have_one_number() -> None:
    reach = Reach()
    selector = ((Requirement(key="zone", operator="In", values=("z0",)),),)

    assert reach.number(selector) == reach.number(tuple(selector)) != reach.number(EVERYWHERE)


def test_values_that_nodes_get_later_are_found() -> None:
    table = make_table(make_node("a", labels={"zone": "z0"}))
    reach = Reach()
    number = reach.number(((Requirement(key="zone", operator="In", values=("new",)),),))
    wanted = np.array([number], dtype=np.int64)
    assert reach.first(wanted, table, ALL).tolist() == [[1]]

    TableWriter(table).set_node(make_node("b", labels={"zone": "new"}))

    assert reach.first(wanted, table, ALL).tolist() == [[1, 0]]
    assert reach.first(wanted, table.fork_row(1), ALL).tolist() == [[0]]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, EVERYWHERE, id="none at all"),
        pytest.param(NodeSelector(), (), id="no terms pick nothing"),
        pytest.param(
            NodeSelector(node_selector_terms=(NodeSelectorTerm(),)), (), id="nor does an empty term"
        ),
        pytest.param(LabelSelector(), EVERYWHERE, id="an empty label selector picks all"),
        pytest.param(
            LabelSelector(match_expressions=(Requirement(key="x", operator="Near"),)),
            (),
            id="one that cannot be read picks nothing",
        ),
        pytest.param(
            NodeSelector(
                node_selector_terms=(
                    NodeSelectorTerm(
                        match_fields=(
                            Requirement(key="metadata.name", operator="In", values=("a",)),
                        )
                    ),
                )
            ),
            EVERYWHERE,
            id="the name of the node is left out",
        ),
    ],
)
def test_alternatives_of(
    selector: NodeSelector | LabelSelector | None, expected: Alternatives
) -> None:
    assert alternatives_of(selector) == expected
