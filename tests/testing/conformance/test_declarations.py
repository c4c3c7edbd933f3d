"""Checks of declarations beyond Filter and Score: a correct one passes, and each kind of wrong one is detected."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import pytest

from bayplan.api.pod import Pod, PodSpec
from bayplan.framework import (
    GROUPS,
    NODE_OBJECT,
    NODE_ROW,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    Settled,
    Status,
    unschedulable,
    wait,
)
from bayplan.framework.interface import NOT_SETTLED, Scope
from bayplan.table import NodeTable, Rows, RowValues
from bayplan.testing.builders import make_node, make_object, make_pod, make_table
from bayplan.testing.conformance import (
    check_conformance,
    check_looks_at,
    check_spec_key,
)

POD = make_pod("p", labels={"app": "web"})
TABLE = make_table(
    make_node("a", labels={"tier": "prod"}),
    make_node("b"),
    pods=[
        make_pod("q", node_name="b", labels={"app": "web"}),
        make_pod("r", node_name="a", labels={"app": "db"}),
    ],
)


class Prepared(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Correct: it settles its real effects, and neither Filter nor Score needs it."""

    name = "Prepared"
    said: ClassVar[Settled] = Settled(pre_filter=SUCCESS, pre_score=SUCCESS)

    def settled(self, spec: PodSpec) -> Settled:
        return self.said

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        state.write("limit", 7)
        return SUCCESS

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS if len(node.pods) < 7 else unschedulable("full")

    def pre_score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Status:
        state.write("points", 3)
        return SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 3


class SkipsFilter(Prepared):
    said: ClassVar[Settled] = Settled(pre_filter=SKIP)


class SkipsScore(Prepared):
    said: ClassVar[Settled] = Settled(pre_score=SKIP)


class FilterReadsState(Prepared):
    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS if len(node.pods) < state.read("limit") else unschedulable("full")


class ScoreReadsState(Prepared):
    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return state.get("points") or 0


class Commits(ReservePlugin, PermitPlugin, PreBindPlugin):
    """Correct: has work for pods with a priority only."""

    name = "Commits"

    def __init__(self) -> None:
        self.holders: set[str] = set()

    def settled(self, spec: PodSpec) -> Settled:
        return NOT_SETTLED if spec.priority else Settled(commits=False)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if pod.priority:
            self.holders.add(pod.uid)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.holders.discard(pod.uid)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return (wait(), 10) if pod.priority else (SUCCESS, 0)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if pod.priority:
            self.handle.client.update(pod)  # type: ignore[type-var]  # a pod has no generation
        return SUCCESS


class ReservesForAll(Commits):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self.holders.add(pod.uid)
        return SUCCESS


class HoldsAll(Commits):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return wait(), 10


class WritesForAll(Commits):
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self.handle.client.update(pod)  # type: ignore[type-var]  # a pod has no generation
        return SUCCESS


