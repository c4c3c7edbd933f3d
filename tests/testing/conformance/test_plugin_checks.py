"""Conformance checks: a correct plugin passes, and each kind of incorrect one is detected."""

import pytest

from bayplan.api.pod import Pod, PodSpec
from bayplan.errors import PluginError
from bayplan.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PreFilterPlugin,
    Settled,
    Status,
)
from bayplan.table import NodeTable
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import (
    check_conformance,
    check_repetition,
    check_row_groups,
    check_rows_agree,
    check_rules,
    check_scope,
    check_score_range,
    check_settled,
    check_spec_key,
)
from tests.testing.conformance.sample_plugins import (
    CROWDED,
    POD,
    PROD,
    TABLE,
    AlwaysAll,
    AsksForMore,
    ByLabel,
    ByLabelOfOneSpec,
    ByOtherLabel,
    ByPriority,
    ByPriorityKey,
    ByTier,
    CountsFeasible,
    CountsFeasibleNodes,
    CountsNodes,
    CountsNodesAndSaysSo,
    CountsNodesInAnyScope,
    CountsPods,
    CountsPodsOfTheNode,
    FailsInRowsOnly,
    FailsOnA,
    Floats,
    ForgetsRows,
    NoProd,
    NoProdRows,
    OffByOne,
    OtherCode,
    OtherReason,
    PrefersFull,
    Prepared,
    ReadsOtherNodes,
    Roomy,
    SaysAnything,
    SaysNothing,
    Scaled,
    ScoresInSecret,
    ShareOfHighest,
    ShareOfTotal,
    TooMuch,
)


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


def test_a_normalize_that_counts_nodes_is_found() -> None:
    pods = [make_pod(f"q{i}", node_name=name) for i, name in enumerate("abcc")]
    table = make_table(*(make_node(name) for name in "abc"), pods=pods)

    check_repetition(ShareOfHighest(), POD, table)
    with pytest.raises(AssertionError, match="node a for pod default/p: normalize among all nodes"):
        check_repetition(ShareOfTotal(), POD, table)


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
