"""Pods whose specs differ in amounts only: hooks that read amounts are called for each, the others once."""

from collections.abc import Hashable

import pytest

from bayplan.api.pod import Pod, PodSpec
from bayplan.framework import (
    NODE_OBJECT,
    NODE_ROW,
    SKIP,
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Plugin,
    PreFilterPlugin,
    Settled,
    Status,
    unschedulable,
)
from bayplan.table import NodeTable
from bayplan.testing.builders import make_node, make_pod
from tests.rig.scenarios import Scenario

LARGE = 1500


class ByAmount(FilterPlugin):
    """Refuses large pods; its key reads the amount."""

    name = "ByAmount"
    scope = NODE_OBJECT

    def spec_key(self, spec: PodSpec) -> Hashable:
        return spec.requests["cpu"] > LARGE

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unschedulable("large") if pod.requests["cpu"] > LARGE else SUCCESS


class ByAmountOfRows(ByAmount):
    name = "ByAmountOfRows"
    scope = NODE_ROW


class Cautious(ByAmount):
    """Catches errors of its reads."""

    name = "Cautious"

    def spec_key(self, spec: PodSpec) -> Hashable:
        try:
            return spec.requests["cpu"] > LARGE
        except Exception:
            return False


class SettlesSmall(PreFilterPlugin, FilterPlugin):
    """Its `settled` reads the amount."""

    name = "SettlesSmall"
    scope = NODE_OBJECT

    def settled(self, spec: PodSpec) -> Settled:
        return Settled(pre_filter=SUCCESS if spec.requests["cpu"] > LARGE else SKIP)

    def pre_filter(self, state: CycleState, pod: Pod, table: NodeTable) -> Status:
        return SUCCESS if pod.requests["cpu"] > LARGE else SKIP

    def spec_key(self, spec: PodSpec) -> Hashable:
        return ()

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return unschedulable("large")


@pytest.mark.parametrize("plugin", [ByAmount, ByAmountOfRows, Cautious, SettlesSmall])
@pytest.mark.parametrize("first", ["1", "2"], ids=["small first", "large first"])
def test_hooks_that_read_amounts_are_called_for_each_spec(plugin: type[Plugin], first: str) -> None:
    scenario = Scenario(make_node("a", cpu="32"), plugins=[plugin])
    sizes = [first, "2" if first == "1" else "1"]
    scenario.add(*(make_pod(f"of-{size}-{i}", cpu=size) for i, size in enumerate(sizes * 2)))

    scenario.run()

    placed = {attempt.pod.name[:4]: bool(attempt.node_name) for attempt in scenario.ended}
    assert placed == {"of-1": True, "of-2": False}


class Counted(FilterPlugin):
    """Counts the calls of its hook, which reads no amounts."""

    name = "Counted"
    scope = NODE_OBJECT
    calls = 0

    def spec_key(self, spec: PodSpec) -> Hashable:
        type(self).calls += 1
        return spec.host_network

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


def test_other_hooks_are_called_once_for_all_amounts() -> None:
    Counted.calls = 0
    scenario = Scenario(make_node("a", cpu="32"), plugins=[Counted])
    scenario.add(*(make_pod(f"p{i}", cpu=f"{100 + i}m") for i in range(20)))

    scenario.run()

    assert Counted.calls <= 2
