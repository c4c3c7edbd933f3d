"""Generations: the default plugins, fields and merge rules of each version."""

from typing import Any

import pytest

from bayplan.config.generations import V1, V1BETA1, V1BETA2, V1BETA3
from bayplan.config.legacy.policy import PROVIDERS, provider_reading
from bayplan.config.load import parse_config, parse_reading
from bayplan.config.plugin_args import DefaultPreemptionArgs, NodeLabelArgs, PodTopologySpreadArgs
from bayplan.config.types import POINT_NAMES, PluginRef, Plugins
from bayplan.errors import ConfigError
from bayplan.releases.feature_gates import gates_of
from bayplan.releases.gate_effects import EFFECTS
from bayplan.releases.release import DEFAULT_RELEASE

GROUP = "kubescheduler.config.k8s.io"
OLDER = ("v1beta1", "v1beta2", "v1beta3")

# The tables of v1.20, v1.22, v1.23 and v1.36, as they were published.
FILTERS = (
    "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits VolumeBinding "
    "VolumeZone PodTopologySpread InterPodAffinity"
)
SINGLE = {
    "queueSort": "PrioritySort",
    "filter": FILTERS,
    "postFilter": "DefaultPreemption",
    "reserve": "VolumeBinding",
    "preBind": "VolumeBinding",
    "bind": "DefaultBinder",
}
PROVIDER_OF_20 = {
    **SINGLE,
    "preFilter": "NodeResourcesFit NodePorts PodTopologySpread InterPodAffinity VolumeBinding",
    "preScore": "InterPodAffinity PodTopologySpread TaintToleration",
    "score": (
        "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 "
        "NodeResourcesLeastAllocated=1 NodeAffinity=1 NodePreferAvoidPods=10000 "
        "PodTopologySpread=2 TaintToleration=1"
    ),
}
AUTOSCALER_OF_20 = {
    **PROVIDER_OF_20,
    "score": PROVIDER_OF_20["score"].replace("LeastAllocated", "MostAllocated"),
}
BETA1_OF_22 = {
    **PROVIDER_OF_20,
    "preFilter": (
        "NodeResourcesFit NodePorts VolumeRestrictions PodTopologySpread InterPodAffinity "
        "VolumeBinding NodeAffinity"
    ),
    "preScore": "InterPodAffinity PodTopologySpread TaintToleration NodeAffinity",
}
BETA2_OF_23 = {
    **BETA1_OF_22,
    "score": (
        "NodeResourcesBalancedAllocation=1 ImageLocality=1 InterPodAffinity=1 NodeResourcesFit=1 "
        "NodeAffinity=1 PodTopologySpread=2 TaintToleration=1"
    ),
}
BETA3_OF_23 = {
    "multiPoint": (
        "PrioritySort NodeUnschedulable NodeName TaintToleration=3 NodeAffinity=2 NodePorts "
        "NodeResourcesFit=1 VolumeRestrictions EBSLimits GCEPDLimits NodeVolumeLimits "
        "AzureDiskLimits VolumeBinding VolumeZone PodTopologySpread=2 InterPodAffinity=2 "
        "DefaultPreemption NodeResourcesBalancedAllocation=1 ImageLocality=1 DefaultBinder"
    )
}
CURRENT_OF_36 = {
    "multiPoint": (
        "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration=3 NodeAffinity=2 "
        "NodePorts NodeResourcesFit=1 VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
        "PodTopologySpread=2 InterPodAffinity=2 DynamicResources=2 DefaultPreemption "
        "NodeResourcesBalancedAllocation=1 ImageLocality=1 DefaultBinder NodeDeclaredFeatures"
    )
}


def head(version: str) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration"}


def written(plugins: Plugins) -> dict[str, str]:
    """The enabled plugins of each point as `name` or `name=weight`, points without any left out."""
    points = {**POINT_NAMES, "multi_point": "multiPoint"}
    texts = {
        name: " ".join(
            f"{ref.name}={ref.weight}" if ref.weight else ref.name
            for ref in plugins.at(point).enabled
        )
        for point, name in points.items()
    }
    return {name: text for name, text in texts.items() if text}


def plugins_of(version: str, plugins: dict[str, Any] | None = None, **gates: bool) -> Plugins:
    data = {**head(version), "profiles": [{"plugins": plugins or {}}]}
    return parse_config(data, feature_gates=gates).profiles[0].plugins


