"""PreScore, Score, NormalizeScore and weights."""

from typing import Any

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.framework import (
    CLUSTER,
    NODE_OBJECT,
    NODE_ROW,
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    NodeInfo,
    PreScorePlugin,
    ScorePlugin,
    Status,
    failure,
    unschedulable,
)
from bayplan.framework.interface import Scope
from bayplan.framework.status import pending
from bayplan.runtime import PluginRunError, Scoring
from bayplan.table import ALL, Ints, NodeTable, Rows
from bayplan.testing.builders import make_node, make_pod, make_table

pytestmark = pytest.mark.usefixtures("plugins_are_in_tree")

TABLE = make_table(*(make_node(name) for name in "abc"))
BOOM = RuntimeError("boom")
SCOPES = [CLUSTER, NODE_ROW, NODE_OBJECT]


def pre_score(
    name: str, said: Status | Exception, called: list[str] | None = None
) -> PreScorePlugin:
    class Said(PreScorePlugin):
        def pre_score(self, state: CycleState, pod: Pod, table: Any, rows: Any) -> Status:
            if called is not None:
                called.append(name)
            if isinstance(said, Exception):
                raise said
            return said

    Said.name = name
    return Said()


def score(
    name: str, given: list[int] | Exception, scope: Scope = CLUSTER, by_node: bool = False
) -> ScorePlugin:
    class ByRows(ScorePlugin):
        def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
            if isinstance(given, Exception):
                raise given
            return np.array(given, dtype=np.int64)[table.numbers(rows)]

    class ByNode(ScorePlugin):
        def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            if isinstance(given, Exception):
                raise given
            return given[node.row]

    made = ByNode if by_node else ByRows
    made.name, made.scope = name, scope
    return made()


def normalized(name: str, given: list[int], result: list[int] | Exception, scope: Scope) -> Any:
    class Normalized(ScorePlugin):
        def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
            return np.array(given, dtype=np.int64)[table.numbers(rows)]

        def normalize(self, scores: Ints) -> Ints:
            if isinstance(result, Exception):
                raise result
            assert len(scores) == len(result), "all feasible nodes at once, and no other"
            return np.array(result, dtype=np.int64)

    Normalized.name, Normalized.scope = name, scope
    return Normalized()


def totals(scoring: Scoring, rows: Any = ALL, state: CycleState | None = None) -> list[int]:
    found: list[int] = scoring.run_scores(state or CycleState(), make_pod(), TABLE, rows).tolist()
    return found


def test_pre_score_runs_in_order_and_skip_leaves_the_plugin_out() -> None:
    called: list[str] = []
    said = [("A", SKIP), ("B", SUCCESS)]
    scoring = Scoring(
        [pre_score(name, status, called) for name, status in said],
        [(score("A", BOOM), 1), (score("B", [1, 2, 3]), 1)],
    )
    state = CycleState()

    scoring.run_pre_scores(state, make_pod(), TABLE, ALL)

    assert called == ["A", "B"]
    assert state.skip_score == {"A"}
    assert totals(scoring, state=state) == [1, 2, 3]
    assert [scored.plugin.name for scored in scoring.each_score(state, make_pod(), TABLE, ALL)] == [
        "B"
    ]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        pytest.param(unschedulable("no"), "no", id="a refusal comes too late"),
        pytest.param(pending("later"), "later", id="pending"),
        pytest.param(failure("broken"), "broken", id="an error"),
        pytest.param(BOOM, "boom", id="it raises"),
    ],
)
def test_pre_score_anything_else_is_an_error_of_the_plugin(said: Any, text: str) -> None:
    with pytest.raises(PluginRunError) as failed:
        Scoring([pre_score("A", said)], []).run_pre_scores(CycleState(), make_pod(), TABLE, ALL)

    assert failed.value.status == Status(Code.Error, (f'running PreScore plugin "A": {text}',), "A")


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("by_node", [False, True])
def test_total_is_the_weighted_sum(scope: Scope, by_node: bool) -> None:
    scoring = Scoring(
        [],
        [
            (score("A", [100, 0, 50], scope, by_node), 3),
            (score("B", [1, 2, 3], scope, by_node), 1),
            (normalized("C", [5, 5, 5], [0, 10, 20], scope), 2),
        ],
    )

    assert totals(scoring) == [301, 22, 193]


@pytest.mark.parametrize("scope", SCOPES)
def test_only_feasible_rows_are_normalised(scope: Scope) -> None:
    scoring = Scoring([], [(normalized("A", [900, 7, 8], [70, 80], scope), 2)])

    assert totals(scoring, np.array([1, 2])) == [140, 160]


