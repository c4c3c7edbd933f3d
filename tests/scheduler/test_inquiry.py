"""Inquiry: it equals the scheduler's decision, and leaves no trace."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.errors import InputError
from bayplan.scheduler import Inquiry
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario

NODES = [
    make_node("a", cpu="2", zone="one"),
    make_node("b", cpu="8", zone="one", taints=["gpu=yes:NoSchedule"]),
    make_node("c", cpu="4", zone="two"),
    make_node("d", cpu="4", zone="two", unschedulable=True),
]
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
MISSING = {"name": "v", "persistentVolumeClaim": {"claimName": "x"}}
WISHES: dict[str, dict[str, Any]] = {
    "fits on some": {"cpu": "1"},
    "fits on none": {"cpu": "64"},
    "tolerates": {"cpu": "3", "tolerations": ["gpu=yes:NoSchedule"]},
    "asks for a label that no node has": {"node_selector": {"no": "such"}},
    "spreads, beyond its row": {"labels": {"app": "web"}, "spread": [SPREAD]},
    "PreFilter refuses": {"spec": {"volumes": [MISSING]}},
}


def groups(filter_: dict[str, Any]) -> dict[Any, set[str]]:
    found: dict[Any, set[str]] = {}
    for name, status in filter_.items():
        if not status.is_success:
            found.setdefault((status.plugin, status.reasons, status.code), set()).add(name)
    return found


@pytest.mark.parametrize("fields", WISHES.values(), ids=WISHES)
def test_it_says_what_an_explained_attempt_says(fields: dict[str, Any]) -> None:
    scenario = Scenario(*NODES, make_pod("old", node_name="a", labels={"app": "web"}), explain=True)
    pod = make_pod("p", **fields)

    inquiry = Inquiry(scenario.scheduler, pod)
    asked = inquiry.scores, inquiry.refusals(), inquiry.feasible_nodes
    scenario.cluster.add(pod)
    attempt = scenario.scheduler.schedule_one()

    assert attempt is not None
    told = attempt.explanation
    assert told is not None
    scores, refusals, feasible_nodes = asked
    assert feasible_nodes == attempt.feasible_nodes
    assert scores.totals == told.totals
    assert scores.pre_filter == told.pre_filter
    if told.pre_filter.is_success:
        said = {(s.plugin, s.reasons, s.code): set(names) for s, names in refusals}
        assert said == groups(told.filter)


def decisions(judging: list[int], fields: list[int]) -> list[tuple[str, str, str]]:
    """Nodes and counts of pods, with inquiries about pods before some of the attempts."""
    scenario = Scenario(*NODES)
    choices = list(WISHES.values())
    made = []
    for i, choice in enumerate(fields):
        pod = make_pod(f"p{i}", **choices[choice])
        for other in judging[i : i + 1]:
            inquiry = Inquiry(scenario.scheduler, make_pod("asked", **choices[other]))
            assert inquiry.scores.totals or inquiry.refusals()
            inquiry.best_rows()
            inquiry.all_refusals()
        scenario.cluster.add(pod)
        attempt = scenario.scheduler.schedule_one()
        assert attempt is not None
        made.append((attempt.outcome.value, attempt.node_name, attempt.message))
    metrics = scenario.scheduler.metrics.render()
    made += [("", "", line) for line in metrics.splitlines() if "evaluation_total" in line]
    return made


@given(
    judging=st.lists(st.integers(0, len(WISHES) - 1), max_size=8),
    fields=st.lists(st.integers(0, len(WISHES) - 1), min_size=1, max_size=8),
)
def test_asking_changes_no_decision_and_counts_nothing(
    judging: list[int], fields: list[int]
) -> None:
    assert decisions(judging, fields) == decisions([], fields)


def test_a_pod_of_another_scheduler_is_not_judged() -> None:
    pod: Pod = make_pod("p", spec={"schedulerName": "elsewhere"})

    with pytest.raises(
        InputError, match=r'expected a profile of the configuration .*; got "elsewhere"'
    ):
        Inquiry(Scenario(*NODES).scheduler, pod)


def test_every_node_is_judged_although_the_profile_samples() -> None:
    nodes = [make_node(f"n{i:03}") for i in range(150)]
    scenario = Scenario(*nodes, profile={"percentageOfNodesToScore": 10})
    pod = make_pod("p")

    feasible = Inquiry(scenario.scheduler, pod).feasible_nodes
    scenario.cluster.add(pod)
    attempt = scenario.scheduler.schedule_one()

    assert attempt is not None
    assert (feasible, attempt.feasible_nodes) == (150, 100)
