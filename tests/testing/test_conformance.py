"""Conformance checks: a correct plugin passes, and each kind of incorrect one is detected."""

from typing import ClassVar

import numpy as np
import pytest

from bayplan.api.pod import Pod, PodSpec
from bayplan.errors import PluginError
from bayplan.framework import (
    CLUSTER,
    MAX_SCORE,
    NODE_OBJECT,
    NODE_ROW,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    Status,
    Verdict,
    failure,
    unresolvable,
    unschedulable,
)
from bayplan.table import Ints, NodeTable, Rows
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import (
    check_conformance,
    check_pod_key,
    check_rows_agree,
    check_scope,
    check_score_range,
    check_spec_answers,
)

PROD = {"tier": "prod"}
POD = make_pod("p")
TABLE = make_table(
    make_node("a", labels=PROD), make_node("b"), make_node("c"), pods=[make_pod("q", node_name="b")]
)


class NoProd(FilterPlugin):
    """Correct: written for one node."""

    name = "NoProd"
    scope: ClassVar[Scope] = NODE_OBJECT

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unschedulable("prod") if node.labels.get("tier") == "prod" else SUCCESS


class NoProdRows(NoProd):
    """Correct: in both forms."""

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        verdict.reject(table.labels.equal("tier", "prod", rows), "prod")
        return verdict


class OtherCode(NoProdRows):
    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unresolvable("prod") if node.labels.get("tier") == "prod" else SUCCESS


class OtherReason(NoProdRows):
    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unschedulable("production") if node.labels.get("tier") == "prod" else SUCCESS


class ForgetsRows(NoProdRows):
    """Judges the first rows of the table, regardless of the given rows."""

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        everything = super().filter_rows(state, pod, table, slice(0, table.count(rows)))
        return everything


class AlwaysAll(NoProdRows):
    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return super().filter_rows(state, pod, table, slice(None))


class FailsOnA(FilterPlugin):
    """Correct, although it fails: the attempt fails in both forms."""

    name = "FailsOnA"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return failure("broken") if node.name == "a" else SUCCESS


class FailsInRowsOnly(FailsOnA):
    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict.from_statuses([failure("broken")] * table.count(rows))

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class CountsPods(ScorePlugin):
    """Correct: in both forms."""

    name = "CountsPods"
    scope: ClassVar[Scope] = NODE_ROW

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return table.pod_count[rows]

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.pods)


class OffByOne(CountsPods):
    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.pods) + 1


class Floats(CountsPods):
    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return table.pod_count[rows] / 2


class CountsPodsOfTheNode(CountsPods):
    """Claims to depend on the node alone."""

    scope: ClassVar[Scope] = NODE_OBJECT


class CountsNodes(ScorePlugin):
    """Claims to depend on a row, but depends on the cluster."""

    name = "CountsNodes"
    scope: ClassVar[Scope] = NODE_ROW

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        return np.full(table.count(rows), table.node_count, dtype=np.int64)


class CountsNodesAndSaysSo(CountsNodes):
    """Correct: the key changes with the number of nodes."""

    def pod_key(self, pod: Pod) -> int:
        return self.handle.table.node_count


class CountsNodesInAnyScope(CountsNodes):
    """Correct."""

    scope: ClassVar[Scope] = CLUSTER


class ByPriority(ScorePlugin):
    """Claims that all pods are equal."""

    name = "ByPriority"
    scope: ClassVar[Scope] = NODE_OBJECT

    def pod_key(self, pod: Pod) -> int:
        return 0

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return pod.priority


class ByPriorityKey(ByPriority):
    """Correct."""

    def pod_key(self, pod: Pod) -> int:
        return pod.priority


class TooMuch(ScorePlugin):
    name = "TooMuch"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return MAX_SCORE + 1


class Scaled(TooMuch):
    """Correct: only the normalised scores must be in range."""

    def normalize(self, scores: Ints) -> Ints:
        return np.minimum(scores, MAX_SCORE)


