"""TaintToleration: hard taints filter, soft ones score."""

import pytest

from bayplan.framework import SUCCESS, CycleState, unresolvable
from bayplan.plugins.taint_toleration import REASON, TaintToleration
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance, check_rows_agree


@pytest.mark.parametrize(
    ("tolerations", "taints", "fits"),
    [
        pytest.param([], [], True, id="no taints"),
        pytest.param([], ["gpu=yes:NoSchedule"], False, id="taint without toleration"),
        pytest.param([], ["gpu=yes:NoExecute"], False, id="NoExecute filters, too"),
        pytest.param(["gpu=yes:NoSchedule"], ["gpu=yes:NoSchedule"], True, id="equal"),
        pytest.param(["gpu=no:NoSchedule"], ["gpu=yes:NoSchedule"], False, id="other value"),
        pytest.param(["gpu=yes:NoExecute"], ["gpu=yes:NoSchedule"], False, id="other effect"),
        pytest.param(["cpu:NoSchedule"], ["gpu=yes:NoSchedule"], False, id="other key"),
        pytest.param(["gpu"], ["gpu=yes:NoExecute"], True, id="exists tolerates every effect"),
        pytest.param([""], ["a:NoSchedule", "b:NoExecute"], True, id="no key tolerates all"),
        pytest.param(
            [{"operator": "Equal", "value": "yes"}],
            ["gpu=yes:NoSchedule"],
            True,
            id="equal without a key matches any key of that value",
        ),
        pytest.param(["a"], ["a:NoSchedule", "b:NoSchedule"], False, id="one of two tolerated"),
        pytest.param([], ["gpu=yes:PreferNoSchedule"], True, id="soft taint does not filter"),
        pytest.param(
            [{"key": "n", "operator": "Gt", "value": "1"}],
            ["n=5:NoSchedule"],
            False,
            id="comparison is off by default",
        ),
    ],
)
def test_filter(tolerations: list[str], taints: list[str], fits: bool) -> None:
    pod, table = make_pod(tolerations=tolerations), make_table(make_node("a", taints=taints))

    verdict = TaintToleration().filter_rows(CycleState(), pod, table, ALL)

    assert verdict.feasible.tolist() == [fits]
    assert verdict.histogram() == ({} if fits else {REASON: 1})
    assert verdict.status(0) == (SUCCESS if fits else unresolvable(REASON))


def test_reason_is_kube_schedulers() -> None:
    assert REASON == "node(s) had untolerated taint(s)"


@pytest.mark.parametrize(
    ("operator", "value", "fits"),
    [
        pytest.param("Gt", "4", True, id="5 is greater than 4"),
        pytest.param("Gt", "5", False, id="5 is not greater than 5"),
        pytest.param("Lt", "6", True, id="5 is less than 6"),
        pytest.param("Lt", "x", False, id="not a number"),
    ],
)
def test_comparison_operators_with_their_gate(operator: str, value: str, fits: bool) -> None:
    gates = {"TaintTolerationComparisonOperators": True}
    plugin = TaintToleration.from_args(None, make_handle(feature_gates=gates))
    pod = make_pod(tolerations=[{"key": "n", "operator": operator, "value": value}])
    table = make_table(make_node("a", taints=["n=5:NoSchedule"]))

    assert plugin.filter_rows(CycleState(), pod, table, ALL).feasible.tolist() == [fits]


def test_score_prefers_fewer_untolerated_soft_taints() -> None:
    plugin, pod = TaintToleration(), make_pod(tolerations=["a=1:PreferNoSchedule"])
    tolerated = make_node("tolerated", taints=["a=1:PreferNoSchedule"])
    one = make_node("one", taints=["b=2:PreferNoSchedule"])
    two = make_node("two", taints=["b=2:PreferNoSchedule", "c=3:PreferNoSchedule"])
    table = make_table(tolerated, one, two)

    raw = plugin.score_rows(CycleState(), pod, table, ALL)

    assert raw.tolist() == [0, 1, 2]
    assert plugin.normalize(raw).tolist() == [100, 50, 0]
    check_rows_agree(plugin, pod, table)


@pytest.mark.parametrize(
    ("tolerations", "raw"),
    [
        pytest.param([], 1, id="hard taints do not count"),
        pytest.param(["soft"], 0, id="exists without effect"),
        pytest.param(["soft:NoSchedule"], 1, id="a toleration of hard taints does not help"),
    ],
)
def test_score_counts_soft_taints(tolerations: list[str], raw: int) -> None:
    taints = ["soft:PreferNoSchedule", "hard:NoSchedule", "harder:NoExecute"]
    table, pod = make_table(make_node("a", taints=taints)), make_pod(tolerations=tolerations)
    plugin, state = TaintToleration(), CycleState()

    assert plugin.pre_score(state, pod, table, ALL) == SUCCESS
    assert plugin.score_rows(state, pod, table, ALL).tolist() == [raw]


def test_nodes_without_soft_taints_all_get_the_highest_score() -> None:
    plugin, table = TaintToleration(), make_table(make_node("a"), make_node("b"))

    raw = plugin.score_rows(CycleState(), make_pod(), table, ALL)

    assert plugin.normalize(raw).tolist() == [100, 100]


def test_conformance() -> None:
    pods = [make_pod("p"), make_pod("q", tolerations=["a"]), make_pod("r", tolerations=["a"])]
    table = make_table(
        make_node("a", taints=["a=1:NoSchedule", "b:PreferNoSchedule"]),
        make_node("b", taints=["a=1:PreferNoSchedule"]),
        make_node("c"),
    )

    check_conformance(TaintToleration, pods, table)
