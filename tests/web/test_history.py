"""History: the first state plus all changes equals the current state."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.framework import wait
from bayplan.testing.builders import make_node, make_pod
from bayplan.web.history import TEXTED, History, HistoryState, Moment
from bayplan.web.value_numbers import NONE
from tests.rig.scenarios import Scenario, Scripted


def watched(scenario: Scenario) -> History:
    history = History(scenario.clock)
    history.scheduler = scenario.scheduler
    scenario.cluster.watch(history)
    history.begin()
    return history


def replayed(history: History) -> Moment:
    """The first state with all changes applied."""
    moment, numbering = history.first.copy(), history.numbering
    for number in range(len(moment.state), len(numbering.pod_names)):
        for column, value in (
            (moment.state, 0),
            (moment.node, NONE),
            (moment.text, 0),
            (moment.kind, numbering.pod_names[number][2]),
        ):
            column.append(value)
    while len(moment.row) < len(numbering.nodes):
        moment.row.append(NONE)
    for _, what, which, value in history.events:
        if what == HistoryState.NODE:
            moment.row[numbering.rows.things[which][0]] = which
        elif what == HistoryState.NODE_GONE:
            moment.row[which] = NONE
        elif what == HistoryState.KIND:
            moment.kind[which] = value
        else:
            moment.state[which] = what
            is_text = HistoryState(what) in TEXTED
            moment.text[which] = value if is_text else 0
            moment.node[which] = NONE if is_text else value
    return moment


def states(history: History) -> dict[str, str]:
    names = [name for _, name, _ in history.numbering.pod_names]
    return {name: HistoryState(s).name for name, s in zip(names, history.now.state, strict=True)}


def message(history: History, name: str) -> str:
    names = [name for _, name, _ in history.numbering.pod_names]
    return history.numbering.texts.things[history.now.text[names.index(name)]]


def test_pods_have_their_state_and_node() -> None:
    scenario = Scenario(
        make_node("n", cpu="2"),
        make_pod("runs", node_name="n", cpu="1"),
        make_pod("done", node_name="n", status={"phase": "Succeeded"}),
        make_pod("held", gates=["quota"]),
        make_pod("small", cpu="1"),
        make_pod("huge", cpu="64"),
        make_pod("other", spec={"schedulerName": "elsewhere"}),
    )
    history = watched(scenario)

    scenario.run()
    history.sync()

    assert states(history) == {
        "runs": "RUNNING",
        "done": "FINISHED",
        "held": "GATED",
        "small": "RUNNING",
        "huge": "UNSCHEDULABLE",
        "other": "ACTIVE",
    }
    assert "Insufficient cpu" in message(history, "huge")
    assert "quota" in message(history, "held")
    assert message(history, "other") == ('waits for scheduler "elsewhere", which is not configured')


def test_a_pod_that_backs_off_and_is_ready_again_is_recorded() -> None:
    scenario = Scenario(make_node("n", cpu="2"), make_pod("a", cpu="4"))
    history = watched(scenario)
    scenario.run()
    scenario.cluster.add(make_node("m", cpu="1"))
    scenario.cluster.add(make_node("o", cpu="8"))

    history.sync()
    waits = states(history)
    scenario.clock.advance(10)
    scenario.scheduler.run_timers()
    history.sync()

    assert waits == {"a": "BACKOFF"}
    assert states(history) == {"a": "ACTIVE"}


def test_a_pod_that_waits_on_permit_names_plugin_and_node() -> None:
    scenario = Scenario(make_node("n"), make_pod("a"), plugins=[Scripted])
    scenario.plugin(Scripted).answers["permit"] = (wait(), 30)
    history = watched(scenario)

    scenario.run()
    history.sync()

    assert states(history) == {"a": "HELD"}
    assert message(history, "a") == "waits on Permit: Scripted; n is reserved"


def test_changes_of_pods_and_nodes_are_recorded() -> None:
    scenario = Scenario(make_node("n"), make_pod("a", node_name="n", cpu="1"))
    history = watched(scenario)
    cluster: MemoryCluster = scenario.cluster

    cluster.update(make_pod("a", node_name="n", cpu="1", labels={"app": "web"}))
    cluster.update(make_node("n", unschedulable=True))
    cluster.update(make_node("n", unschedulable=True))
    for gone in (cluster.get("Pod", "default", "a"), cluster.get("Node", "", "n")):
        assert gone is not None
        cluster.delete(gone)

    assert [HistoryState(what).name for _, what, _, _ in history.events] == [
        "KIND",
        "NODE",
        "GONE",
        "NODE_GONE",
    ]


def test_a_pod_recreated_under_its_name_is_a_new_pod() -> None:
    scenario = Scenario(make_node("n"), make_pod("a", node_name="n", uid="1"))
    history = watched(scenario)

    history.on_update(make_pod("a", uid="1"), make_pod("a", uid="2"))

    assert [name for _, name, _ in history.numbering.pod_names] == ["a", "a"]
    assert [HistoryState(state).name for state in history.now.state] == ["GONE", "ACTIVE"]


def test_entries_after_given_offsets() -> None:
    scenario = Scenario(make_node("n"), make_pod("a", node_name="n"))
    history = watched(scenario)
    whole = history.told({})
    known = {
        name: len(whole[name]) for name in ("texts", "resources", "nodes", "kinds", "refusals")
    }
    known |= {"rows": 1, "pods": 1, "events": len(history.events)}

    scenario.cluster.add(make_pod("b", node_name="n", labels={"app": "new"}))
    rest = history.told(known)

    assert rest["pods"]["name"] == ("b",)
    assert rest["texts"] == ["app", "new"]
    assert rest["nodes"] == []
    assert rest["events"]["which"] == (1,)
    assert history.told({})["pods"]["name"] == ("a", "b")


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "relabel", "node", "cordon", "drop", "wait", "run"]),
        st.integers(0, 5),
    ),
    max_size=40,
)


def act(scenario: Scenario, what: str, which: int) -> None:
    cluster = scenario.cluster
    pod = cluster.get("Pod", "default", f"p{which}")
    node = cluster.get("Node", "", f"n{which}")
    match what:
        case "add" if pod is None:
            cluster.add(
                make_pod(f"p{which}", uid=f"{which}-{scenario.clock.now()}", cpu=str(which))
            )
        case "remove" if pod is not None:
            cluster.delete(pod)
        case "relabel" if pod is not None:
            cluster.update(pod.replace(labels={"app": f"{len(pod.labels)}"}))
        case "node" if node is None:
            cluster.add(make_node(f"n{which}", cpu=str(which)))
        case "cordon" if node is not None:
            cluster.update(node.replace(unschedulable=not node.unschedulable))
        case "drop" if node is not None:
            cluster.delete(node)
        case "wait":
            scenario.clock.advance(1)
            scenario.scheduler.run_timers()
        case "run":
            scenario.run()


@given(before=ACTIONS, after=ACTIONS)
def test_the_changes_give_the_current_state(before: list[Any], after: list[Any]) -> None:
    scenario = Scenario(make_node("first"))
    for what, which in before:
        act(scenario, what, which)
    history = watched(scenario)
    for what, which in after:
        act(scenario, what, which)
        history.moment_ends()

    assert replayed(history) == history.now
    running = [pod for pod in scenario.cluster.list("Pod") if pod.node_name]
    assert sum(state == HistoryState.RUNNING for state in history.now.state) == len(running)


@pytest.mark.parametrize("limit", [0, 10**9])
def test_the_end_is_correct_beyond_the_limit_of_queue_look_ups(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayplan.web.history.MOST_LOOKUPS", limit)
    scenario = Scenario(make_node("n", cpu="1"), make_pod("huge", cpu="2"))
    history = watched(scenario)
    scenario.run()

    history.moment_ends()
    history.sync()

    assert states(history) == {"huge": "UNSCHEDULABLE"}