@pytest.mark.parametrize(
    ("plugins", "table"),
    [
        pytest.param(PROVIDERS["DefaultProvider"], PROVIDER_OF_20, id="DefaultProvider of v1.20"),
        pytest.param(
            PROVIDERS["ClusterAutoscalerProvider"],
            AUTOSCALER_OF_20,
            id="ClusterAutoscalerProvider of v1.20",
        ),
        pytest.param(V1BETA1.plugins, BETA1_OF_22, id="v1beta1"),
        pytest.param(V1BETA2.plugins, BETA2_OF_23, id="v1beta2"),
        pytest.param(V1BETA3.plugins, BETA3_OF_23, id="v1beta3 of v1.23"),
        pytest.param(V1.plugins, CURRENT_OF_36, id="v1 of v1.36"),
    ],
)
def test_the_default_plugins_of_a_generation(plugins: Plugins, table: dict[str, str]) -> None:
    assert written(plugins) == table


@pytest.mark.parametrize(
    ("version", "table"),
    [
        pytest.param("v1beta1", BETA1_OF_22, id="v1beta1"),
        pytest.param("v1beta2", BETA2_OF_23, id="v1beta2"),
        pytest.param("v1beta3", BETA3_OF_23, id="v1beta3"),
        pytest.param("v1", CURRENT_OF_36, id="v1"),
    ],
)
@pytest.mark.parametrize(
    "profiles", [pytest.param({}, id="no profile"), pytest.param({"profiles": [{}]}, id="empty")]
)
def test_an_empty_file_has_them(
    version: str, table: dict[str, str], profiles: dict[str, Any]
) -> None:
    config = parse_config({**head(version), **profiles})

    assert written(config.profiles[0].plugins) == table
    assert config.profiles[0].scheduler_name == "default-scheduler"


def test_a_provider_adds_the_pre_filter_that_volume_restrictions_needs_now() -> None:
    plugins = provider_reading("DefaultProvider").config.profiles[0].plugins

    added = f"{PROVIDER_OF_20['preFilter']} VolumeRestrictions"
    assert written(plugins) == {**PROVIDER_OF_20, "preFilter": added}


def test_an_unknown_provider_is_reported() -> None:
    with pytest.raises(ConfigError) as caught:
        provider_reading("Best")

    assert str(caught.value) == (
        'algorithm provider: expected DefaultProvider or ClusterAutoscalerProvider; got "Best"'
    )


@pytest.mark.parametrize("version", OLDER)
def test_selector_spread_is_enabled_without_default_spreading(version: str) -> None:
    plugins = plugins_of(version, DefaultPodTopologySpread=False)

    points = {"multiPoint"} if version == "v1beta3" else {"preScore", "score"}
    have = {name for name, text in written(plugins).items() if "SelectorSpread" in text}
    assert have == points
    weighed = plugins.multi_point if version == "v1beta3" else plugins.score
    assert weighed.enabled[-1] == PluginRef("SelectorSpread", 1)


def test_the_current_version_ignores_that_gate() -> None:
    assert plugins_of("v1", DefaultPodTopologySpread=False) == plugins_of("v1")


WITHOUT_DECLARED_FEATURES = {
    "NodeDeclaredFeatures": False,
    "ExtendWebSocketsToKubelet": False,
    "InPlacePodLevelResourcesVerticalScaling": False,
    "InPlacePodVerticalScalingInitContainers": False,
    "RestartAllContainersOnContainerExits": False,
    "UserNamespacesHostNetworkSupport": False,
}
MISSING = {
    name: False
    for name, effect in EFFECTS.items()
    if effect.missing and name in gates_of(DEFAULT_RELEASE)
}


@pytest.mark.parametrize(
    ("gates", "last"),
    [
        pytest.param({}, "NodeDeclaredFeatures", id="as it is"),
        pytest.param(WITHOUT_DECLARED_FEATURES, "DefaultBinder", id="without the feature"),
        pytest.param(
            {"GenericWorkload": True, "GangScheduling": True}, "GangScheduling", id="with gangs"
        ),
        pytest.param({"AllAlpha": True, **MISSING}, "PodGroupPodsCount", id="with all alpha gates"),
        pytest.param({"AllBeta": False}, "DefaultBinder", id="without all beta gates"),
        pytest.param(
            {"AllAlpha": True, **MISSING, "TopologyAwareWorkloadScheduling": False},
            "GangScheduling",
            id="one gate takes precedence over AllAlpha",
        ),
    ],
)
def test_gates_change_the_default_plugins(gates: dict[str, bool], last: str) -> None:
    assert plugins_of("v1", None, **gates).multi_point.enabled[-1].name == last


