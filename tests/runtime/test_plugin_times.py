import asyncio
from typing import Any

import pytest

from bayplan.api.pod import Pod
from bayplan.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PostFilterResult,
    Status,
    unschedulable,
    wait,
)
from bayplan.observe.scheduler_metrics import SchedulerMetrics
from bayplan.runtime.plugin_times import Evaluations, timed
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario

PROFILE = "default-scheduler"


class Some(Plugin):
    name = "Some"


def statuses(metrics: SchedulerMetrics) -> list[str]:
    return [status for _, _, status in metrics.plugin_duration.counts()]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(SUCCESS, "Success", id="a status"),
        pytest.param(SKIP, "Skip", id="a skip"),
        pytest.param((wait("for others"), 5.0), "Wait", id="a status with seconds, as of Permit"),
        pytest.param(
            (PostFilterResult(), unschedulable("no")), "Unschedulable", id="a result with a status"
        ),
        pytest.param([1, 2, 3], "Success", id="scores"),
    ],
)
def test_a_call_is_timed_by_what_it_says(answer: Any, status: str) -> None:
    metrics = SchedulerMetrics()

    said = timed(metrics, "Filter", Some(), lambda *given: (given, answer)[1])(1, 2)

    assert said is answer
    assert metrics.plugin_duration.counts() == {("Some", "Filter", status): 1}


def test_a_call_that_raises_is_an_error() -> None:
    metrics = SchedulerMetrics()

    def fail() -> Status:
        raise ValueError("oh no")

    with pytest.raises(ValueError, match="oh no"):
        timed(metrics, "Filter", Some(), fail)()

    assert statuses(metrics) == ["Error"]


def test_an_answer_that_is_still_to_come_is_not_timed() -> None:
    metrics = SchedulerMetrics()

    async def later() -> Status:
        return SUCCESS

    assert asyncio.run(timed(metrics, "Bind", Some(), later)()) is SUCCESS
    assert statuses(metrics) == []


def test_plugins_that_are_skipped_have_no_say() -> None:
    metrics = SchedulerMetrics()
    other = type("Other", (Plugin,), {"name": "Other"})()
    evaluations = Evaluations(
        metrics.profile(PROFILE), {"PreFilter": [Some()], "Filter": [Some(), other]}
    )

    evaluations.count(set())
    evaluations.count({"Some"})
    evaluations.count({"Some"})

    assert metrics.plugin_evaluation.read() == {
        ("Some", "PreFilter", PROFILE): 1,
        ("Some", "Filter", PROFILE): 1,
        ("Other", "Filter", PROFILE): 3,
    }


class Curious(FilterPlugin):
    """Depends on more than a row: all plugins run for every pod."""

    name = "Curious"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


def asked(pods: int) -> SchedulerMetrics:
    """The metrics after pods for which plugins were called."""
    # Without all nodes to be judged, points are run plugin by plugin.
    profile = {"percentageOfNodesToScore": 50}
    scenario = Scenario(make_node("a"), make_node("b"), profile=profile, plugins=(Curious,))
    scenario.add(*(make_pod(f"p{i}", cpu="1m") for i in range(pods)))
    scenario.run()
    return scenario.scheduler.metrics


def test_a_tenth_of_the_attempts_times_each_plugin() -> None:
    counts = asked(100).plugin_duration.counts()

    assert 3 <= counts["Curious", "Filter", "Success"] <= 25
    assert counts["DefaultBinder", "Bind", "Success"] == counts["Curious", "Filter", "Success"]


def test_every_attempt_counts_the_plugins_that_ran() -> None:
    counts = asked(2).plugin_evaluation.read()

    for plugin, points in {
        "Curious": ("Filter",),
        "NodeResourcesFit": ("PreFilter", "Filter", "PreScore", "Score"),
        "TaintToleration": ("Filter", "PreScore", "Score"),
    }.items():
        for point in points:
            assert counts.get((plugin, point, PROFILE)) == 2, (plugin, point)
    assert ("VolumeBinding", "Filter", PROFILE) not in counts  # it skips pods without claims
