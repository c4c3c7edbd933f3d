"""Plugins as users write them, one for each way in which the engine gets answers."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from bayplan.amounts import NO_RULES, AmountRules, FitRule
from bayplan.api.pod import Pod, PodSpec
from bayplan.framework import (
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
    scale_to_max,
    unresolvable,
    unschedulable,
)
from bayplan.table import Ints, NodeTable, Rows

NOISY = "noisy"
STRICT = "strict"
CLOSED = "closed"


def noise_of(node: NodeInfo) -> int:
    """The noise that the pods of a node make, by an annotation."""
    return sum(int(pod.annotations.get(NOISY, "0")) for pod in node.pods)


class Crowd(FilterPlugin):
    """NODE_ROW, for the whole pod: refuses nodes by the labels and annotations of their pods."""

    name = "Crowd"
    scope = NODE_ROW

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        alike = sum(other.labels.get("app") == pod.labels.get("app", "-") for other in node.pods)
        if alike > 3:
            return unresolvable(f"{alike} pods of the app")
        noise = noise_of(node)
        return (
            unschedulable(f"noise {noise}")
            if noise > int(pod.annotations.get(NOISY, "9"))
            else SUCCESS
        )


class Silence(ScorePlugin):
    """NODE_ROW, for the whole pod, normalised over the feasible nodes."""

    name = "Silence"
    scope = NODE_ROW

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return noise_of(node) * 10 + len(pod.annotations)

    def normalize(self, scores: Ints) -> Ints:
        return scale_to_max(scores, reverse=True)


class Rare(ScorePlugin):
    """NODE_OBJECT, equal for all pods, with a `normalize` that counts: the rarest disk is best."""

    name = "Rare"
    scope = NODE_OBJECT

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.labels.get("disk", ""))

    def normalize(self, scores: Ints) -> Ints:
        counts = Counter(scores.tolist())
        return np.array([MAX_SCORE // counts[score] for score in scores.tolist()], dtype=np.int64)


class Average(ScorePlugin):
    """CLUSTER: scores by all pods there are."""

    name = "Average"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return (int(self.handle.table.pod_count.sum()) * 7 + len(node.pods)) % 100


class Above(FilterPlugin):
    """CLUSTER: refuses nodes with far more pods than the average."""

    name = "Above"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        table = self.handle.table
        mean = int(table.pod_count.sum()) / max(table.node_count, 1)
        return unschedulable("above average") if len(node.pods) > mean + 2 else SUCCESS


class Relative(PreScorePlugin, ScorePlugin):
    """NODE_ROW with a PreScore that goes by the feasible nodes."""

    name = "Relative"
    scope = NODE_ROW

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        state.write(self.name, int(table.pod_count[rows].max()))
        return SKIP if table.count(rows) % 5 == 0 else SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return min(int(state.read(self.name)) - len(node.pods) + 50, MAX_SCORE)


class ByPlace(ScorePlugin):
    """NODE_OBJECT with a normalize that reads which nodes there are."""

    name = "ByPlace"
    scope = NODE_OBJECT

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.labels)

    def normalize_rows(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, scores: Ints
    ) -> Ints:
        return (scores + table.numbers(rows)) % 50


class Strict(PreFilterPlugin, FilterPlugin):
    """NODE_ROW by spec, with a PreFilter that skips it for some pods of a spec."""

    name = "Strict"
    scope = NODE_ROW

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.priority or 0

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return SUCCESS if STRICT in pod.annotations else SKIP

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert STRICT in pod.annotations, "a skipped plugin must not be asked"
        limit = 2 if pod.priority else 3
        return unschedulable("too many for the strict") if len(node.pods) >= limit else SUCCESS


class Picky(PreFilterPlugin, FilterPlugin):
    """NODE_OBJECT by spec, with such a PreFilter."""

    name = "Picky"
    scope = NODE_OBJECT

    def spec_key(self, spec: PodSpec) -> Hashable:
        return 0

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return SUCCESS if STRICT in pod.annotations else SKIP

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert STRICT in pod.annotations, "a skipped plugin must not be asked"
        return unschedulable("a hard disk") if node.labels.get("disk") == "hdd" else SUCCESS


class Closing(FilterPlugin):
    """NODE_OBJECT by spec, which reads an object, too, and declares it in its cluster_key."""

    name = "Closing"
    scope = NODE_OBJECT

    def spec_key(self, spec: PodSpec) -> Hashable:
        return 0

    def cluster_key(self, table: NodeTable) -> Hashable:
        found: Any = self.handle.lister.get("PodDisruptionBudget", "default", CLOSED)
        return None if found is None else found.labels.get("disk")

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        closed = self.cluster_key(node.table)
        is_closed = closed is not None and node.labels.get("disk") == closed
        return unresolvable(f"{closed} is closed") if is_closed else SUCCESS


class Calm(ScorePlugin):
    """NODE_ROW by spec, scored and not normalised."""

    name = "Calm"
    scope = NODE_ROW

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.priority or 0

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(MAX_SCORE - noise_of(node) * 10 - pod.priority, 0)


class Slots(FilterPlugin):
    """NODE_ROW by spec, with a rule on amounts, in addition to that of NodeResourcesFit."""

    name = "Slots"
    scope = NODE_ROW
    RULE = FitRule(
        {"pods": 1, "cpu": 1500}, {"pods": "no slot", "cpu": "no spare cpu"}, plugin=name
    )

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.priority or 0

    def amount_rules(self, pod: Pod) -> AmountRules:
        return NO_RULES if pod.priority else AmountRules(self.RULE)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if pod.priority:
            return SUCCESS
        table, row = node.table, node.row
        spare = int(table.allocatable["cpu"][row] - table.requested["cpu"][row])
        offered = int(table.allocatable["cpu"][row])
        slots = int(table.max_pods[row]) - len(node.pods)
        reasons = [
            text
            for text, short in (("no slot", slots < 1), ("no spare cpu", spare < 1500))
            if short
        ]
        if not reasons:
            return SUCCESS
        refuse = unresolvable if spare < 1500 and offered < 1500 else unschedulable
        return refuse(*reasons)


WHOLE_POD = (Crowd, Silence, Rare, Average, Relative, ByPlace)
"""Plugins whose answers are cached for pods that are equal in every field."""
ANYTHING = (Above, Average)
"""Plugins that may read anything, and are called for every pod."""
BY_SPEC = (Strict, Picky, Closing, Calm, Slots)
"""Plugins whose answers are cached by spec."""