def test_without_score_plugins_every_node_has_one_point() -> None:
    assert totals(Scoring([], [])) == [1, 1, 1]
    assert totals(Scoring([], []), np.array([2])) == [1]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("by_node", [False, True])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param([0, 101, 0], 101, id="above"),
        pytest.param([0, -1, 0], -1, id="below"),
    ],
)
def test_a_score_out_of_range_is_an_error(
    scope: Scope, by_node: bool, given: list[int], found: int
) -> None:
    with pytest.raises(PluginRunError) as failed:
        totals(Scoring([], [(score("A", given, scope, by_node), 1)]))

    assert failed.value.status.plugin == "A"
    assert str(failed.value) == (
        f'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {found}, '
        "it should in the range of [0, 100] after normalizing"
    )


@pytest.mark.parametrize("scope", SCOPES)
def test_a_score_out_of_range_before_normalising_is_fine(scope: Scope) -> None:
    assert totals(Scoring([], [(normalized("A", [-5, 999, 0], [0, 100, 1], scope), 1)])) == [
        0,
        100,
        1,
    ]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_score_out_of_range_after_normalising_is_an_error(scope: Scope) -> None:
    with pytest.raises(PluginRunError, match="invalid score 101"):
        totals(Scoring([], [(normalized("A", [1, 1, 1], [0, 101, 1], scope), 1)]))


@pytest.mark.parametrize("scope", SCOPES)
def test_a_score_that_raises_is_named(scope: Scope) -> None:
    with pytest.raises(PluginRunError) as failed:
        totals(Scoring([], [(score("A", BOOM, scope), 1)]))

    assert str(failed.value) == 'running Score plugins: plugin "A" failed with: boom'


@pytest.mark.parametrize("scope", SCOPES)
def test_a_normalize_that_raises_is_named(scope: Scope) -> None:
    with pytest.raises(PluginRunError) as failed:
        totals(Scoring([], [(normalized("A", [1, 1, 1], BOOM, scope), 1)]))

    assert str(failed.value) == 'running Normalize on Score plugins: plugin "A" failed with: boom'


def test_each_score_says_raw_normalised_and_weight() -> None:
    plugins = [(normalized("A", [1, 2, 3], [0, 50, 100], NODE_ROW), 4), (score("B", [5, 5, 5]), 1)]

    found = list(Scoring([], plugins).each_score(CycleState(), make_pod(), TABLE, ALL))

    assert [(s.plugin.name, s.weight) for s in found] == [("A", 4), ("B", 1)]
    assert found[0].raw.tolist() == [1, 2, 3]
    assert found[0].normalized.tolist() == [0, 50, 100]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("given", [[1, 2, 3], [0, 0, 0]])
def test_normalising_may_ask_which_nodes_the_scores_belong_to(
    scope: Scope, given: list[int]
) -> None:
    class ByRow(ScorePlugin):
        def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
            return np.array(given, dtype=np.int64)[table.numbers(rows)]

        def normalize_rows(
            self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, scores: Ints
        ) -> Ints:
            assert scores.tolist() == [given[row] for row in table.numbers(rows)]
            return table.numbers(rows) * 10

    ByRow.name, ByRow.scope = "ByRow", scope
    scoring, rows = Scoring([], [(ByRow(), 2)]), np.array([0, 2])

    assert scoring.run_scores(CycleState(), make_pod(), TABLE, rows).tolist() == [0, 40]
    (found,) = scoring.each_score(CycleState(), make_pod(), TABLE, rows)
    assert found.normalized.tolist() == [0, 20]


def test_nodes_may_stand_for_rows() -> None:
    first = normalized("A", [1, 2, 3], [0, 50, 100], CLUSTER)
    plugins = [(first, 4), (score("B", [5, 6, 7]), 1)]
    nodes = [TABLE.node_at(row) for row in (2, 2, 2)]
    scoring = Scoring([], plugins)

    found = list(scoring.each_score(CycleState(), make_pod(), TABLE, ALL, nodes))
    total = scoring.run_scores(CycleState(), make_pod(), TABLE, ALL, nodes)

    assert found[1].raw.tolist() == [5, 5, 5], "each a table of its own"
    assert total.tolist() == [5, 205, 405]


def test_a_score_of_a_node_that_raises_is_named() -> None:
    nodes = [TABLE.node_at(0)]

    with pytest.raises(PluginRunError, match='plugin "A" failed with: boom'):
        Scoring([], [(score("A", BOOM), 1)]).run_scores(
            CycleState(), make_pod(), TABLE, np.array([0]), nodes
        )
