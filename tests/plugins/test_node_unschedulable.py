"""NodeUnschedulable: cordoned nodes."""

import pytest

from bayplan.framework import SUCCESS, CycleState, unresolvable
from bayplan.plugins.node_unschedulable import REASON, NodeUnschedulable
from bayplan.table import ALL
from bayplan.testing.builders import make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        pytest.param([], False, id="nothing tolerated"),
        pytest.param([f"{CORDON}:NoSchedule"], True, id="the cordon's taint tolerated"),
        pytest.param([CORDON], True, id="every effect of the key tolerated"),
        pytest.param([f"{CORDON}=:NoSchedule"], True, id="equal to the empty value"),
        pytest.param([f"{CORDON}=yes:NoSchedule"], False, id="another value"),
        pytest.param([f"{CORDON}:NoExecute"], False, id="another effect"),
        pytest.param([""], True, id="everything tolerated"),
    ],
)
def test_cordoned_node(tolerations: list[str], fits: bool) -> None:
    table = make_table(make_node("cordoned", unschedulable=True), make_node("open"))

    verdict = NodeUnschedulable().filter_rows(
        CycleState(), make_pod(tolerations=tolerations), table, ALL
    )

    assert verdict.status(0) == (SUCCESS if fits else unresolvable(REASON))
    assert verdict.status(1) == SUCCESS


def test_reason_is_kube_schedulers() -> None:
    assert REASON == "node(s) were unschedulable"


def test_conformance() -> None:
    pods = [make_pod("p"), make_pod("q", tolerations=[CORDON])]
    table = make_table(make_node("cordoned", unschedulable=True), make_node("open"))

    check_conformance(NodeUnschedulable, pods, table)
