from typing import Any

import pytest

from bayplan.config.load import parse_config
from bayplan.errors import ConfigError

V1 = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def problems_of(fields: dict[str, Any]) -> list[str]:
    """The problems of a configuration with these fields, without the file's name."""
    try:
        parse_config({**V1, **fields}, "s")
    except ConfigError as error:
        return [line.removeprefix("s: ") for line in str(error).splitlines()]
    return []


NODE_AFFINITY = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"


def required(requirement: dict[str, Any], kind: str = "matchExpressions") -> dict[str, Any]:
    """Arguments of NodeAffinity with one required condition."""
    terms = {"nodeSelectorTerms": [{kind: [requirement]}]}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def preferred(weight: int, **requirement: Any) -> dict[str, Any]:
    """Arguments of NodeAffinity with one preferred condition."""
    term = {"weight": weight, "preference": {"matchExpressions": [requirement]}}
    return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    """Arguments of NodeResourcesFit with a shape of (utilization, score)."""
    shape = [{"utilization": u, "score": s} for u, s in points]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    return {"scoringStrategy": strategy}


def spread(**constraint: Any) -> dict[str, Any]:
    """Arguments of PodTopologySpread with one default constraint, good but for `constraint`."""
    good = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    return {"defaultingType": "List", "defaultConstraints": [{**good, **constraint}]}


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: expected a percentage from 0 to 100; got 101",
            id="preemption: more than all nodes",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": -1},
            "minCandidateNodesAbsolute: expected a number not below 0; got -1",
            id="preemption: a negative number of nodes",
        ),
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            "hardPodAffinityWeight: expected a weight from 0 to 100; got 101",
            id="inter-pod affinity: weight too large",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "a", "operator": "Like"}),
            f"{NODE_AFFINITY}.matchExpressions[0].operator: expected In, NotIn, Exists, "
            'DoesNotExist, Gt or Lt; got "Like"',
            id="node affinity: unknown operator",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "a b", "operator": "Exists"}),
            f"{NODE_AFFINITY}.matchExpressions[0].key: expected a label key such as "
            'example.com/name; got "a b"',
            id="node affinity: no label key",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "a", "operator": "In"}),
            f"{NODE_AFFINITY}.matchExpressions[0].values: expected at least one value for "
            "operator In; got an empty list",
            id="node affinity: In without values",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "a", "operator": "Exists", "values": ["x"]}),
            f"{NODE_AFFINITY}.matchExpressions[0].values: expected no value for operator Exists; "
            "got a list of 1",
            id="node affinity: Exists with values",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
            f"{NODE_AFFINITY}.matchExpressions[0].values: expected one value for operator Gt; "
            "got a list of 2",
            id="node affinity: Gt with two values",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "a", "operator": "In", "values": ["-"]}),
            f'{NODE_AFFINITY}.matchExpressions[0].values[0][a]: expected a label value; got "-"',
            id="node affinity: no label value",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "metadata.name", "operator": "Exists"}, "matchFields"),
            f'{NODE_AFFINITY}.matchFields[0].operator: expected In or NotIn; got "Exists"',
            id="node affinity: operator a field does not have",
        ),
        pytest.param(
            "NodeAffinity",
            required({"key": "metadata.name", "operator": "In"}, "matchFields"),
            f"{NODE_AFFINITY}.matchFields[0].values: expected one value; got an empty list",
            id="node affinity: field without value",
        ),
        pytest.param(
            "NodeAffinity",
            preferred(1, key="a", operator="Lt", values=["x"]),
            "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
            ".matchExpressions[0].values[0]: expected a whole number for operator Lt; got "
            '"x"',
            id="node affinity: preferred Lt without a number",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"ignoredResources": ["/x"]},
            'ignoredResources[0]: expected a resource name such as example.com/gpu; got "/x"',
            id="fit: no resource name",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["a.b/c"]},
            "ignoredResourceGroups[0]: expected a resource group such as example.com, without /; "
            'got "a.b/c"',
            id="fit: no resource group",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"resources": [{"name": "cpu"}]}},
            "scoringStrategy.type: expected LeastAllocated, MostAllocated or "
            "RequestedToCapacityRatio; got nothing",
            id="fit: strategy without type",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"weight": 101}]}},
            "scoringStrategy.resources[0].weight: expected a weight from 1 to 100; got 101",
            id="fit: weight too large",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio: expected a shape for type "
            "RequestedToCapacityRatio; got nothing",
            id="fit: ratio without shape",
        ),
        pytest.param(
            "NodeResourcesFit",
            ratio(),
            "scoringStrategy.requestedToCapacityRatio.shape: expected at least one point; "
            "got an empty list",
            id="fit: empty shape",
        ),
        pytest.param(
            "NodeResourcesFit",
            ratio((50, 1), (50, 2), (40, 3)),
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: expected a "
            "utilization above that of the point before, 50; got 50",
            id="fit: shape that does not rise, said once",
        ),
        pytest.param(
            "NodeResourcesFit",
            ratio((0, 0), (101, 1)),
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: expected a "
            "utilization from 0 to 100; got 101",
            id="fit: utilization too large",
        ),
        pytest.param(
            "NodeResourcesFit",
            ratio((0, 11)),
            "scoringStrategy.requestedToCapacityRatio.shape[0].score: expected a score from 0 to "
            "10; got 11",
            id="fit: score too large",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "LeastAllocated", "requestedToCapacityRatio": {}}},
            "scoringStrategy.requestedToCapacityRatio: expected nothing unless type is "
            'RequestedToCapacityRatio; got a shape for type "LeastAllocated"',
            id="fit: shape of another type",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            'resources[1].name: expected each resource once; got "cpu"',
            id="balanced: a resource twice",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            "resources[0].weight: expected 1; got 2",
            id="balanced: a weight",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "Other"},
            'defaultingType: expected System or List; got "Other"',
            id="spread: unknown defaulting",
        ),
        pytest.param(
            "PodTopologySpread",
            {**spread(), "defaultingType": "System"},
            'defaultingType: expected List when there are defaultConstraints; got "System"',
            id="spread: System with constraints",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(maxSkew=0),
            "defaultConstraints[0].maxSkew: expected a number above 0; got 0",
            id="spread: no skew",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(topologyKey=None),
            "defaultConstraints[0].topologyKey: expected a label key such as example.com/name; "
            "got nothing",
            id="spread: no key",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(topologyKey="a b"),
            "defaultConstraints[0].topologyKey: expected a label key such as example.com/name; "
            'got "a b"',
            id="spread: no label key",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(whenUnsatisfiable=""),
            "defaultConstraints[0].whenUnsatisfiable: expected DoNotSchedule or ScheduleAnyway; "
            "got nothing",
            id="spread: no action",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(whenUnsatisfiable="Never"),
            "defaultConstraints[0].whenUnsatisfiable: expected DoNotSchedule or ScheduleAnyway; "
            'got "Never"',
            id="spread: unknown action",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(labelSelector={}),
            "defaultConstraints[0].labelSelector: expected nothing, since each pod brings its own "
            "selector; got a selector",
            id="spread: a selector",
        ),
        pytest.param(
            "PodTopologySpread",
            {**spread(), "defaultConstraints": spread()["defaultConstraints"] * 2},
            "defaultConstraints[1]: expected each pair of topologyKey and whenUnsatisfiable once; "
            'got "zone, ScheduleAnyway"',
            id="spread: a constraint twice",
        ),
        pytest.param(
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            "bindTimeoutSeconds: expected a number not below 0; got -1",
            id="volume binding: a negative timeout",
        ),
        pytest.param(
            "VolumeBinding",
            {"shape": []},
            "shape: expected nothing while feature gate StorageCapacityScoring is off; "
            "got an empty list",
            id="volume binding: a shape",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "-1s"},
            "filterTimeout: expected a duration not below 0s; got -1s",
            id="dynamic resources: a negative filter timeout",
        ),
        pytest.param(
            "DynamicResources",
            {"bindingTimeout": "999ms"},
            "bindingTimeout: expected a duration of at least 1s; got 999ms",
            id="dynamic resources: a binding timeout too short",
        ),
    ],
)
def test_argument_rules(plugin: str, args: dict[str, Any], expected: str) -> None:
    entries = [{"name": "Mine", "args": {}}, {"name": plugin, "args": args}]

    found = problems_of({"profiles": [{"pluginConfig": entries}]})

    assert found == [f"profiles[0].pluginConfig[1].args.{expected}"]


