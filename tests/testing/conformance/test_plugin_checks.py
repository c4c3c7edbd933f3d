"""Conformance checks: a correct plugin passes, and each kind of incorrect one is detected."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from bayplan.amounts import AmountRules, FitRule, ShareKind, ShareRule
from bayplan.api.pod import Pod, PodSpec
from bayplan.errors import PluginError
from bayplan.framework import (
    CLUSTER,
    GROUPS,
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
    Settled,
    Status,
    Verdict,
    failure,
    unresolvable,
    unschedulable,
)
from bayplan.table import Ints, NodeTable, Rows, RowValues
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import (
    check_bounds,
    check_conformance,
    check_row_groups,
    check_rows_agree,
    check_rules,
    check_scope,
    check_score_range,
    check_settled,
    check_spec_key,
)

PROD = {"tier": "prod"}
POD = make_pod("p")
TABLE = make_table(
    make_node("a", labels=PROD), make_node("b"), make_node("c"), pods=[make_pod("q", node_name="b")]
)
CROWDED = make_table(
    *(make_node(name, labels=PROD if name == "a" else {}) for name in "abc"),
    pods=[make_pod(f"q{i}", node_name=name) for i, name in enumerate("abbccc")],
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

    def cluster_key(self, table: NodeTable) -> int:
        return table.node_count


class CountsNodesInAnyScope(CountsNodes):
    """Correct."""

    scope: ClassVar[Scope] = CLUSTER


class ByPriority(ScorePlugin):
    """Claims that all pods are equal."""

    name = "ByPriority"
    scope: ClassVar[Scope] = NODE_OBJECT

    def spec_key(self, spec: PodSpec) -> int:
        return 0

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return pod.priority


class ByPriorityKey(ByPriority):
    """Correct."""

    def spec_key(self, spec: PodSpec) -> int:
        return spec.priority or 0


class ByLabel(ByPriority):
    """Correct: without a key, answers are for pods that are alike in everything."""

    def spec_key(self, spec: PodSpec) -> None:
        return None

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(pod.labels)


class ByLabelOfOneSpec(ByLabel):
    """Claims to read the spec alone."""

    def spec_key(self, spec: PodSpec) -> PodSpec:
        return spec


class ReadsOtherNodes(FilterPlugin):
    """Claims to depend on a row, but depends on the pods of other nodes."""

    name = "ReadsOtherNodes"
    scope: ClassVar[Scope] = NODE_ROW

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        table = self.handle.table
        others = sum(len(pods) for pods in table.pods) - len(node.pods)
        return unschedulable("crowded") if others else SUCCESS


class ByTier(FilterPlugin, ScorePlugin):
    """Correct: judges nodes by the value of a label."""

    name = "ByTier"
    scope: ClassVar[Scope] = GROUPS
    key: ClassVar[str] = "tier"

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues] | None:
        return [table.labels.column(self.key).column]

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unschedulable("prod") if node.labels.get("tier") == "prod" else SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.labels.get("tier", ""))


class ByOtherLabel(ByTier):
    """Tells nodes apart by something else than it judges them by."""

    key: ClassVar[str] = "zone"


class SaysNothing(ByTier):
    """Claims to have nothing to say."""

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues]:
        return ()


class ScoresInSecret(SaysNothing):
    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 3


class SaysAnything(ByOtherLabel):
    """Correct: it reads more than columns."""

    def row_groups(self, pod: Pod, table: NodeTable) -> None:
        return None


class CountsFeasible(PreScorePlugin, ByTier):
    """Forgets how many nodes each row of PreScore stands for."""

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        state.write(self.name, self.feasible(state, table, rows))
        return SUCCESS

    def feasible(self, state: CycleState, table: NodeTable, rows: Rows) -> int:
        return table.count(rows)

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return int(state.read(self.name))


class CountsFeasibleNodes(CountsFeasible):
    """Correct."""

    def feasible(self, state: CycleState, table: NodeTable, rows: Rows) -> int:
        counts = state.row_counts
        return table.count(rows) if counts is None else int(counts.sum())


class ShareOfTotal(CountsPods):
    """Claims to go by the lowest and the highest score."""

    normalizes_by_bounds: ClassVar[bool] = True

    def normalize(self, scores: Ints) -> Ints:
        return scores * MAX_SCORE // max(int(scores.sum()), 1)


class ShareOfHighest(ShareOfTotal):
    """Correct."""

    def normalize(self, scores: Ints) -> Ints:
        return scores * MAX_SCORE // max(int(scores.max()), 1)


class Roomy(FilterPlugin, ScorePlugin):
    """Correct: filters and scores by rules."""

    name = "Roomy"
    scope: ClassVar[Scope] = NODE_ROW
    asked: ClassVar[int] = 1000
    kind: ClassVar[ShareKind] = ShareKind.LEAST

    def amount_rules(self, pod: Pod) -> AmountRules:
        fit = FitRule({"cpu": self.asked}, {"cpu": "full"})
        return AmountRules(fit, ShareRule(self.kind, (("cpu", 500, 1),)))

    def filter_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Verdict:
        verdict = Verdict.accept(table, rows)
        verdict.reject(table.allocatable["cpu"][rows] - table.requested["cpu"][rows] < 1000, "full")
        return verdict

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        offered = table.allocatable["cpu"][rows]
        return (offered - table.scoring_usage["cpu"][rows] - 500) * 100 // offered


class AsksForMore(Roomy):
    asked: ClassVar[int] = 4000


class PrefersFull(Roomy):
    kind: ClassVar[ShareKind] = ShareKind.MOST


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
        ByLabel,
        ByTier,
        SaysAnything,
        CountsFeasibleNodes,
        ShareOfHighest,
        Roomy,
        Scaled,
        Prepared,
    ],
)
def test_a_correct_plugin_passes(plugin: type[Plugin]) -> None:
    pods = [POD, make_pod("q", priority=7), make_pod("r", labels={"app": "web"})]

    check_conformance(plugin, pods, TABLE)


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
            "CountsNodes: node a for pod default/p: in the cluster says 3, "
            "for scope NODE_ROW, with no other node says 1",
            id="a row plugin that reads other rows",
        ),
        pytest.param(
            CountsPodsOfTheNode,
            "node b for pod default/p: in the cluster says 1, for scope NODE_OBJECT",
            id="a node plugin that reads pods",
        ),
        pytest.param(
            ReadsOtherNodes,
            "node a for pod default/p: in the cluster says 'Unschedulable: crowded', "
            "for scope NODE_ROW, with no other node says 'Success'",
            id="a row plugin that reads the pods of other nodes",
        ),
    ],
)
def test_a_scope_that_is_too_narrow(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_scope(plugin(), POD, TABLE)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            ByPriority,
            "one spec_key for both pods: score_rows for pod default/low says 1, for pod default/high",
            id="it leaves out a field of the spec",
        ),
        pytest.param(
            ByLabelOfOneSpec,
            "score_rows for pod default/low says 1, for pod elsewhere/another says 0",
            id="it leaves out what is not in the spec",
        ),
    ],
)
def test_a_spec_key_that_is_too_narrow(plugin: type[Plugin], message: str) -> None:
    pods = [
        make_pod("low", priority=1, labels={"app": "web"}),
        make_pod("high", priority=2, labels={"app": "web"}),
    ]

    with pytest.raises(AssertionError, match=message):
        check_spec_key(plugin(), pods, TABLE)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            ByOtherLabel,
            r"equal row_groups \(-1,\) of both nodes: filter_rows for node a says "
            "'Unschedulable: prod', for node b says 'Success'",
            id="columns that do not separate different answers",
        ),
        pytest.param(
            SaysNothing,
            "node a for pod default/p: row_groups says 'no column', filter_rows says",
            id="a filter of a plugin that has nothing to say",
        ),
        pytest.param(
            ScoresInSecret,
            "node a for pod default/p: row_groups says 'no column', normalize says 3",
            id="scores of a plugin that has nothing to say",
        ),
        pytest.param(
            CountsFeasible,
            "normalize among all feasible nodes says 3, among one node of each of its row_groups",
            id="scores that count rows, not nodes",
        ),
    ],
)
def test_row_groups_that_are_wrong(plugin: type[Plugin], message: str) -> None:
    table = make_table(make_node("a", labels=PROD), make_node("b"), make_node("c"))
    if plugin is SaysNothing:
        table = make_table(make_node("a", labels=PROD))

    with pytest.raises(AssertionError, match=message):
        check_row_groups(plugin(), POD, table)


def test_a_normalize_that_counts_is_not_by_bounds() -> None:
    pods = [make_pod(f"q{i}", node_name=name) for i, name in enumerate("abbccc")]
    table = make_table(*(make_node(name) for name in "abc"), pods=pods)

    check_bounds(ShareOfHighest(), POD, table)
    with pytest.raises(AssertionError, match="node a for pod default/p: normalize among all nodes"):
        check_bounds(ShareOfTotal(), POD, table)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            AsksForMore,
            r"node b for pod default/p: amount_rules\(\).fit says 'Unschedulable: full', filter_rows says",
            id="the rule of Filter",
        ),
        pytest.param(PrefersFull, "score says 12, score_rows says 87", id="the rule of Score"),
    ],
)
def test_a_rule_that_disagrees(plugin: type[Plugin], message: str) -> None:
    crowd = make_pod("q", node_name="b", cpu="1")
    table = make_table(make_node("a", cpu="4"), make_node("b", cpu="4"), pods=[crowd])

    with pytest.raises(AssertionError, match=message):
        check_rules(plugin(), POD, table)


def test_a_score_out_of_range() -> None:
    with pytest.raises(AssertionError, match=r"TooMuch: node a for pod default/p: .* got 101"):
        check_score_range(TooMuch(), POD, TABLE)


@pytest.mark.parametrize(
    "plugin",
    [
        OtherCode,
        CountsPodsOfTheNode,
        ByLabelOfOneSpec,
        ByOtherLabel,
        ShareOfTotal,
        PrefersFull,
        TooMuch,
    ],
)
def test_the_combined_check_finds_it_too(plugin: type[Plugin]) -> None:
    with pytest.raises(AssertionError, match=plugin.name):
        check_conformance(plugin, [make_pod("p", labels={"app": "web"})], CROWDED)


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

    def settled(self, spec: PodSpec) -> Settled:
        return Settled(pre_filter=SKIP)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            SaysSkipForAll, r"settled\(\).pre_filter says <Skip>", id="another answer for the spec"
        ),
    ],
)
def test_results_for_all_pods_of_a_spec(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_settled(plugin(), make_pod("p"), make_table(make_node("a")))
