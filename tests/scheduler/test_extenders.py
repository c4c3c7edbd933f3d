"""Extenders in the scheduling cycle: filter, scores, ties, preemption and binding."""

from collections import Counter
from typing import Any

import pytest

from bayplan.errors import ApiError, ConfigError
from bayplan.framework import Code
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.extenders import FakeExtender
from tests.rig.first_found import FirstFound
from tests.rig.scenarios import Scenario
from tests.scheduler.extender_bench import DEAD, GPU, NODES, Bench

FILTER = {"filterVerb": "filter", "nodeCacheCapable": True}
SCORE = {"prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": True}


def answering(*names: str, **more: Any) -> FakeExtender:
    return FakeExtender(filter={"NodeNames": list(names), **more})


# Filter


def test_only_nodes_that_every_extender_leaves_are_taken() -> None:
    first, second = answering("c", "a"), answering("c")
    bench = Bench(*NODES, extenders=[(FILTER, first), (FILTER, second)])

    attempt = bench.place(make_pod("p"))

    assert (attempt.outcome, attempt.node_name) == (Outcome.BOUND, "c")
    assert attempt.feasible_nodes == 1
    assert first.asked[0].args["NodeNames"] == ["a", "b", "c"]
    assert second.asked[0].args["NodeNames"] == ["c", "a"], "in the order of the first"


def test_ignorable_extenders_are_asked_last() -> None:
    asked: list[str] = []

    def answer(name: str) -> Any:
        def note(args: Any) -> Any:
            asked.append(name)
            return {"NodeNames": args["NodeNames"]}

        return FakeExtender(filter=note)

    ignorable = {**FILTER, "ignorable": True}
    Bench(
        *NODES,
        extenders=[
            (ignorable, answer("ignorable 1")),
            (FILTER, answer("strict 1")),
            (ignorable, answer("ignorable 2")),
            (FILTER, answer("strict 2")),
        ],
    ).place(make_pod("p"))

    assert asked == ["strict 1", "strict 2", "ignorable 1", "ignorable 2"]


def test_no_extender_is_asked_when_no_node_is_left() -> None:
    first, second = answering(), answering()
    bench = Bench(*NODES, extenders=[(FILTER, first), (FILTER, second)])

    bench.place(make_pod("p"))
    bench.place(make_pod("too-big", cpu="100"))

    assert {asked.args["Pod"]["metadata"]["name"] for asked in first.asked} == {"p"}
    assert second.asked == []


def test_what_extenders_say_is_told_beside_what_filters_say() -> None:
    fake = answering(
        FailedNodes={"a": "no licence", "b": "busy", "elsewhere": "what node is that"},
        FailedAndUnresolvableNodes={"b": "broken"},
    )
    tainted = make_node("d", taints=["x:NoSchedule"])
    bench = Bench(*NODES, tainted, extenders=[(FILTER, fake)])

    attempt = bench.place(make_pod("p"))

    assert attempt.outcome is Outcome.UNSCHEDULABLE
    assert attempt.fit_error == (
        "0/4 nodes are available: 1 broken, 1 no licence, 1 node(s) had untolerated taint(s)."
    )
    assert attempt.unschedulable_plugins == {"Extender", "TaintToleration"}
    assert bench.part_of("p") == "unschedulable"


def test_an_explanation_names_the_extender_that_refused_or_left_out_a_node() -> None:
    first = FakeExtender(filter={"NodeNames": ["b", "c"], "FailedNodes": {"a": "no licence"}})
    second = answering("c")
    bench = Bench(*NODES, extenders=[(FILTER, first), (FILTER, second)], explain=True)

    attempt = bench.place(make_pod("p"))

    told = attempt.explanation.filter
    assert (told["a"].plugin, told["a"].message) == ("Extender http://extender-0", "no licence")
    assert told["b"].plugin == "Extender http://extender-1"
    assert told["c"].is_success


