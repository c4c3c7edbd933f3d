"""The log of a pod's way: which steps are shown at which level, with which keys."""

import io
import json
from typing import Any

import pytest

from bayplan.framework import SUCCESS, ScorePlugin, wait
from bayplan.observe.logs import set_up_logging
from bayplan.observe.times import DECIDED, ENDED, FILTERED, NEVER, PRE_FILTERED, STARTED
from bayplan.scheduler import steps
from bayplan.scheduler.attempt import Explanation
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario, Scripted

SCRIPTED = {"plugins": {"multiPoint": {"enabled": [{"name": "Scripted"}]}}}
Line = dict[str, Any]


class Told(Scripted):
    name = "Scripted"


class Broken(ScorePlugin):
    """Fails when it is called a second time."""

    name = "Broken"

    def __init__(self) -> None:
        self.calls = 0

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        self.calls += 1
        if self.calls > 2:
            raise ValueError("no score")
        return 0


def log_at(verbosity: int, *pods: Any, nodes: int = 2, **options: Any) -> list[Line]:
    """The log of a cluster of equal nodes that gets `pods`, as the objects of the JSON form."""
    stream = io.StringIO()
    set_up_logging(verbosity, as_json=True, stream=stream)
    names = [f"node-{number}" for number in range(nodes)]
    scenario = Scenario(*[make_node(name, cpu="4") for name in names], **options)
    for pod in pods:
        scenario.add(pod)
        scenario.run()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [{key: value for key, value in line.items() if key != "ts"} for line in lines]


def shown(line: Line) -> Line:
    return {key: value for key, value in line.items() if key not in ("level", "logger", "msg")}


def messages(lines: list[Line]) -> list[str]:
    return [line["msg"] for line in lines]


def test_level_1_shows_no_step() -> None:
    assert log_at(1, make_pod("p")) == []


def test_level_2_shows_where_a_pod_was_bound() -> None:
    (line,) = log_at(2, make_pod("p"))

    assert shown(line) == {
        "v": 2,
        "pod": "default/p",
        "node": "node-0",
        "evaluatedNodes": 2,
        "feasibleNodes": 2,
    }


