"""A profile's plugins: made once, in order, with weights; errors name the plugin."""

from typing import Any

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.config.defaults import default_config
from bayplan.config.load import parse_config
from bayplan.config.types import PluginRef, Plugins, PluginSet, Profile
from bayplan.errors import ConfigError, InputError
from bayplan.framework import (
    SUCCESS,
    CycleState,
    Handle,
    PreEnqueuePlugin,
    ScorePlugin,
    Status,
    unschedulable,
)
from bayplan.plugins.in_tree import IN_TREE
from bayplan.runtime import ProfileRuntime, Registry
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table

pytestmark = pytest.mark.usefixtures("plugins_are_in_tree")


class Flat(ScorePlugin):
    """Gives every node the same."""

    name = "Flat"

    def __init__(self, points: int = 7) -> None:
        self.points = points

    def score_rows(self, state: CycleState, pod: Pod, table: Any, rows: Any) -> Any:
        return np.full(table.count(rows), self.points, dtype=np.int64)


class Taller(Flat):
    name = "Taller"


class BadArgs(Flat):
    name = "BadArgs"

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> "BadArgs":
        raise InputError("points: expected a number; got none")


class Gate(PreEnqueuePlugin):
    name = "Gate"

    def pre_enqueue(self, pod: Pod) -> Status:
        if pod.name == "odd":
            raise RuntimeError("boom")
        return unschedulable("closed") if pod.name == "closed" else SUCCESS


BASE = ("PrioritySort", "DefaultBinder")


def make_runtime(
    *names: str, args: dict[str, Any] | None = None, **points: PluginSet
) -> ProfileRuntime:
    everywhere = PluginSet(tuple(PluginRef(name) for name in (*BASE, *names)))
    plugins = Plugins(multi_point=everywhere, **points)
    registry = Registry([*IN_TREE, Flat, Taller, BadArgs, Gate])
    return ProfileRuntime(
        Profile(plugins=plugins, plugin_config=args or {}), registry, make_handle()
    )


def scores_of(runtime: ProfileRuntime) -> list[int]:
    table = make_table(make_node("a"))
    found: list[int] = runtime.scoring.run_scores(CycleState(), make_pod(), table, ALL).tolist()
    return found


def test_default_profile_runs_in_the_order_of_kube_scheduler() -> None:
    (profile,) = default_config().profiles
    runtime = ProfileRuntime(profile, Registry(IN_TREE), make_handle())

    assert [plugin.name for plugin in runtime.filtering.filters][:5] == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
    ]
    weights = {plugin.name: weight for plugin, weight in runtime.scoring.scores}
    assert weights["TaintToleration"] == 3
    assert (weights["NodeAffinity"], weights["PodTopologySpread"]) == (2, 2)
    assert (weights["InterPodAffinity"], weights["ImageLocality"]) == (2, 1)
    assert runtime.queue_sort.name == "PrioritySort"
    assert [plugin.name for plugin in runtime.committing.binds] == ["DefaultBinder"]


def test_a_plugin_is_made_once_and_serves_all_its_points() -> None:
    runtime = make_runtime("NodeAffinity")

    made = runtime.plugins["NodeAffinity"]
    assert [plugin is made for plugin in runtime.filtering.filters] == [True]
    assert [plugin is made for plugin, _ in runtime.scoring.scores] == [True]


def test_only_enabled_plugins_are_made() -> None:
    assert set(make_runtime("Flat").plugins) == {"Flat", *BASE}


def test_order_and_weights_follow_the_configuration() -> None:
    score = PluginSet((PluginRef("Taller", 10), PluginRef("Flat", 0)))

    runtime = make_runtime("Flat", score=score)

    order = [(plugin.name, weight) for plugin, weight in runtime.scoring.scores]
    assert order == [("Flat", 1), ("Taller", 10)], "overridden first, then those listed here alone"
    assert scores_of(runtime) == [7 + 70]


def test_args_become_keyword_arguments() -> None:
    assert scores_of(make_runtime("Flat", args={"Flat": {"points": 9}})) == [9]


@pytest.mark.parametrize(
    ("names", "args", "text"),
    [
        pytest.param(
            ["BadArgs"],
            {},
            'initializing plugin "BadArgs": points: expected a number; got none',
            id="the plugin says what is wrong",
        ),
        pytest.param(
            ["Flat"],
            {"Flat": {"height": 3}},
            'initializing plugin "Flat": tests/runtime/test_profile.py:',
            id="an argument the class does not take",
        ),
        pytest.param(["Unknown"], {}, '"Unknown" does not exist', id="no such plugin"),
    ],
)
def test_errors_name_the_plugin(names: list[str], args: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        make_runtime(*names, args=args)

    assert text in str(refusal.value)


def test_bad_args_of_an_in_tree_plugin_are_named_when_the_file_is_read() -> None:
    args = {"scoringStrategy": {"type": "LeastRequested"}}
    plugin_config = [{"name": "NodeResourcesFit", "args": args}]
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": plugin_config}],
    }

    with pytest.raises(ConfigError, match=r"pluginConfig\[0\]\.args\.scoringStrategy\.type"):
        parse_config(tree, "scheduler.yaml")


def test_the_handle_has_the_filters() -> None:
    runtime = make_runtime("NodeName")

    assert runtime.handle.filters is runtime.filtering
    assert runtime.plugins["NodeName"].handle is runtime.handle


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("fine", "", id="let in"),
        pytest.param("closed", "closed", id="held back"),
        pytest.param(
            "odd", 'running PreEnqueue plugin "Gate": boom', id="an error holds back, too"
        ),
    ],
)
def test_pre_enqueue(name: str, message: str) -> None:
    status = make_runtime("Gate").run_pre_enqueue(make_pod(name))

    assert status.message == message
    assert status.plugin == ("Gate" if message else "")
