from collections.abc import Sequence

from bayplan.api.pod import Pod
from bayplan.framework import (
    SUCCESS,
    ActionType,
    CycleState,
    EventWithHint,
    FilterPlugin,
    NodeInfo,
    Plugin,
    ScorePlugin,
    Status,
    wait_for,
)
from bayplan.framework.events import NODE, POD, Hint, default_events
from bayplan.framework.registration import declared_events, registered_events
from bayplan.releases.feature_gates import FeatureGates
from bayplan.testing.builders import make_handle


class Listening(FilterPlugin):
    """Waits for the event of the test."""

    name = "Listening"

    def __init__(self, *events: EventWithHint) -> None:
        self.listed = events

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS

    def events_to_register(self) -> Sequence[EventWithHint]:
        return self.listed


class Silent(FilterPlugin):
    name = "Silent"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


class Scoring(ScorePlugin):
    name = "Scoring"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 0

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (wait_for(NODE, ActionType.Add),)


def skip(pod: Pod, old: object, new: object) -> Hint:
    return Hint.SKIP


def texts(plugin: Plugin) -> list[str]:
    return [str(registered.event) for registered in registered_events(plugin)]


def test_waiting_for_new_nodes_brings_changes_of_taints_without_a_hint() -> None:
    plugin = Listening(wait_for(NODE, ActionType.Add | ActionType.UpdateNodeLabel, skip))

    registered = registered_events(plugin)

    assert [e.hint for e in registered] == [skip, None]
    assert texts(plugin) == ["NodeAdd|UpdateNodeLabel", "NodeUpdateNodeTaint"]


def test_changes_of_taints_are_not_added_twice() -> None:
    together = Listening(wait_for(NODE, ActionType.Add | ActionType.UpdateNodeTaint))
    apart = Listening(wait_for(NODE, ActionType.Add), wait_for(NODE, ActionType.UpdateNodeTaint))

    assert texts(together) == ["NodeAdd|UpdateNodeTaint"]
    assert texts(apart) == ["NodeAdd", "NodeUpdateNodeTaint"]


def test_taints_mean_nothing_to_who_does_not_wait_for_new_nodes() -> None:
    plugin = Listening(wait_for(NODE, ActionType.UpdateNodeLabel), wait_for(POD, ActionType.Add))

    assert texts(plugin) == ["NodeUpdateNodeLabel", "PodAdd"]


def test_plugin_that_waits_for_nothing_is_registered_for_nothing() -> None:
    assert registered_events(Listening()) == ()


def test_plugin_that_says_nothing_waits_for_everything() -> None:
    assert registered_events(Silent()) == default_events()


def test_pod_groups_are_part_of_everything_when_the_gate_is_on() -> None:
    gates = {"GenericWorkload": True}
    plugin = Silent.from_args(None, make_handle(feature_gates=gates))

    assert registered_events(plugin) == default_events(FeatureGates(gates))
    assert declared_events(plugin) != default_events()


def test_plugin_that_cannot_refuse_a_pod_is_not_asked() -> None:
    assert registered_events(Scoring()) == ()