def test_level_2_shows_why_a_pod_was_not_bound() -> None:
    (line,) = log_at(2, make_pod("p", cpu="5"))

    assert shown(line)["pod"] == "default/p"
    assert shown(line)["err"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_level_3_shows_the_attempt_and_what_becomes_of_a_refused_pod() -> None:
    begun, _, moved = log_at(3, make_pod("p", cpu="5"))

    assert shown(begun) == {"v": 3, "pod": "default/p", "attempt": 1}
    assert shown(moved) == {
        "v": 3,
        "pod": "default/p",
        "event": "ScheduleAttemptFailure",
        "queue": "Unschedulable",
    }


def test_level_4_has_a_line_per_step() -> None:
    lines = log_at(4, make_pod("p"))

    assert messages(lines) == [
        "The pod entered a part of the queue",
        "Trying to schedule the pod",
        "Chose a node for the pod",
        "Bound the pod",
    ]
    assert shown(lines[0]) == {
        "v": 4,
        "pod": "default/p",
        "event": "UnschedulablePodAdd",
        "queue": "Active",
    }
    chosen = shown(lines[2])
    assert (chosen["node"], chosen["feasibleNodes"]) == ("node-0", 2)
    assert chosen["score"] > 0


def test_the_only_feasible_node_has_no_score() -> None:
    lines = log_at(10, make_pod("p"), nodes=1)

    (chosen,) = [line for line in lines if line["msg"] == "Chose a node for the pod"]
    assert "score" not in chosen
    assert not [line for line in lines if "plugin" in line]


def test_level_4_shows_what_holds_a_pod() -> None:
    stream = io.StringIO()
    set_up_logging(4, stream=stream)
    scenario = Scenario(make_node("a"), profile=SCRIPTED, plugins=[Told])
    scenario.plugin(Told).answers["permit"] = (wait("not yet"), 5.0)
    scenario.add(make_pod("held"), make_pod("gated", gates=["later"]))
    scenario.run()
    lines = stream.getvalue()

    assert 'Permit holds the pod pod="default/held" node="a" plugin="Scripted"' in lines
    assert 'PreEnqueue holds the pod pod="default/gated" plugin="SchedulingGates"' in lines


def test_level_4_shows_the_begin_of_pre_bind() -> None:
    lines = log_at(4, make_pod("p"), profile=SCRIPTED, plugins=[Told])

    (line,) = [line for line in lines if line["msg"] == "PreBind began for the pod"]
    assert shown(line) == {"v": 4, "pod": "default/p", "node": "node-0"}


def test_victims_are_shown_with_their_preemptor() -> None:
    lines = log_at(2, make_pod("low", cpu="4"), make_pod("high", cpu="4", priority=9), nodes=1)

    (line,) = [line for line in lines if "victim" in line]
    assert shown(line) == {
        "v": 2,
        "preemptor": "default/high",
        "victim": "default/low",
        "node": "node-0",
    }
    assert [line["nominatedNode"] for line in lines if "err" in line] == ["node-0"]


def test_level_5_counts_the_nodes_that_each_plugin_refused() -> None:
    lines = log_at(5, make_pod("p", cpu="5"), nodes=3)

    refusal, post_filter = [line for line in lines if "plugin" in line]
    assert shown(refusal) == {
        "v": 5,
        "pod": "default/p",
        "plugin": "NodeResourcesFit",
        "status": "Insufficient cpu",
        "code": "UnschedulableAndUnresolvable",
        "nodes": 3,
    }
    assert post_filter["status"].endswith("3 Preemption is not helpful for scheduling.")


def test_level_10_shows_the_scores_of_the_three_best_nodes() -> None:
    lines = log_at(10, make_pod("first", cpu="1"), make_pod("p", cpu="1"), nodes=5)

    of_p = [line for line in lines if line.get("pod") == "default/p"]
    finals = [line for line in of_p if line["msg"].startswith("The final score")]
    assert [line["node"] for line in finals] == ["node-1", "node-2", "node-3"]
    scores = [line for line in of_p if "plugin" in line]
    for final in finals:
        given = {line["plugin"]: line["score"] for line in scores if line["node"] == final["node"]}
        assert {"NodeResourcesFit", "TaintToleration"} <= set(given)
        assert sum(given.values()) == final["score"]
    (chosen,) = [line for line in of_p if line["msg"] == "Chose a node for the pod"]
    assert (chosen["node"], chosen["score"]) == ("node-1", finals[0]["score"])


def test_the_chosen_node_comes_first_among_equals() -> None:
    totals = {"a": 5, "b": 7, "c": 7, "d": 7, "e": 7}
    scores = Explanation(SUCCESS, None, [], {}, totals=totals)

    assert steps.best_nodes(scores, "e") == ["e", "b", "c"]


def test_scores_that_cannot_be_shown_do_not_change_where_the_pod_goes() -> None:
    profile = {"plugins": {"score": {"enabled": [{"name": "Broken"}]}}}
    lines = log_at(10, make_pod("p"), profile=profile, plugins=[Broken])

    assert "Cannot show the scores of the nodes" in messages(lines)
    assert messages(lines)[-1] == "Bound the pod"


def test_a_slow_attempt_is_logged_with_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SLOW_S", -1.0)
    (line,) = log_at(0, make_pod("p"))

    assert (line["v"], line["pod"], line["node"]) == (0, "default/p", "node-0")
    assert line["durationMs"] >= 0
    assert list(line["steps"]) == ["Decide", "Commit", "Bind"]


def test_durations_are_those_between_the_steps_that_happened() -> None:
    times = NEVER.copy()
    times[STARTED], times[PRE_FILTERED], times[FILTERED] = 10.0, 10.1, 10.3
    times[DECIDED], times[ENDED] = 10.7, 10.7005

    assert steps.durations_ms(times) == {
        "PreFilter": 100,
        "Filter": 200,
        "Decide": 400,
        "Bind": 0.5,
    }


def test_the_text_form_has_keys_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SLOW_S", -1.0)
    stream = io.StringIO()
    set_up_logging(2, stream=stream)
    scenario = Scenario(make_node("a"))
    scenario.add(make_pod("p"))
    scenario.run()
    bound, slow = stream.getvalue().splitlines()

    keys = 'pod="default/p" node="a" evaluatedNodes=1 feasibleNodes=1'
    assert bound.endswith(f"bayplan.scheduler.steps: Bound the pod {keys}")
    assert ' steps={"Decide": ' in slow
