"""Report: the data of the page of a run."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.testing.builders import make_node, make_pod
from bayplan.trials import TrialCluster
from bayplan.web.accounts import MOST_SCORED, ranges
from bayplan.web.page_file import report_data

from .conftest import follow


def data_of(*objects: Any, **options: Any) -> dict[str, Any]:
    """The written data, as a browser reads it."""
    simulation, history, report = follow(*objects, **options)

    def view() -> TrialCluster:
        cluster = simulation.cluster
        every = list(cluster.objects())
        return TrialCluster(every, clock=simulation.clock)

    told = report_data(history, ["a.yaml"], report.preempted, view)
    return dict(msgspec.json.decode(msgspec.json.encode(told)))


def account_of(data: dict[str, Any], name: str) -> dict[str, Any] | None:
    number = data["accountOf"].get(str(data["pods"]["name"].index(name)))
    return None if number is None else dict(data["accounts"][number])


def test_the_release_is_part_of_the_page() -> None:
    gates = FeatureGates(release=find_release("1.35"))

    assert data_of(make_node("a"), make_pod("p"), feature_gates=gates)["release"] == "v1.35.8"


def test_only_pending_pods_are_explained() -> None:
    data = data_of(
        make_node("a"),
        make_node("b", taints=["gpu=yes:NoSchedule"]),
        make_pod("fits", cpu="1"),
        make_pod("huge", cpu="64"),
    )

    account = account_of(data, "huge")
    assert account is not None
    assert account["refusals"] == [
        {
            "plugin": "NodeResourcesFit",
            "reason": "Insufficient cpu",
            "code": "UnschedulableAndUnresolvable",
            "count": 1,
            "nodes": [0, 0],
        },
        {
            "plugin": "TaintToleration",
            "reason": "node(s) had untolerated taint(s)",
            "code": "UnschedulableAndUnresolvable",
            "count": 1,
            "nodes": [1, 1],
        },
    ]
    assert account["when"] == "end"
    assert account_of(data, "fits") is None


def test_with_explanations_the_best_scores_are_included() -> None:
    nodes = [make_node(f"n{i:02}", cpu=f"{i + 2}") for i in range(30)]
    data = data_of(*nodes, make_pod("a", cpu="1"), explain=True)

    account = account_of(data, "a")
    assert account is not None
    scores = account["scores"]
    assert len(scores["nodes"]) == MOST_SCORED
    assert scores["of"] == 30
    assert scores["nodes"][0] == scores["winner"]
    assert scores["totals"] == sorted(scores["totals"], reverse=True)
    level = sum(plugin["points"][0] for plugin in scores["plugins"])
    assert level == scores["totals"][0]


@pytest.mark.parametrize("explain", [False, True], ids=["judged at the end", "explained"])
def test_counterfactuals_are_included(explain: bool) -> None:
    data = data_of(
        make_node("a", cpu="4"),
        make_node("b", cpu="8", taints=["gpu=yes:NoSchedule"]),
        make_pod("fits", cpu="1"),
        make_pod("large", cpu="6"),
        explain=explain,
    )

    account = account_of(data, "large")
    assert account is not None
    rows = {
        tuple(data["nodes"][node] for node in row["nodes"]): row["lines"]
        for row in account["remedies"]
    }
    assert rows == {
        ("b",): [
            ["tolerate taint gpu=yes:NoSchedule", "step"],
            ["or remove taint gpu=yes:NoSchedule from node b", "other"],
        ],
        ("a",): [
            ["3 cpu more on a: raise cpu on a to 7", "step"],
            ["or request 3 cpu less: request 3 cpu instead of 6", "other"],
        ],
    }
    fits = account_of(data, "fits")
    assert fits is None or "remedies" not in fits


def test_equal_pods_share_an_account() -> None:
    pods = [make_pod(f"p{i}", cpu="64", labels={"app": "web"}) for i in range(500)]
    data = data_of(make_node("a"), *pods)

    assert len(data["accounts"]) == 1
    assert len(data["accountOf"]) == 500


def test_preemptions_are_included() -> None:
    data = data_of(
        make_node("a", cpu="1"),
        make_pod("low", node_name="a", cpu="1", priority=1),
        make_pod("high", cpu="1", priority=100),
    )

    assert data["preemptedFor"] == {"0": "default/high"}


def test_a_pod_that_another_scheduler_places_has_no_account() -> None:
    data = data_of(make_node("a"), make_pod("p", spec={"schedulerName": "elsewhere"}))

    assert data["accountOf"] == {}


def test_the_report_of_a_large_cluster_is_small() -> None:
    nodes = [make_node(f"node-{i:04}", zone=f"zone-{i % 8}") for i in range(500)]
    pods = [make_pod(f"web-{i:05}", node_name=f"node-{i % 500:04}", cpu="10m") for i in range(5000)]
    size = len(msgspec.json.encode(data_of(*nodes, *pods)))

    assert size / (len(nodes) + len(pods)) < 100


def test_nodes_with_equal_scores_are_listed_once_the_chosen_one_first() -> None:
    nodes = [make_node(f"n{i:02}", cpu="8" if i < 20 else "4") for i in range(40)]
    data = data_of(*nodes, make_pod("a", cpu="1"), explain=True, seed=7)

    account = account_of(data, "a")
    assert account is not None
    scores = account["scores"]
    assert scores["alike"] == [19, 19]
    assert scores["nodes"] == [scores["winner"], 20]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([4], [4, 4], id="one"),
        pytest.param([3, 1, 2, 7], [1, 3, 7, 7], id="a range and a single number"),
    ],
)
def test_ranges(numbers: list[int], expected: list[int]) -> None:
    assert ranges(numbers) == expected


@given(st.sets(st.integers(0, 60)))
def test_ranges_read_back(numbers: set[int]) -> None:
    found = ranges(numbers)

    pairs = zip(found[::2], found[1::2], strict=True)
    assert {n for first, last in pairs for n in range(first, last + 1)} == numbers
