"""Causes: the cause of a rejection is named, and the remedies undo it."""

from typing import Any

import pytest

from bayplan.answers import explain
from bayplan.answers.account import PodExplanation
from bayplan.api.pod import Pod
from bayplan.testing.builders import make_node, make_pod
from bayplan.trials import TrialCluster
from tests.rig.objects import stored

ZONE = "zone"
WEB = {"app": "web"}
TAINT = "node.kubernetes.io/unschedulable"
CORDONED = {"unschedulable": True, "taints": [f"{TAINT}:NoSchedule"]}
CLOSED = (
    "the spread over zone counts zone=c with no pod, although every node there is cordoned or has a taint that the pod "
    "does not tolerate; nodeTaintsPolicy: Honor leaves it out"
)
HONOR = "set nodeTaintsPolicy: Honor for the spread over zone"


def make_zone(zone: str, **fields: Any) -> Any:
    return make_node(f"node-{zone}", labels={ZONE: zone}, **fields)


def make_spread(name: str, node: str = "", **fields: Any) -> Any:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **fields,
    }
    return make_pod(name, labels=WEB, node_name=node, spread=[constraint])


def ask(objects: list[Any], name: str) -> PodExplanation:
    view = TrialCluster(objects)
    return explain(view, stored(view.cluster, Pod, name))


def goals(account: PodExplanation) -> set[str]:
    return {
        goal
        for found in account.counterfactuals
        for step in found.steps
        for goal in (step.goal, *(other.goal for other in step.alternatives))
    }


@pytest.mark.parametrize(
    ("closed", "causes"),
    [
        pytest.param(make_zone("c", **CORDONED), [CLOSED], id="a cordoned zone"),
        pytest.param(
            make_zone("c", unschedulable=True),
            [f"{CLOSED} in a cluster, which gives cordoned nodes the taint {TAINT}"],
            id="a cordoned zone of a file, without the taint",
        ),
        pytest.param(make_zone("c", taints=["x=y:NoSchedule"]), [CLOSED], id="a tainted zone"),
        pytest.param(make_zone("c", pods=0), [], id="a zone that is full is no matter of taints"),
        pytest.param(
            make_zone("c", taints=["x=y:PreferNoSchedule"], pods=0), [], id="a soft taint"
        ),
    ],
)
def test_a_zone_without_nodes_for_the_pod_that_counts_as_empty(
    closed: Any, causes: list[str]
) -> None:
    pods = [make_spread("one", "node-a"), make_spread("two", "node-b"), make_spread("waits")]

    account = ask([make_zone("a"), make_zone("b"), closed, *pods], "waits")

    assert account.feasible_nodes == 0
    assert account.causes == causes
    assert (HONOR in goals(account)) == (causes == [CLOSED])


def test_no_cause_where_the_constraint_honors_taints_already() -> None:
    pods = [make_spread("one", "node-a"), make_spread("waits", nodeTaintsPolicy="Honor")]
    nodes = [make_zone("a"), make_zone("b", pods=0), make_zone("c", **CORDONED)]

    account = ask([*nodes, *pods], "waits")

    assert account.feasible_nodes == 0
    assert account.causes == []
    assert HONOR not in goals(account)


def test_pods_that_an_affinity_selects_only_in_another_namespace() -> None:
    near = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}]
    waits = make_pod("waits", affinity={"podAffinity": required(near)})
    db = make_pod("db", namespace="infra", labels={"app": "db"}, node_name="node-a")

    account = ask([make_zone("a"), make_zone("b"), db, waits], "waits")

    assert account.causes == [
        "the required pod affinity selects pods with app=db in namespace default, where there is none; "
        "1 pod with these labels is only in infra"
    ]
    assert "look for pods with app=db in namespace infra, too" in goals(account)
    (found,) = [one for one in account.counterfactuals if one.node == "node-a"]
    assert found.fits
    assert found.changes[0].to == ["default", "infra"]
    other = make_pod("db", labels={"app": "db"}, node_name="node-c")
    assert ask([make_zone("a"), make_zone("c", cpu="0"), db, other, waits], "waits").causes == []


def required(terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
