"""Number of nodes that are needed: for any change, of several kinds in turn, and few in all."""

from typing import Any

import pytest

from bayplan.answers.what_if import Delete, Drain, Scale, fit_with_nodes, node_search
from bayplan.answers.what_if.answer import NodeSearch
from bayplan.cli.render.consequences import search_text
from bayplan.errors import InputError
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.objects import owned

ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}


def make_deployment(replicas: int, **pod: Any) -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": WEB}, "spec": {"containers": [container], **pod}}
    spec = {"replicas": replicas, "selector": {"matchLabels": WEB}, "template": template}
    return make_object("Deployment", "web", spec=spec)


def make_zone(zone: str, cpu: str = "2", **labels: str) -> Any:
    return make_node(f"{zone}1", cpu=cpu, labels={ZONE: zone, **labels})


EVEN = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": WEB},
        }
    ]
}


def search(objects: list[Any], like: Any, **options: Any) -> NodeSearch:
    found = fit_with_nodes(objects, like, **options).search
    assert found is not None
    return found


def test_several_kinds_are_added_in_turn_so_that_zones_grow_together() -> None:
    objects = [make_zone("a"), make_zone("b"), make_zone("c"), make_deployment(18, **EVEN)]

    found = search(objects, ["a1", "b1", "c1"])

    assert found.counts == {"a1": 2, "b1": 2, "c1": 2}
    assert (found.nodes, found.waiting, found.hopeless) == (6, 12, {})
    assert found.tried[5] > 0


def test_one_kind_in_one_zone_leaves_pods_waiting_and_says_so() -> None:
    objects = [make_zone("a", "1"), make_zone("b"), make_zone("c"), make_deployment(12, **EVEN)]

    answer = fit_with_nodes(objects, "a1")

    found = answer.search
    assert found is not None
    assert found.nodes == 2
    assert len(found.hopeless) == len(answer.pending_after) > 0
    assert set(found.hopeless) == set(answer.pending_after)


def test_nodes_for_a_change_come_before_it() -> None:
    pods = [owned(make_pod(f"w{i}", cpu="1", labels=WEB, node_name="a1")) for i in range(6)]
    spec = {"selector": {"matchLabels": WEB}, "maxUnavailable": 1}
    budget = make_object("PodDisruptionBudget", "web", spec=spec)
    objects = [make_zone("a", "6"), make_zone("b", "2"), *pods, budget]

    answer = fit_with_nodes(objects, "b1", changes=[Drain(("a1",))])

    found = answer.search
    assert found is not None
    assert (found.nodes, found.hopeless) == (2, {})
    assert found.tried[1] == 2, "one has no node, and its budget keeps the last one"
    assert answer.changes == ["add-nodes 2 --like b1", "drain a1"]
    assert not answer.is_worse


@pytest.mark.parametrize(
    ("change", "nodes"),
    [
        pytest.param(Scale("deployment/web", 7), 2, id="a workload that is scaled"),
        pytest.param(Delete(("node/b1",)), 1, id="a node that is deleted"),
        pytest.param(Scale("deployment/web", 2), 0, id="less load"),
    ],
)
def test_other_changes(change: Any, nodes: int) -> None:
    objects = [make_zone("a"), make_zone("b"), make_deployment(4)]

    assert search(objects, "a1", changes=[change]).nodes == nodes


def test_the_fewest_nodes_are_large_ones_and_those_that_only_some_pods_can_use() -> None:
    objects = [
        make_zone("a", "1"),
        make_zone("b", "8"),
        make_zone("g", "1", gpu="yes"),
        *(make_pod(f"full-{zone}", cpu=cpu, node_name=f"{zone}1") for zone, cpu in FULL),
        *(make_pod(f"p{i}", cpu="1") for i in range(12)),
        make_pod("needs", cpu="1", node_selector={"gpu": "yes"}),
    ]

    in_turn = search(objects, ["a1", "b1", "g1"])
    fewest = search(objects, ["a1", "b1", "g1"], fewest=True)

    assert (fewest.counts, fewest.is_fewest) == ({"a1": 0, "b1": 2, "g1": 1}, True)
    assert in_turn.nodes is not None
    assert in_turn.nodes > 3
    assert in_turn.is_fewest is None


def test_a_number_of_which_not_all_lower_ones_were_tried_is_only_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = [
        make_zone("a", "1"),
        make_zone("b", "2"),
        *(make_pod(f"full-{zone}", cpu=cpu, node_name=f"{zone}1") for zone, cpu in ("a1", "b2")),
        *(make_pod(f"p{i}", cpu="1") for i in range(8)),
    ]
    monkeypatch.setattr(node_search, "MAX_PROOF", 3)

    found = search(objects, ["a1", "b1"], fewest=True)

    assert (found.nodes, found.is_fewest) == (4, False)
    assert search_text(found) == (
        "at most 4 nodes needed: 4 like b1; another choice of fewer nodes may be enough"
    )


def test_a_search_that_gets_stuck_is_led_on_by_the_choices_of_one_node_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = [
        make_zone("a", "2"),
        make_zone("b", "3"),
        *(make_pod(f"full-{zone}", cpu=cpu, node_name=f"{zone}1") for zone, cpu in ("a2", "b3")),
        *(make_pod(f"p{i}", cpu="1") for i in range(6)),
    ]
    monkeypatch.setattr(node_search._Search, "_few", lambda search: (3, 0))

    found = search(objects, ["a1", "b1"], fewest=True)

    assert (found.counts, found.is_fewest) == ({"a1": 0, "b1": 2}, True)


FULL = (("a", "1"), ("b", "8"), ("g", "1"))


def test_a_budget_that_allows_nothing_is_no_matter_of_nodes() -> None:
    pod = owned(make_pod("w", labels=WEB, node_name="a1"))
    spec = {"selector": {"matchLabels": WEB}, "maxUnavailable": 0}
    objects = [make_zone("a"), pod, make_object("PodDisruptionBudget", "web", spec=spec)]

    found = search(objects, "a1", changes=[Drain(("a1",))])

    assert found.nodes is None
    assert found.hopeless == {"default/w": "default/web allows no disruption"}


def test_a_node_to_copy_is_needed() -> None:
    with pytest.raises(InputError, match="expected the name of a node to copy"):
        fit_with_nodes([make_zone("a")], [])
