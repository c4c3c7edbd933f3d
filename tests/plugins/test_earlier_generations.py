"""The plugins of earlier generations: known, off unless configured, and working side by side."""

from typing import Any

import pytest

from bayplan.config.defaults import DEFAULT_PLUGINS
from bayplan.plugins.in_tree import IN_TREE
from bayplan.scheduler import Outcome
from bayplan.testing.builders import make_node, make_object, make_pod
from tests.rig.scenarios import Scenario

EARLIER = (
    "NodeLabel",
    "NodePreferAvoidPods",
    "NodeResourcesLeastAllocated",
    "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio",
    "SelectorSpread",
    "ServiceAffinity",
)


def profile(*names: str, **args: Any) -> dict[str, Any]:
    """The default profile and these plugins, with arguments as a file has them."""
    enabled = [{"name": name} for name in names]
    config = [{"name": name, "args": given} for name, given in args.items()]
    return {"plugins": {"multiPoint": {"enabled": enabled}}, "pluginConfig": config}


def test_they_are_registered_and_off() -> None:
    assert set(EARLIER) <= {plugin.name for plugin in IN_TREE}
    assert not set(EARLIER) & DEFAULT_PLUGINS.names()


SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
APP = {"app": "web"}
SERVICE = make_object("Service", "web", namespace="default", spec={"selector": APP})


def test_all_of_them_together() -> None:
    scenario = Scenario(
        SERVICE,
        make_node("a", zone="x", labels={"region": "r", "disk": "ssd"}),
        make_node("b", zone="y", labels={"region": "r", "disk": "hdd"}),
        make_node("c", zone="y", labels={"region": "s"}),
        profile=profile(
            *EARLIER,
            NodeLabel={"presentLabels": ["disk"]},
            RequestedToCapacityRatio={"shape": SHAPE},
            ServiceAffinity={"affinityLabels": ["region"]},
        ),
        explain=True,
    )
    scenario.add(*(make_pod(f"p{i}", labels=APP, cpu="500m") for i in range(6)))

    attempts = scenario.run()

    assert {attempt.outcome for attempt in attempts} == {Outcome.BOUND}
    assert {attempt.node_name for attempt in attempts} == {"a", "b"}
    assert attempts[-1].explanation is not None
    assert set(EARLIER) <= {score.plugin for score in attempts[-1].explanation.scores}


@pytest.mark.parametrize(
    ("name", "packs"),
    [
        pytest.param("NodeResourcesLeastAllocated", False, id="least"),
        pytest.param("NodeResourcesMostAllocated", True, id="most"),
        pytest.param("RequestedToCapacityRatio", True, id="ratio, rising"),
    ],
)
def test_scores_follow_the_pods_as_they_come(name: str, packs: bool) -> None:
    args = {"RequestedToCapacityRatio": {"shape": SHAPE}} if name.startswith("Req") else {}
    only = profile(name, **args)
    only["plugins"]["score"] = {"disabled": [{"name": "*"}], "enabled": [{"name": name}]}
    scenario = Scenario(make_node("a"), make_node("b"), profile=only)
    scenario.add(*(make_pod(f"p{i}", cpu="1", memory="1Gi") for i in range(4)))

    placed = [attempt.node_name for attempt in scenario.run()]

    assert placed == (["a"] * 4 if packs else ["a", "b"] * 2)