class NotBesideApp(FilterPlugin):
    """Correct: reads pods with the same app."""

    name = "NotBesideApp"
    scope: ClassVar[Scope] = NODE_ROW

    def looks_at(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        return other.labels.get("app") == pod.labels.get("app")

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        crowd = [other for other in node.pods if other.labels.get("app") == pod.labels.get("app")]
        return unschedulable("same app") if crowd else SUCCESS


class LooksAway(NotBesideApp):
    """Claims to read no pod."""

    def looks_at(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        return False


class CountsInState(PreFilterPlugin, NotBesideApp, PreFilterExtensions):
    """Claims to read no pod, and counts them in its state."""

    name = "CountsInState"

    def looks_at(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        return False

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        state.write("more", 0)
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        state.write("more", state.read("more") + 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unschedulable("more") if state.read("more") else SUCCESS


class ByService(ScorePlugin):
    """Reads objects, and does not declare it."""

    name = "ByService"
    scope: ClassVar[Scope] = NODE_OBJECT

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(list(self.handle.lister.list("Service")))


class ByServiceAndSaysSo(ByService):
    """Correct."""

    def cluster_key(self, table: NodeTable) -> Hashable:
        return len(list(self.handle.lister.list("Service")))


class ByConstantKey(ByService):
    def cluster_key(self, table: NodeTable) -> Hashable:
        return "always"


class ByPriorityColumns(FilterPlugin):
    """Distinguishes nodes by another label for important pods."""

    name = "ByPriorityColumns"
    scope: ClassVar[Scope] = GROUPS

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.priority or 0

    def row_groups(self, pod: Pod, table: NodeTable) -> Sequence[RowValues]:
        return [table.labels.column("tier" if pod.priority else "disk").column]

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class ByTooNarrowKey(ByPriorityColumns):
    def spec_key(self, spec: PodSpec) -> Hashable:
        return 0


@pytest.mark.parametrize(
    "plugin", [Prepared, Commits, NotBesideApp, ByServiceAndSaysSo, ByPriorityColumns]
)
def test_a_correct_declaration_passes(plugin: type[Plugin]) -> None:
    pods = [POD, make_pod("important", priority=7), make_pod("other", labels={"app": "db"})]

    check_conformance(plugin, pods, TABLE, objects=[make_object("Service", "s")])


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            SkipsFilter,
            r"settled\(\).pre_filter says <Skip>, pre_filter says <Success>",
            id="settled: another answer of PreFilter",
        ),
        pytest.param(
            SkipsScore,
            r"settled\(\).pre_score says <Skip>, pre_score says <Success>",
            id="settled: another answer of PreScore",
        ),
        pytest.param(
            FilterReadsState,
            r"after settled\(\).pre_filter says \"failed with KeyError",
            id="settled: Filter reads what PreFilter writes",
        ),
        pytest.param(
            ScoreReadsState,
            r"score_rows after pre_score says \[3, 3\], after settled\(\).pre_score says \[0, 0\]",
            id="settled: Score reads what PreScore writes",
        ),
        pytest.param(
            ReservesForAll,
            r"node a for pod default/p: settled\(\).commits says False, reserve, which changes holders",
            id="settled: Reserve has work",
        ),
        pytest.param(
            HoldsAll,
            r"settled\(\).commits says False, permit says <Wait>",
            id="settled: Permit has work",
        ),
        pytest.param(
            WritesForAll,
            r"settled\(\).commits says False, pre_bind, which changes client.updated",
            id="settled: PreBind has work",
        ),
        pytest.param(
            LooksAway,
            "node a for pod default/p: filter_node says 'Success', with pod default/p-more, at which",
            id="looks_at: a pod that would come to the node",
        ),
        pytest.param(
            CountsInState,
            "filter_node says 'Success', with pod default/p-more, at which it does not look,",
            id="looks_at: a pod that counts in the CycleState",
        ),
        pytest.param(
            ByService,
            "in the cluster says 1, for scope NODE_OBJECT, with no object says 0",
            id="cluster_key: missing, and an object is read",
        ),
        pytest.param(
            ByConstantKey,
            "in the cluster says 1, for scope NODE_OBJECT, with no object says 0",
            id="cluster_key: it does not change with the object",
        ),
    ],
)
def test_a_wrong_declaration_is_found(plugin: type[Plugin], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_conformance(plugin, [POD], TABLE, objects=[make_object("Service", "s")])


def test_a_pod_on_the_node_that_counts_although_it_is_not_looked_at() -> None:
    check_looks_at(NotBesideApp(), POD, TABLE)
    with pytest.raises(
        AssertionError, match=r"'Unschedulable: same app', without pod default/q, .* says 'Success'"
    ):
        check_looks_at(LooksAway(), POD, TABLE)


def test_a_spec_key_that_hides_other_columns() -> None:
    pods = [make_pod("low"), make_pod("high", priority=7)]

    check_spec_key(ByPriorityColumns(), pods, TABLE)
    with pytest.raises(AssertionError, match="one spec_key for both pods: row_groups for pod"):
        check_spec_key(ByTooNarrowKey(), pods, TABLE)