@pytest.mark.parametrize(
    ("version", "point", "custom", "expected"),
    [
        pytest.param(
            "v1beta1",
            "preScore",
            {"enabled": [{"name": "X"}]},
            "InterPodAffinity PodTopologySpread TaintToleration NodeAffinity X",
            id="v1beta1 appends",
        ),
        pytest.param(
            "v1beta1",
            "preScore",
            {"disabled": [{"name": "*"}], "enabled": [{"name": "X"}]},
            "X",
            id="v1beta1 without any default",
        ),
        pytest.param(
            "v1beta1",
            "preScore",
            {"disabled": [{"name": "TaintToleration"}]},
            "InterPodAffinity PodTopologySpread NodeAffinity",
            id="v1beta1 without one default",
        ),
        pytest.param(
            "v1beta1",
            "preScore",
            {"enabled": [{"name": "InterPodAffinity"}]},
            "InterPodAffinity PodTopologySpread TaintToleration NodeAffinity InterPodAffinity",
            id="v1beta1 has it twice",
        ),
        pytest.param(
            "v1beta2",
            "preScore",
            {"enabled": [{"name": "InterPodAffinity", "weight": 5}]},
            "InterPodAffinity=5 PodTopologySpread TaintToleration NodeAffinity",
            id="v1beta2 replaces in place",
        ),
        pytest.param(
            "v1beta2",
            "preScore",
            {"disabled": [{"name": "InterPodAffinity"}], "enabled": [{"name": "InterPodAffinity"}]},
            "PodTopologySpread TaintToleration NodeAffinity InterPodAffinity",
            id="v1beta2 moves to the end",
        ),
    ],
)
def test_merging(version: str, point: str, custom: dict[str, Any], expected: str) -> None:
    assert written(plugins_of(version, {point: custom}))[point] == expected


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("field", ["healthzBindAddress", "metricsBindAddress"])
def test_the_addresses_of_the_insecure_port_are_noted(version: str, field: str) -> None:
    reading = parse_reading({**head(version), field: "0.0.0.0:10251"})

    assert [note.partition(":")[0] for note in reading.notes] == [field]
    assert reading.api_version == f"{GROUP}/{version}"


UNKNOWN = [
    pytest.param("v1", {"healthzBindAddress": ""}, "healthzBindAddress", id="v1: addresses"),
    *(
        pytest.param(version, {"delayCacheUntilActive": True}, "delayCacheUntilActive", id=version)
        for version in OLDER
    ),
    *(
        pytest.param(
            version,
            {"profiles": [{"percentageOfNodesToScore": 5}]},
            "profiles[0].percentageOfNodesToScore",
            id=f"{version}: a percentage of its own",
        )
        for version in OLDER
    ),
    *(
        pytest.param(
            version,
            {"profiles": [{"plugins": {point: {}}}]},
            f"profiles[0].plugins.{point}",
            id=f"{version}: {point}",
        )
        for version, points in (
            ("v1beta1", ("multiPoint", "preEnqueue", "placementScore", "placementGenerate")),
            ("v1beta2", ("placementScore",)),
            ("v1beta3", ("placementScore",)),
            ("v1", ("unreserve",)),
        )
        for point in points
    ),
]


@pytest.mark.parametrize(("version", "data", "path"), UNKNOWN)
def test_fields_a_version_does_not_have(version: str, data: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError, match="got an unknown field") as caught:
        parse_config({**head(version), **data}, "f")

    assert str(caught.value).startswith(f"f: {path}: expected ")


REMOVED = {
    "v1beta2": ("NodeLabel", "ServiceAffinity", "NodePreferAvoidPods", "RequestedToCapacityRatio"),
    "v1beta3": ("NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"),
    "v1": ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"),
}


@pytest.mark.parametrize(
    ("version", "plugin"), [(version, name) for version in REMOVED for name in REMOVED[version]]
)
def test_plugins_a_version_rejects(version: str, plugin: str) -> None:
    data = {**head(version), "profiles": [{"plugins": {"score": {"enabled": [{"name": plugin}]}}}]}

    with pytest.raises(ConfigError, match="expected a plugin that still exists") as caught:
        parse_config(data)

    assert f'got "{plugin}"' in str(caught.value)


@pytest.mark.parametrize("plugin", [*REMOVED["v1beta2"], *REMOVED["v1beta3"], *REMOVED["v1"]])
def test_the_first_version_rejects_none(plugin: str) -> None:
    enabled = {"score": {"enabled": [{"name": plugin}]}}
    args = {"shape": [{"utilization": 0, "score": 0}]} if plugin.endswith("Ratio") else {}
    profile = {"plugins": enabled, "pluginConfig": [{"name": plugin, "args": args}]}

    config = parse_config({**head("v1beta1"), "profiles": [profile]})

    assert plugin in config.profiles[0].plugins.names()