class Prepared(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Correct: needs its PreFilter and PreScore, and skips pods without priority."""

    name = "Prepared"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        state.write("filter", "too important")
        return SUCCESS if pod.priority else SKIP

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert pod.priority, "a skipped plugin must not be asked"
        return unschedulable(state.read("filter"))

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        state.write("score", table.count(rows))
        return SUCCESS if pod.priority else SKIP

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        assert pod.priority, "a skipped plugin must not be asked"
        return int(state.read("score"))


@pytest.mark.parametrize(
    "plugin",
    [
        NoProd,
        NoProdRows,
        FailsOnA,
        CountsPods,
        CountsNodesAndSaysSo,
        CountsNodesInAnyScope,
        ByPriorityKey,
        Scaled,
        Prepared,
    ],
)
def test_a_correct_plugin_passes(plugin: type[Plugin]) -> None:
    check_conformance(plugin, [POD, make_pod("q", priority=7)], TABLE)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            OtherCode,
            "NoProd: node a for pod default/p: filter_rows says 'Unschedulable: prod', "
            "filter_node says 'UnschedulableAndUnresolvable: prod'",
            id="another code for one node",
        ),
        pytest.param(
            OtherReason, "filter_node says 'Unschedulable: production'", id="another reason"
        ),
        pytest.param(
            ForgetsRows,
            "node b for pod default/p: filter_rows on all rows says 'Success', on the other rows",
            id="rows that are ignored",
        ),
        pytest.param(
            AlwaysAll, "an answer for each of 2 rows; got 3", id="an answer of the wrong length"
        ),
        pytest.param(
            FailsInRowsOnly,
            "filter_rows fails for pod default/p, filter_node on no node",
            id="a failure in one form",
        ),
        pytest.param(
            OffByOne,
            "CountsPods: node a for pod default/p: score_rows says 0, score_node says 1",
            id="another score",
        ),
        pytest.param(
            Floats, "expected an array of int64; got float64", id="scores that are floats"
        ),
    ],
)
def test_rows_that_do_not_agree(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_rows_agree(plugin(), POD, TABLE)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            CountsNodes,
            "CountsNodes: node a for pod default/p: score_rows says 3, "
            "for scope NODE_ROW, with no other node says 1",
            id="a row plugin that reads other rows",
        ),
        pytest.param(
            CountsPodsOfTheNode,
            "node b for pod default/p: score_rows says 1, for scope NODE_OBJECT",
            id="a node plugin that reads pods",
        ),
    ],
)
def test_a_scope_that_is_too_narrow(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_scope(plugin(), POD, TABLE)


def test_a_pod_key_that_leaves_something_out() -> None:
    pods = [make_pod("low", priority=1), make_pod("high", priority=2)]

    with pytest.raises(AssertionError, match="for pod default/low says 1, for pod default/high"):
        check_pod_key(ByPriority(), pods, TABLE)


def test_a_score_out_of_range() -> None:
    with pytest.raises(AssertionError, match=r"TooMuch: node a for pod default/p: .* got 101"):
        check_score_range(TooMuch(), POD, TABLE)


@pytest.mark.parametrize(
    "plugin",
    [OtherCode, CountsPodsOfTheNode, TooMuch],
)
def test_the_combined_check_finds_it_too(plugin: type[Plugin]) -> None:
    with pytest.raises(AssertionError, match=plugin.name):
        check_conformance(plugin, [POD], TABLE)


def test_the_combined_check_rejects_a_class_without_methods() -> None:
    class Empty(FilterPlugin):
        name = "Empty"

    with pytest.raises(PluginError, match="filter_rows"):
        check_conformance(Empty, [POD], TABLE)


def test_a_state_that_is_given_is_used() -> None:
    state = CycleState()
    state.write("filter", "given")
    state.write("score", 1)

    check_rows_agree(Prepared(), make_pod(priority=1), TABLE, state)

    with pytest.raises(KeyError, match="not found"):
        check_rows_agree(Prepared(), make_pod(priority=1), TABLE, CycleState())


class SaysSkipForAll(PreFilterPlugin, FilterPlugin):
    name = "SaysSkipForAll"

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return SUCCESS

    def pre_filter_spec(self, spec: PodSpec) -> Status:
        return SKIP

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class KeyOfName(FilterPlugin):
    name = "KeyOfName"
    scope = NODE_OBJECT
    key_is_spec = True

    def pod_key(self, pod: Pod) -> str:
        return pod.name

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            SaysSkipForAll, "pre_filter_spec says <Skip>", id="another answer for the spec"
        ),
        pytest.param(KeyOfName, "pods of one spec", id="a key that is not of the spec alone"),
    ],
)
def test_results_for_all_pods_of_a_spec(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_spec_answers(plugin(), make_pod("p"), make_table(make_node("a")))
