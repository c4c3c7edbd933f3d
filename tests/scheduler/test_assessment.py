"""Assessment: the node of a pod, compared with all others."""

from typing import Any

import pytest

from bayplan.scheduler import FirstByName
from bayplan.scheduler.assessment import NO_SUCH_NODE, Assessment, assess, choose
from bayplan.testing.builders import make_node, make_pod
from bayplan.trials import TrialCluster

NODES = [
    make_node("large", cpu="16"),
    make_node("twin", cpu="16"),
    make_node("small", cpu="4"),
    make_node("tainted", cpu="16", taints=["gpu=yes:NoSchedule"]),
]


def assessed(node_name: str, *others: Any, in_full: bool = True, **more: Any) -> Assessment:
    view = TrialCluster([*NODES, *others])
    return assess(view.ask(make_pod("p", cpu="2", **more)), node_name, in_full=in_full)


def test_a_node_with_the_highest_total_is_best() -> None:
    found = assessed("twin")

    assert (found.is_best, found.fits) == (True, True)
    assert (found.rank, found.best_nodes, found.feasible_nodes) == (1, 2, 3)
    assert found.total == found.best_total


def test_a_lower_total_names_the_plugins_that_make_the_difference() -> None:
    found = assessed("small")

    assert (found.is_best, found.fits, found.rank) == (False, True, 3)
    assert found.total is not None
    assert found.best_total is not None
    assert sum(points for _, points in found.behind) == found.best_total - found.total
    assert found.behind[0][0] == "NodeResourcesFit"


def test_a_refused_node_has_the_reasons() -> None:
    found = assessed("tainted")

    assert (found.is_best, found.fits, found.total, found.rank) == (False, False, None, None)
    assert [status.plugin for status in found.refusals] == ["TaintToleration"]


def test_a_node_that_is_not_there() -> None:
    (status,) = assessed("gone").refusals

    assert status.reasons == (NO_SUCH_NODE,)


def test_reasons_are_computed_on_request() -> None:
    assert assessed("small", in_full=False).behind == ()
    assert assessed("tainted", in_full=False).refusals == ()


def test_a_refusal_is_right_if_no_node_is_feasible() -> None:
    room = assessed("")
    none = assessed("", spec={"nodeSelector": {"disk": "tape"}})

    assert (room.is_best, room.feasible_nodes, room.message) == (False, 3, "")
    assert none.is_best
    assert none.message.startswith("0/4 nodes are available: ")


@pytest.mark.parametrize(
    ("node_name", "is_best"),
    [pytest.param("small", True, id="the named node"), pytest.param("large", False, id="another")],
)
def test_a_pod_that_names_its_node_has_no_other_choice(node_name: str, is_best: bool) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["small"]}
    term = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}

    found = assessed(node_name, spec={"affinity": affinity})

    assert (found.is_best, found.feasible_nodes) == (is_best, 1)
    assert bool(found.refusals) is not is_best


def test_a_nominated_node_is_taken_without_comparing_scores() -> None:
    status = {"nominatedNodeName": "small"}
    view = TrialCluster(NODES)
    inquiry = view.ask(make_pod("p", cpu="2", status=status))

    found = assess(inquiry, "small")

    assert (found.is_best, found.is_nominated, found.rank) == (True, True, 3)
    assert choose(inquiry, FirstByName()) == "small"


def test_choose_breaks_ties() -> None:
    view = TrialCluster(NODES)

    assert choose(view.ask(make_pod("p", cpu="2")), FirstByName()) == "large"
    assert choose(view.ask(make_pod("p", cpu="99")), FirstByName()) == ""


def test_totals_include_points_that_all_nodes_get() -> None:
    view = TrialCluster(NODES)
    pod = make_pod("p", cpu="2")

    assert assess(view.ask(pod), "small").total == view.ask(pod).scores.totals["small"]
