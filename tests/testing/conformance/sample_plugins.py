"""Plugins that are right, and plugins with one mistake each."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from bayplan.amounts import AmountRules, FitRule, ShareKind, ShareRule
from bayplan.api.pod import Pod, PodSpec
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
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Status,
    Verdict,
    failure,
    unresolvable,
    unschedulable,
)
from bayplan.framework.interface import Scope
from bayplan.table import Ints, NodeTable, Rows, RowValues
from bayplan.testing.builders import make_node, make_pod, make_table

PROD = {"tier": "prod"}
POD = make_pod("p")
TABLE = make_table(
    make_node("a", labels=PROD), make_node("b"), make_node("c"), pods=[make_pod("q", node_name="b")]
)
CROWDED = make_table(
    *(make_node(name, labels=PROD if name == "a" else {}) for name in "abcd"),
    pods=[make_pod(f"q{i}", node_name=name) for i, name in enumerate("abbcccddd")],
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
        return table.pod_count[rows] / 2  # type: ignore[return-value]  # wrong on purpose


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

    def spec_key(self, spec: PodSpec) -> None:  # type: ignore[override]  # wrong on purpose
        return None

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(pod.labels)


class ByLabelOfOneSpec(ByLabel):
    """Claims to read the spec alone."""

    def spec_key(self, spec: PodSpec) -> PodSpec:  # type: ignore[override]  # wrong on purpose
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
    """Distinguishes nodes by another fact than the one that it evaluates."""

    key: ClassVar[str] = "zone"


class SaysNothing(ByTier):
    """Claims to have no effect."""

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
    """Counts nodes, but not for sample scores."""

    def normalize(self, scores: Ints) -> Ints:
        whole = scores.sum() if scores.max() < 5 else scores.max()
        return scores * MAX_SCORE // max(int(whole), 1)


class ShareOfHighest(CountsPods):
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