@pytest.mark.parametrize(
    ("version", "args", "gates", "expected"),
    [
        pytest.param("v1beta1", {}, {}, "System", id="v1beta1 without constraints"),
        pytest.param("v1beta1", {"defaultConstraints": True}, {}, "List", id="v1beta1 guesses"),
        pytest.param(
            "v1beta1",
            {"defaultingType": "List"},
            {},
            "List",
            id="an explicit value takes precedence",
        ),
        pytest.param(
            "v1beta1", {}, {"DefaultPodTopologySpread": False}, "List", id="v1beta1, gate off"
        ),
        pytest.param(
            "v1beta2", {}, {"DefaultPodTopologySpread": False}, "List", id="v1beta2, gate off"
        ),
        pytest.param("v1beta2", {}, {}, "System", id="v1beta2"),
        pytest.param("v1beta3", {}, {}, "System", id="v1beta3"),
        pytest.param("v1", {}, {"DefaultPodTopologySpread": False}, "System", id="v1, gate off"),
    ],
)
@pytest.mark.parametrize("is_listed", [True, False])
def test_the_defaulting_of_spread_constraints(
    version: str, args: dict[str, Any], gates: dict[str, bool], expected: str, is_listed: bool
) -> None:
    if "defaultConstraints" in args:
        constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}
        args = {"defaultConstraints": [constraint]}
    elif args and not is_listed:
        return
    entries = [{"name": "PodTopologySpread", "args": args}] if is_listed or args else []
    data = {**head(version), "profiles": [{"pluginConfig": entries}]}

    config = parse_config(data, feature_gates=gates)

    found = config.profiles[0].plugin_config["PodTopologySpread"]
    assert isinstance(found, PodTopologySpreadArgs)
    assert found.defaulting_type == expected


@pytest.mark.parametrize("version", OLDER)
def test_arguments_carry_the_version_of_the_file(version: str) -> None:
    def read(of_args: str) -> Any:
        args = {"apiVersion": f"{GROUP}/{of_args}", "kind": "DefaultPreemptionArgs"}
        entry = {"name": "DefaultPreemption", "args": {**args, "minCandidateNodesAbsolute": 7}}
        data = {**head(version), "profiles": [{"pluginConfig": [entry]}]}
        return parse_config(data).profiles[0].plugin_config["DefaultPreemption"]

    assert read(version) == DefaultPreemptionArgs(min_candidate_nodes_absolute=7)
    with pytest.raises(ConfigError, match=r"args\.apiVersion: expected .*/" + version):
        read("v1")


@pytest.mark.parametrize("version", ["v1beta1", "v1"])
def test_the_arguments_of_older_plugins_are_typed(version: str) -> None:
    entry = {"name": "NodeLabel", "args": {"presentLabels": ["a"]}}
    data = {**head(version), "profiles": [{"pluginConfig": [entry]}]}

    found = parse_config(data).profiles[0].plugin_config["NodeLabel"]

    assert found == NodeLabelArgs(present_labels=("a",))


OLD_ARGS = [
    pytest.param(
        "NodeLabel",
        {"presentLabels": ["a", "b"], "absentLabels": ["b"]},
        'presentLabels[1]: expected a label other than absentLabels[0]; got "b"',
        id="a label both present and absent",
    ),
    pytest.param(
        "NodeLabel",
        {"presentLabelsPreference": ["a"], "absentLabelsPreference": ["c", "a"]},
        'presentLabelsPreference[0]: expected a label other than absentLabelsPreference[1]; got "a"',
        id="a label both preferred and disliked",
    ),
    *(
        pytest.param(
            f"NodeResources{kind}Allocated",
            {"resources": [{"name": "cpu", "weight": weight}]},
            f"resources[0].weight: expected a weight from 1 to 100; got {weight}",
            id=f"{kind}: weight {weight}",
        )
        for kind in ("Least", "Most")
        for weight in (0, -1, 101)
    ),
    pytest.param(
        "RequestedToCapacityRatio",
        {},
        "shape: expected at least one point; got an empty list",
        id="no shape",
    ),
    pytest.param(
        "RequestedToCapacityRatio",
        {"shape": [{"utilization": 0, "score": 11}]},
        "shape[0].score: expected a score from 0 to 10; got 11",
        id="a score too high",
    ),
    pytest.param(
        "RequestedToCapacityRatio",
        {"shape": [{"utilization": 0, "score": 1}], "resources": [{"name": "cpu", "weight": 0}]},
        "resources[0].weight: expected a weight of at least 1; got 0",
        id="no weight",
    ),
]


@pytest.mark.parametrize(("plugin", "args", "problem"), OLD_ARGS)
def test_the_rules_for_their_arguments(plugin: str, args: dict[str, Any], problem: str) -> None:
    data = {**head("v1beta1"), "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}

    with pytest.raises(ConfigError) as caught:
        parse_config(data, "f")

    assert str(caught.value) == f"f: profiles[0].pluginConfig[0].args.{problem}"