def test_a_pod_refused_by_extenders_waits_for_any_event() -> None:
    fake = answering()
    bench = Bench(*NODES, extenders=[(FILTER, fake)], explain=True)
    attempt = bench.place(make_pod("p"))
    assert attempt.unschedulable_plugins == {"Extender"}
    assert "NodeAll" in attempt.explanation.waits_for["Extender"]
    fake.answers["filter"] = {"NodeNames": ["d"]}

    bench.add(make_node("d"))

    assert bench.advance(10)[-1].node_name == "d"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(DEAD, str(DEAD), id="dead"),
        pytest.param(
            ApiError("x", 503),
            "failed filter with extender at URL http://extender-0/filter, code 503",
            id="not well",
        ),
        pytest.param({"Error": "out of order"}, "out of order", id="says so itself"),
        pytest.param(b"oops", "answer of extender http://extender-0/filter: ", id="nonsense"),
        pytest.param(
            {"NodeNames": ["z"]},
            'extender "http://extender-0" claims a filtered node "z" which is not found in the input '
            "node list",
            id="lies",
        ),
    ],
)
def test_an_extender_that_fails(answer: Any, text: str) -> None:
    fake = FakeExtender(filter=answer)
    bench = Bench(*NODES, extenders=[(FILTER, fake)])

    attempt = bench.place(make_pod("p"))

    assert attempt.outcome is Outcome.ERROR
    assert attempt.status.code is Code.Error
    assert attempt.message.startswith(text)
    assert bench.part_of("p") == "backoff", "it is tried again soon"
    (event,) = bench.events_of("p")
    assert (event.type, event.reason) == ("Warning", "FailedScheduling")
    assert event.note.startswith(text)

    fake.answers["filter"] = {"NodeNames": ["b"]}
    assert [attempt.node_name for attempt in bench.advance(10)] == ["b"]


def test_an_ignorable_extender_that_fails_is_skipped() -> None:
    ignorable = {**FILTER, "ignorable": True}
    bench = Bench(*NODES, extenders=[(ignorable, FakeExtender(filter=DEAD))])

    assert bench.place(make_pod("p")).node_name == "a"


def test_extenders_are_asked_about_pods_that_use_their_resources() -> None:
    config = {**FILTER, "managedResources": [{"name": GPU}]}
    node = make_node("gpu", extended={GPU: 4})
    fake = answering("gpu")
    bench = Bench(*NODES, node, extenders=[(config, fake)])

    bench.place(make_pod("plain"))
    assert fake.asked == []
    assert bench.place(make_pod("with-gpu", requests={GPU: 1})).node_name == "gpu"
    assert fake.verbs() == ["filter"]


def test_resources_that_an_extender_manages_are_not_counted() -> None:
    ignored = {"managedResources": [{"name": GPU, "ignoredByScheduler": True}]}
    fake = answering("b")
    bench = Bench(*NODES, extenders=[({**FILTER, **ignored}, fake)])

    assert bench.place(make_pod("p", requests={GPU: 1})).node_name == "b"
    refused = bench.place(make_pod("other", requests={"example.com/other": 1}))
    assert refused.outcome is Outcome.UNSCHEDULABLE


def test_ignoring_needs_the_plugin_that_counts() -> None:
    ignored = {"managedResources": [{"name": GPU, "ignoredByScheduler": True}]}
    without = {"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}

    with pytest.raises(ConfigError, match="can't find NodeResourcesFitArgs in plugin config"):
        Bench(extenders=[({**FILTER, **ignored}, answering())], profile=without)


def test_the_nominated_node_is_tried_with_the_extenders() -> None:
    fake = answering("b")
    bench = Bench(*NODES, extenders=[(FILTER, fake)])

    attempt = bench.place(make_pod("p", nominated_node_name="b"))

    assert (attempt.node_name, attempt.from_nomination) == ("b", True)
    assert [asked.args["NodeNames"] for asked in fake.asked] == [["b"]]


@pytest.mark.parametrize("first", [{"NodeNames": []}, DEAD])
def test_a_nominated_node_that_extenders_refuse_means_a_full_search(first: Any) -> None:
    answers = [first, {"NodeNames": ["b"]}]
    fake = FakeExtender(filter=lambda args: answers.pop(0))
    bench = Bench(*NODES, extenders=[(FILTER, fake)])

    attempt = bench.place(make_pod("p", nominated_node_name="b"))

    assert (attempt.node_name, attempt.from_nomination) == ("b", False)
    assert [asked.args["NodeNames"] for asked in fake.asked] == [["b"], ["a", "b", "c"]]


# Scores


def prioritizing(**scores: int) -> FakeExtender:
    return FakeExtender(prioritize=[{"Host": name, "Score": s} for name, s in scores.items()])


def test_scores_are_weighted_and_added() -> None:
    weighty = {**SCORE, "weight": 3}
    bench = Bench(
        *NODES,
        extenders=[(SCORE, prioritizing(a=5, b=1, z=9)), (weighty, prioritizing(b=2))],
        explain=True,
    )
    plain = Bench(*NODES, extenders=[], explain=True).place(make_pod("p"))

    attempt = bench.place(make_pod("p"))

    totals = attempt.explanation.totals
    before = plain.explanation.totals
    gained = {name: totals[name] - before[name] for name in totals}
    assert gained == {"a": 50, "b": 10 + 60, "c": 0}
    assert (attempt.node_name, attempt.score) == ("b", totals["b"])
    by_extender = {s.plugin: (s.weight, s.raw) for s in attempt.explanation.scores[-2:]}
    assert by_extender == {
        "http://extender-0": (1, {"a": 5, "b": 1, "c": 0}),
        "http://extender-1": (3, {"a": 0, "b": 2, "c": 0}),
    }


def test_an_extender_that_cannot_score_gives_nothing() -> None:
    bench = Bench(
        *NODES, extenders=[(SCORE, FakeExtender(prioritize=DEAD)), (SCORE, prioritizing(c=1))]
    )

    assert bench.place(make_pod("p")).node_name == "c"


ONLY_BIND = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}