def test_preemption_needs_one_of_its_numbers() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}
    entry = {"name": "DefaultPreemption", "args": args}
    path = "profiles[0].pluginConfig[0].args"

    assert problems_of({"profiles": [{"pluginConfig": [entry]}]}) == [
        f"{path}.minCandidateNodesPercentage: expected more than 0 when minCandidateNodesAbsolute "
        "is 0; got 0",
        f"{path}.minCandidateNodesAbsolute: expected more than 0 when minCandidateNodesPercentage "
        "is 0; got 0",
    ]


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        pytest.param("NodeAffinity", preferred(0, key="a b", operator="Like"), id="weight 0"),
        pytest.param("DynamicResources", {"filterTimeout": "0s"}, id="filter without limit"),
        pytest.param("InterPodAffinity", {"hardPodAffinityWeight": 0}, id="weight 0 is a weight"),
        pytest.param("NodeResourcesFit", ratio((0, 10), (100, 0)), id="a falling shape"),
    ],
)
def test_valid_arguments(plugin: str, args: dict[str, Any]) -> None:
    assert problems_of({"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}) == []


def test_fit_arguments_count_only_where_the_plugin_is_enabled() -> None:
    entry = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Nope"}}}
    plugins = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}

    assert len(problems_of({"profiles": [{"pluginConfig": [entry]}]})) == 1
    assert problems_of({"profiles": [{"pluginConfig": [entry], "plugins": plugins}]}) == []
