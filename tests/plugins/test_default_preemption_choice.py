"""DefaultPreemption: which pods are in a disruption budget, and which of several nodes is the best."""

from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.api.workloads import PodDisruptionBudget
from bayplan.framework.victims import Victims
from bayplan.plugins.default_preemption.by_amounts import best_candidate
from bayplan.plugins.default_preemption.disruption_budgets import Budgets
from bayplan.testing.builders import make_object, make_pod

DB = {"app": "db"}
NEW_YEAR = "2024-01-01T00:00:00Z"
LATER = "2024-06-01T00:00:00Z"


def budget(allowed: int, **fields: Any) -> PodDisruptionBudget:
    """A budget for pods labelled app=db."""
    given = {"selector": {"matchLabels": {"app": "db"}}, **fields}
    status = {"disruptionsAllowed": allowed, "disruptedPods": given.pop("disrupted", None) or {}}
    namespace = given.pop("namespace", "default")
    made = make_object(
        "PodDisruptionBudget", "budget", namespace=namespace, spec=given, status=status
    )
    assert isinstance(made, PodDisruptionBudget)
    return made


@pytest.mark.parametrize(
    ("pods", "budgets", "violating"),
    [
        pytest.param([make_pod("p", labels=DB)], [budget(0)], ["p"], id="nothing allowed"),
        pytest.param([make_pod("p", labels=DB)], [budget(1)], [], id="one allowed"),
        pytest.param(
            [make_pod("p", labels=DB), make_pod("q", labels=DB)],
            [budget(1)],
            ["q"],
            id="the first one uses the allowance up",
        ),
        pytest.param(
            [make_pod("p", labels=DB)],
            [budget(0), budget(1)],
            ["p"],
            id="one of two budgets is enough",
        ),
        pytest.param(
            [make_pod("p", labels=DB), make_pod("q", labels=DB)],
            [budget(0), budget(1)],
            ["p", "q"],
            id="every budget is counted down",
        ),
        pytest.param([make_pod("p", labels={"app": "web"})], [budget(0)], [], id="another app"),
        pytest.param(
            [make_pod("p", labels=DB)], [budget(0, namespace="else")], [], id="another namespace"
        ),
        pytest.param([make_pod("p", labels=DB)], [budget(0, selector={})], [], id="empty selector"),
        pytest.param([make_pod("p", labels=DB)], [budget(0, selector=None)], [], id="no selector"),
        pytest.param(
            [make_pod("p")],
            [
                budget(
                    0, selector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
                )
            ],
            [],
            id="a pod without labels is in no budget",
        ),
        pytest.param(
            [make_pod("p", labels=DB)],
            [budget(0, disrupted={"p": NEW_YEAR})],
            [],
            id="one that is being disrupted already",
        ),
    ],
)
def test_split_by_budget(
    pods: list[Pod], budgets: list[PodDisruptionBudget], violating: list[str]
) -> None:
    breaks, harmless = Budgets(budgets).split(pods)

    assert [pod.name for pod in breaks] == violating
    assert [pod.name for pod in harmless] == [p.name for p in pods if p.name not in violating]


def victims(node_name: str, *priorities: int, broken: int = 0, start: str = NEW_YEAR) -> Victims:
    pods = [
        make_pod(f"{node_name}-{i}", priority=priority, start_time=start)
        for i, priority in enumerate(priorities)
    ]
    return Victims(node_name, pods, broken)


@pytest.mark.parametrize(
    ("candidates", "best"),
    [
        pytest.param(
            [victims("n1", 1, broken=1), victims("n2", 9, 9, 9)], "n2", id="fewest broken budgets"
        ),
        pytest.param([victims("n1", 8), victims("n2", 10)], "n1", id="lowest highest priority"),
        pytest.param([victims("n1", 10, 5), victims("n2", 10)], "n2", id="smallest sum"),
        pytest.param([victims("n1", 10, -5), victims("n2", 10)], "n2", id="a negative one counts"),
        pytest.param(
            [victims("n1", 10, 3), victims("n2", 10, 4)], "n1", id="smallest sum of as many"
        ),
        pytest.param(
            [victims("n1", 10, -(2**31)), victims("n2", 10)], "n2", id="fewest victims of equal sum"
        ),
        pytest.param(
            [victims("n1", 7), victims("n2", 7, start=LATER)], "n2", id="the latest started"
        ),
        pytest.param([victims("n2", 7), victims("n1", 7)], "n1", id="then the first by name"),
    ],
)
def test_best_candidate(candidates: list[Victims], best: str) -> None:
    assert best_candidate(candidates).node_name == best


def test_start_times_of_the_most_important_victims_decide() -> None:
    def pair(name: str, high: str, low: str) -> Victims:
        pods = [
            make_pod(f"{name}-high", priority=9, start_time=high),
            make_pod(f"{name}-low", priority=1, start_time=low),
        ]
        return Victims(name, pods, 0)

    candidates = [pair("n1", NEW_YEAR, LATER), pair("n2", LATER, NEW_YEAR)]

    assert best_candidate(candidates).node_name == "n2"


def test_the_earliest_of_the_most_important_victims_counts() -> None:
    def pair(name: str, *starts: str) -> Victims:
        pods = [make_pod(f"{name}-{s}", priority=9, start_time=s) for s in starts]
        return Victims(name, pods, 0)

    middle = "2024-03-01T00:00:00Z"
    candidates = [pair("n1", NEW_YEAR, LATER), pair("n2", middle, middle)]

    assert best_candidate(candidates).node_name == "n2"