def test_without_score_plugins_extenders_decide_alone() -> None:
    bench = Bench(*NODES, extenders=[(SCORE, prioritizing(b=2, c=1))], profile=ONLY_BIND)

    attempt = bench.place(make_pod("p"))

    assert (attempt.node_name, attempt.score) == ("b", 20)


def places(extenders: list[tuple[dict[str, Any], FakeExtender]], pods: int = 40) -> Counter[str]:
    """Nodes of pods that all nodes suit equally, with the tie break of v1.36."""
    bench = Bench(*NODES, extenders=extenders, profile=ONLY_BIND, ties=FirstFound(seed=1))
    bench.add(*(make_pod(f"p{i}") for i in range(pods)))
    return Counter(attempt.node_name for attempt in bench.run())


def test_equal_nodes_are_chosen_at_random_once_an_extender_scored_them() -> None:
    everywhere = places([(SCORE, prioritizing(a=1, b=1, c=1))])

    assert set(everywhere) == {"a", "b", "c"}
    assert min(everywhere.values()) > 5


def test_of_equal_nodes_those_that_an_extender_named_win() -> None:
    assert set(places([(SCORE, prioritizing(b=0, c=0))])) == {"b", "c"}
    assert set(places([(SCORE, prioritizing(c=0))])) == {"c"}


def test_an_extender_that_only_filters_names_all_nodes() -> None:
    fake = FakeExtender(filter=lambda args: {"NodeNames": args["NodeNames"]})

    assert set(places([(FILTER, fake)])) == {"a", "b", "c"}


def test_one_that_fails_to_score_leaves_the_first_found() -> None:
    chosen = places([(SCORE, FakeExtender(prioritize=DEAD))], pods=3)

    assert chosen == {"a": 3}


def test_whole_nodes_that_come_back_are_scored_without_their_pods() -> None:
    echo = FakeExtender(filter=lambda args: {"Nodes": args["Nodes"]})
    full, empty = make_pod("there", cpu="3", node_name="a"), make_node("b", cpu="3")
    by_node = Bench(make_node("a"), empty, full, extenders=[({"filterVerb": "filter"}, echo)])
    plain = Bench(make_node("a"), empty, full, extenders=[])

    assert plain.place(make_pod("p", cpu="1", memory="4Gi")).node_name == "b"
    assert by_node.place(make_pod("p", cpu="1", memory="4Gi")).node_name == "a"


def test_explanation_of_whole_nodes_adds_up() -> None:
    echo = FakeExtender(filter=lambda args: {"Nodes": args["Nodes"]})
    extenders = [({"filterVerb": "filter"}, echo)]
    bench = Bench(*NODES, make_pod("x", cpu="3", node_name="a"), extenders=extenders, explain=True)

    attempt = bench.place(make_pod("p", cpu="1"))

    assert set(attempt.explanation.totals.values()) == {attempt.score}


# No cost


def test_a_scheduler_without_extenders_has_none() -> None:
    scenario = Scenario(*NODES)

    profile = next(iter(scenario.scheduler.profiles.values()))
    assert profile.handle.extenders is None
    assert scenario.scheduler.extenders is None


def test_the_fake_says_what_it_does_not_know() -> None:
    bench = Bench(*NODES, extenders=[(FILTER, FakeExtender())])

    attempt = bench.place(make_pod("p"))

    assert (
        attempt.message == "failed filter with extender at URL http://extender-0/filter, code 404"
    )
