import pytest

from bayplan.config.defaults import DEFAULT_PLUGINS, default_config, merge_plugin_set
from bayplan.config.load import parse_config
from bayplan.config.plugin_args import (
    ARGS_TYPES,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from bayplan.config.types import PluginRef, PluginSet

V1 = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def refs(*names: str) -> tuple[PluginRef, ...]:
    """Plugin references from `name` or `name=weight`."""
    pairs = (name.partition("=") for name in names)
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def test_default_plugins_are_those_of_1_36_in_order() -> None:
    assert DEFAULT_PLUGINS.multi_point.enabled == refs(
        "SchedulingGates",
        "PrioritySort",
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration=3",
        "NodeAffinity=2",
        "NodePorts",
        "NodeResourcesFit=1",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread=2",
        "InterPodAffinity=2",
        "DynamicResources=2",
        "DefaultPreemption",
        "NodeResourcesBalancedAllocation=1",
        "ImageLocality=1",
        "DefaultBinder",
        "NodeDeclaredFeatures",
    )


def test_default_config_has_one_profile_with_all_arguments() -> None:
    config = default_config()

    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]
    assert dict(config.profiles[0].plugin_config) == {
        name: ARGS_TYPES[name]() for name in ARGS_TYPES
    }
    assert (config.parallelism, config.pod_initial_backoff_s, config.pod_max_backoff_s) == (
        16,
        1,
        10,
    )


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="no configuration"),
        pytest.param(V1, id="only kind and version"),
        pytest.param({**V1, "profiles": []}, id="no profiles"),
        pytest.param({**V1, "profiles": [{}]}, id="an empty profile"),
        pytest.param({**V1, "profiles": [{"plugins": None}], "parallelism": None}, id="nulls"),
        pytest.param(
            {**V1, "leaderElection": {"leaseDuration": "0s"}, "clientConnection": {"burst": 0}},
            id="zeros of leader election and client connection",
        ),
    ],
)
def test_unset_fields_have_their_default(data: dict[str, object] | None) -> None:
    assert parse_config(data) == default_config()


@pytest.mark.parametrize(
    ("custom", "enabled"),
    [
        pytest.param(PluginSet(), ("a=1", "b=2", "c"), id="an empty set keeps the defaults"),
        pytest.param(
            PluginSet(refs("b=7")),
            ("a=1", "b=7", "c"),
            id="a default enabled again keeps its place and takes the weight",
        ),
        pytest.param(
            PluginSet(refs("b")),
            ("a=1", "b", "c"),
            id="a default enabled again without weight loses its weight",
        ),
        pytest.param(
            PluginSet(refs("x", "y")), ("a=1", "b=2", "c", "x", "y"), id="others are appended"
        ),
        pytest.param(PluginSet(disabled=("b",)), ("a=1", "c"), id="a disabled default is removed"),
        pytest.param(
            PluginSet(refs("x", "b=5"), ("b",)),
            ("a=1", "c", "x", "b=5"),
            id="disabled and enabled moves to the end",
        ),
        pytest.param(
            PluginSet(refs("c", "x"), ("*",)), ("c", "x"), id="star leaves only what is enabled"
        ),
        pytest.param(
            PluginSet(refs("b=5", "b=6")),
            ("a=1", "b=6", "c", "b=5"),
            id="of two entries the last replaces the default and the other stays",
        ),
        pytest.param(PluginSet(disabled=("x",)), ("a=1", "b=2", "c"), id="unknown disabled name"),
    ],
)
def test_merge_plugin_set(custom: PluginSet, enabled: tuple[str, ...]) -> None:
    merged = merge_plugin_set(PluginSet(refs("a=1", "b=2", "c")), custom)

    assert merged == PluginSet(refs(*enabled), custom.disabled)


def test_merge_keeps_what_the_defaults_disable() -> None:
    default = PluginSet(refs("a", "b"), disabled=("b",))

    assert merge_plugin_set(default, PluginSet(disabled=("x",))) == PluginSet(refs("a"), ("x", "b"))


def test_default_arguments_follow_the_given_ones_by_name() -> None:
    plugins = {
        "multiPoint": {"disabled": [{"name": "*"}]},
        "filter": {"enabled": [{"name": "VolumeBinding"}, {"name": "NodeAffinity"}]},
        "score": {"enabled": [{"name": "ImageLocality"}]},
    }
    plugin_config = [{"name": "PodTopologySpread"}, {"name": "NodeAffinity", "args": {}}]

    config = parse_config({**V1, "profiles": [{"plugins": plugins, "pluginConfig": plugin_config}]})

    names = list(config.profiles[0].plugin_config)
    assert names == ["PodTopologySpread", "NodeAffinity", "VolumeBinding"]


CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param(None, ScoringStrategy("LeastAllocated", CPU_AND_MEMORY), id="none"),
        pytest.param(
            {"type": "MostAllocated"},
            ScoringStrategy("MostAllocated", CPU_AND_MEMORY),
            id="no resources",
        ),
        pytest.param(
            {"type": "MostAllocated", "resources": [{"name": "cpu"}, {"name": "a/b", "weight": 3}]},
            ScoringStrategy("MostAllocated", (ResourceSpec("cpu", 1), ResourceSpec("a/b", 3))),
            id="a weight that is not set",
        ),
    ],
)
def test_scoring_strategy_is_filled_in(strategy: object, expected: ScoringStrategy) -> None:
    entry = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}

    config = parse_config({**V1, "profiles": [{"pluginConfig": [entry]}]})

    args = config.profiles[0].plugin_config["NodeResourcesFit"]
    assert args == NodeResourcesFitArgs(scoring_strategy=expected)


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        pytest.param("NodeResourcesBalancedAllocation", {"resources": []}, id="no resources"),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 0}, {"name": "memory"}]},
            id="no weights",
        ),
        pytest.param("PodTopologySpread", {"defaultingType": ""}, id="an empty defaulting type"),
        pytest.param("VolumeBinding", {"bindTimeoutSeconds": None}, id="a null"),
        pytest.param("InterPodAffinity", None, id="no arguments at all"),
    ],
)
def test_empty_arguments_become_the_defaults(plugin: str, args: object) -> None:
    entry = {"name": plugin, "args": args}

    config = parse_config({**V1, "profiles": [{"pluginConfig": [entry]}]})

    assert config.profiles[0].plugin_config[plugin] == ARGS_TYPES[plugin]()


def test_only_a_single_profile_gets_a_default_name() -> None:
    config = parse_config({**V1, "profiles": [{"percentageOfNodesToScore": 5}]})

    assert config.profiles[0].scheduler_name == "default-scheduler"


@pytest.mark.parametrize(
    ("overall", "own", "expected"),
    [
        pytest.param(None, None, None, id="not set: all nodes are judged"),
        pytest.param(0, None, 0, id="an explicit 0 is kept"),
        pytest.param(30, None, 30, id="the profile takes that of the configuration"),
        pytest.param(30, 70, 70, id="the profile's own takes precedence"),
        pytest.param(30, 0, 0, id="the profile's own 0 takes precedence"),
    ],
)
def test_percentage_of_nodes_to_score(
    overall: int | None, own: int | None, expected: int | None
) -> None:
    config = parse_config(
        {
            **V1,
            "percentageOfNodesToScore": overall,
            "profiles": [{"percentageOfNodesToScore": own}],
        }
    )

    assert config.percentage_for(config.profiles[0]) == expected


def test_contention_profiling_follows_profiling() -> None:
    assert parse_config({**V1}).enable_contention_profiling is True
    assert parse_config({**V1, "enableProfiling": False}).enable_contention_profiling is False
