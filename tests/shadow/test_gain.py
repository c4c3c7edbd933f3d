"""Gain: the points lost, the pods that are spread unevenly, and the nodes that could be empty."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.shadow.decision_account import DecisionAccount, PointRange, SchedulerAccount
from bayplan.shadow.gain import MOST_NODES, MOST_SPREADS, Gain, compute_gain
from bayplan.sim.settings import Settings
from bayplan.testing.builders import make_node, make_pod
from bayplan.trials import TrialCluster
from tests.rig.objects import owned

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
TWO = [make_node("a", zone="one", cpu="8"), make_node("b", zone="two", cpu="8")]


def gain_of(*objects: Any, account: DecisionAccount | None = None) -> Gain:
    settings = Settings()
    return compute_gain(account or DecisionAccount(), TrialCluster(objects, settings), settings)


def soft(app: str = "web", **more: Any) -> dict[str, Any]:
    """A soft spread constraint over zones for the pods of an app."""
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }


def pods(count: int, node: str = "a", app: str = "web", **more: Any) -> list[Pod]:
    """Pods of an app with a spread constraint, on one node."""
    fields = {"cpu": "100m", "spread": [soft(app)], "labels": {"app": app}, **more}
    return [make_pod(f"{app}-{node}-{i}", node_name=node, **fields) for i in range(count)]


def test_pods_in_one_of_two_zones_are_listed_with_the_move_that_helps() -> None:
    (found,) = gain_of(*TWO, *pods(3), *pods(1, "b"), *pods(2, "")).skewed  # two wait

    assert found.pods == "default/web-a-0 and 3 more"
    assert (found.topology_key, found.counts) == (ZONE, {"one": 3, "two": 1})
    assert (found.skew, found.from_domain, found.to_domain) == (2, "one", "two")


def test_each_topology_key_is_counted_for_itself() -> None:
    nodes = [*TWO, make_node("c", zone="two", cpu="8")]
    spread = [soft(), soft(topologyKey=HOST)]

    found = gain_of(*nodes, *pods(3, spread=spread), *pods(2, "b", spread=spread)).skewed

    # Zones have 3 and 2 pods, hosts 3, 2 and none.
    assert [(one.topology_key, one.to_domain, one.skew) for one in found] == [(HOST, "c", 3)]


def test_the_most_uneven_pods_are_first() -> None:
    found = gain_of(*TWO, *pods(2, app="few"), *pods(4, app="many"), *pods(3, app="some")).skewed

    assert [one.skew for one in found] == [4, 3, 2]


def test_only_nodes_with_room_in_the_emptiest_zone_count() -> None:
    more = [
        make_node("tainted", zone="two", taints=["gpu=yes:NoSchedule"]),
        make_node("small", zone="two", cpu="50m"),
        make_node("large", zone="two"),
        make_node("elsewhere", zone="one"),
    ]

    (found,) = gain_of(*TWO, *more, *pods(2)).skewed

    assert found.nodes_with_room == 2  # b and large


UNLISTED = [
    pytest.param([*TWO, *pods(3), *pods(2, "b")], id="the zones differ by one pod"),
    pytest.param([*TWO[:1], *pods(3)], id="there is one zone"),
    pytest.param([TWO[0], make_node("bare"), *pods(3)], id="the other node has no zone"),
    pytest.param([make_node("a"), make_node("b"), *pods(3)], id="no node has a zone"),
    pytest.param(
        [*TWO, *pods(3, spread=[soft(whenUnsatisfiable="DoNotSchedule")])],
        id="the constraint is a hard one",
    ),
    pytest.param([*TWO, *pods(3, spread=[soft(labelSelector=None)])], id="it selects no pods"),
    pytest.param([*TWO, *pods(3, spread=[soft("other")])], id="it selects other pods"),
    pytest.param([*TWO, *pods(3, spread=[])], id="there is no constraint"),
    pytest.param(
        [*TWO, *pods(1), *pods(2, app="ended", labels={"app": "web"}, terminating=True)],
        id="two of three pods are being deleted",
    ),
    pytest.param(
        [*TWO, *pods(1), *pods(2, app="ended", labels={"app": "web"}, status={"phase": "Failed"})],
        id="two of three pods have finished",
    ),
    pytest.param([*TWO, *pods(1), *pods(2, "")], id="two of three pods wait"),
    pytest.param(
        [*TWO, *pods(1), *pods(2, namespace="other", spread=[])],
        id="two of three pods are elsewhere",
    ),
    pytest.param(
        [*TWO, *pods(3, spec={"schedulerName": "another"})], id="another scheduler has the pods"
    ),
    pytest.param(
        [TWO[0], make_node("b", zone="two", cpu="50m"), *pods(3)], id="the other zone has no room"
    ),
]


@pytest.mark.parametrize("objects", UNLISTED)
def test_pods_that_no_move_improves_are_not_listed(objects: list[Any]) -> None:
    assert gain_of(*objects).skewed == []


def test_the_number_of_sets_that_are_probed_is_bounded() -> None:
    many = [pod for i in range(MOST_SPREADS + 1) for pod in pods(2, app=f"app-{i}", cpu="1m")]
    nodes = [make_node(name, zone=name, pods=500) for name in ("a", "b")]

    assert len(gain_of(*nodes, *many).skewed) == MOST_SPREADS


def test_pods_are_where_they_were_after_the_probe() -> None:
    view = TrialCluster([*TWO, *pods(3)], Settings())

    compute_gain(DecisionAccount(), view, Settings())

    assert len(view.pods_on("a")) == 3
    assert not view.pods_on("b")


def test_pods_that_fit_on_one_node_leave_the_other_empty() -> None:
    there = [owned(make_pod(f"p-{name}", cpu="1", node_name=name)) for name in ("a", "b")]

    gain = gain_of(*TWO, *there)

    assert (gain.nodes_in_use, gain.nodes_after, gain.moves) == (2, 1, 1)


def test_no_moves_are_planned_for_a_cluster_that_is_too_large() -> None:
    gain = gain_of(*(make_node(f"n{i}") for i in range(MOST_NODES + 1)))

    assert (gain.nodes_in_use, gain.nodes_after, gain.moves) == (None, None, 0)
    assert gain.how["nodesAfter"] == "not computed: the cluster has more than 2,000 nodes"


def two_schedulers(watched_s: float) -> DecisionAccount:
    """The account of two schedulers that lost points of one plugin each, and of one that both have."""
    first = SchedulerAccount(name="first", points_lost=30, split_decisions=2)
    first.points_lost_by_plugin = {
        "ImageLocality": PointRange(low=1, high=5),
        "NodeResourcesFit": PointRange(low=10, high=20),
    }
    second = SchedulerAccount(name="second", points_lost=12, split_decisions=1)
    second.points_lost_by_plugin = {"NodeResourcesFit": PointRange(low=3, high=4)}
    first.agreements["sampled"], second.agreements["sampled"] = 4, 2
    second.agreements["same"] = 5
    schedulers = {"first": first, "second": second}
    return DecisionAccount(schedulers=schedulers, watched_s=watched_s)


def test_points_of_all_schedulers_are_summed_by_plugin_the_highest_first() -> None:
    gain = gain_of(*TWO, account=two_schedulers(3600.0))

    assert list(gain.points_lost_by_plugin.items()) == [
        ("NodeResourcesFit", PointRange(low=13, high=24)),
        ("ImageLocality", PointRange(low=1, high=5)),
    ]
    assert gain.how["pointsLostByPlugin"].startswith("of 3 sampled decisions: ")


def test_decisions_of_all_schedulers_are_counted() -> None:
    gain = gain_of(*TWO, account=two_schedulers(3600.0))

    assert (gain.decisions, gain.sampled, gain.points_lost) == (11, 6, 42)


@pytest.mark.parametrize(
    ("watched_s", "per_day"),
    [
        pytest.param(3600.0, 42 * 24, id="an hour of watching"),
        pytest.param(2 * 86_400.0, 21, id="two days of watching"),
        pytest.param(0.0, 0, id="no time of watching"),
    ],
)
def test_points_per_day_go_by_the_time_of_watching(watched_s: float, per_day: float) -> None:
    assert gain_of(*TWO, account=two_schedulers(watched_s)).points_lost_per_day == per_day
