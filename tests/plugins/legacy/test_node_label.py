"""NodeLabel: labels a node must have, must not have, should have, should not have."""

import pytest

from bayplan.config.plugin_args import NodeLabelArgs
from bayplan.errors import InputError
from bayplan.framework import SUCCESS, CycleState, unresolvable
from bayplan.plugins.legacy.node_label import REASON, NodeLabel
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

POD = make_pod()
TABLE = make_table(
    make_node("both", labels={"foo": "any", "bar": ""}),
    make_node("foo", labels={"foo": "other"}),
    make_node("neither"),
)


@pytest.mark.parametrize(
    ("args", "feasible"),
    [
        pytest.param(NodeLabelArgs(), "111", id="nothing is asked"),
        pytest.param(NodeLabelArgs(present_labels=("foo",)), "110", id="present, whatever value"),
        pytest.param(NodeLabelArgs(present_labels=("foo", "bar")), "100", id="all present"),
        pytest.param(NodeLabelArgs(absent_labels=("bar",)), "011", id="absent"),
        pytest.param(NodeLabelArgs(absent_labels=("foo", "bar")), "001", id="none of them"),
        pytest.param(
            NodeLabelArgs(present_labels=("foo",), absent_labels=("bar",)), "010", id="both lists"
        ),
        pytest.param(
            NodeLabelArgs(present_labels_preference=("x",)), "111", id="preferences do not filter"
        ),
    ],
)
def test_filter(args: NodeLabelArgs, feasible: str) -> None:
    verdict = NodeLabel(args).filter_rows(CycleState(), POD, TABLE, ALL)

    assert verdict.feasible.tolist() == [letter == "1" for letter in feasible]
    for row, letter in enumerate(feasible):
        assert verdict.status(row) == (SUCCESS if letter == "1" else unresolvable(REASON))


@pytest.mark.parametrize(
    ("present", "absent", "scores"),
    [
        pytest.param((), (), [0, 0, 0], id="nothing is preferred"),
        pytest.param(("foo",), (), [100, 100, 0], id="one present"),
        pytest.param((), ("bar",), [0, 100, 100], id="one absent"),
        pytest.param(("foo", "bar"), (), [100, 50, 0], id="the mean of two"),
        pytest.param(("foo", "bar"), ("x",), [100, 66, 33], id="the mean is truncated"),
        pytest.param(("foo",), ("bar",), [50, 100, 50], id="both lists count alike"),
    ],
)
def test_score(present: tuple[str, ...], absent: tuple[str, ...], scores: list[int]) -> None:
    args = NodeLabelArgs(present_labels_preference=present, absent_labels_preference=absent)

    assert NodeLabel(args).score_rows(CycleState(), POD, TABLE, ALL).tolist() == scores


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(NodeLabelArgs(("a", "b"), ("b",)), id="required"),
        pytest.param(NodeLabelArgs((), (), ("b",), ("b", "c")), id="preferred"),
    ],
)
def test_a_label_is_not_asked_to_be_and_not_to_be(args: NodeLabelArgs) -> None:
    with pytest.raises(InputError, match='label "b": expected present or absent; got both'):
        NodeLabel(args)


def test_conformance() -> None:
    args = NodeLabelArgs(("foo",), ("bar",), ("foo", "x"), ("bar",))
    check_conformance(NodeLabel, [POD, make_pod("other", labels={"a": "b"})], TABLE, args)
