"""Policies: the plugins for predicates and priorities, and errors."""

import json
from typing import Any

import pytest
import yaml

from bayplan.config.legacy.policy_plugins import DEFAULT_PREDICATES, PREDICATES
from bayplan.config.load import parse_config, parse_reading
from bayplan.config.plugin_args import (
    InterPodAffinityArgs,
    NodeLabelArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    ServiceAffinityArgs,
    UtilizationShapePoint,
)
from bayplan.config.types import POINT_NAMES, Extender, SchedulerConfiguration
from bayplan.errors import ConfigError

HEAD = {"kind": "Policy", "apiVersion": "v1"}
MANDATORY = ["NodeUnschedulable", "TaintToleration"]
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def read(gates: dict[str, bool] | None = None, **policy: Any) -> SchedulerConfiguration:
    return parse_config({**HEAD, **policy}, feature_gates=gates)


def points_of(config: SchedulerConfiguration) -> dict[str, list[str]]:
    """The plugins of each point, `name=weight` where there is a weight."""
    plugins = config.profiles[0].plugins
    found = {
        name: [f"{ref.name}={ref.weight}" if ref.weight else ref.name for ref in refs]
        for point, name in POINT_NAMES.items()
        if (refs := plugins.at(point).enabled)
    }
    assert plugins.multi_point.enabled == ()
    return found


def args_of(config: SchedulerConfiguration, plugin: str) -> Any:
    return config.profiles[0].plugin_config.get(plugin)


def predicate(name: str, **argument: Any) -> dict[str, Any]:
    return {"name": name, "argument": argument} if argument else {"name": name}


def priority(name: str, weight: int = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


def test_an_empty_policy_has_the_defaults() -> None:
    assert points_of(read()) == {
        "queueSort": ["PrioritySort"],
        "preFilter": [
            "NodeResourcesFit",
            "NodePorts",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
            "VolumeRestrictions",
        ],
        "filter": [
            "NodeUnschedulable",
            "NodeResourcesFit",
            "NodeName",
            "NodePorts",
            "NodeAffinity",
            "VolumeRestrictions",
            "TaintToleration",
            "EBSLimits",
            "GCEPDLimits",
            "NodeVolumeLimits",
            "AzureDiskLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
        ],
        "postFilter": ["DefaultPreemption"],
        "preScore": ["PodTopologySpread", "InterPodAffinity", "TaintToleration"],
        "score": [
            "NodeResourcesBalancedAllocation=1",
            "PodTopologySpread=2",
            "ImageLocality=1",
            "InterPodAffinity=1",
            "NodeResourcesLeastAllocated=1",
            "NodeAffinity=1",
            "NodePreferAvoidPods=10000",
            "TaintToleration=1",
        ],
        "reserve": ["VolumeBinding"],
        "preBind": ["VolumeBinding"],
        "bind": ["DefaultBinder"],
    }


def test_empty_lists_keep_the_mandatory_plugins() -> None:
    assert points_of(read(predicates=[], priorities=[])) == {
        "queueSort": ["PrioritySort"],
        "filter": MANDATORY,
        "postFilter": ["DefaultPreemption"],
        "bind": ["DefaultBinder"],
    }


FILTER_ONLY = {
    "HostName": "NodeName",
    "MatchNodeSelector": "NodeAffinity",
    "NoVolumeZoneConflict": "VolumeZone",
    "MaxCSIVolumeCountPred": "NodeVolumeLimits",
    "MaxEBSVolumeCount": "EBSLimits",
    "MaxGCEPDVolumeCount": "GCEPDLimits",
    "MaxAzureDiskVolumeCount": "AzureDiskLimits",
    "MaxCinderVolumeCount": "CinderLimits",
}
PREPARED = {
    "PodFitsResources": "NodeResourcesFit",
    "PodFitsHostPorts": "NodePorts",
    "PodFitsPorts": "NodePorts",
    "MatchInterPodAffinity": "InterPodAffinity",
    "EvenPodsSpread": "PodTopologySpread",
    "CheckVolumeBinding": "VolumeBinding",
    "NoDiskConflict": "VolumeRestrictions",
}


@pytest.mark.parametrize(("name", "plugin"), [*FILTER_ONLY.items(), *PREPARED.items()])
def test_a_predicate_is_a_filter(name: str, plugin: str) -> None:
    points = points_of(read(predicates=[predicate(name)], priorities=[]))

    assert [one for one in points["filter"] if one not in MANDATORY] == [plugin]
    assert points.get("preFilter", []) == ([plugin] if name in PREPARED else [])
    is_binding = name == "CheckVolumeBinding"
    assert points.get("reserve", []) == points.get("preBind", [])
    assert points.get("reserve", []) == (["VolumeBinding"] if is_binding else [])


@pytest.mark.parametrize("name", ["PodToleratesNodeTaints", "CheckNodeUnschedulable"])
def test_a_mandatory_predicate_occurs_once(name: str) -> None:
    assert points_of(read(predicates=[predicate(name)], priorities=[]))["filter"] == MANDATORY


def test_general_predicates_are_four_filters_in_order() -> None:
    names = ["PodFitsResources", "GeneralPredicates", "HostName"]

    points = points_of(read(predicates=[predicate(name) for name in names], priorities=[]))

    assert points["filter"] == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "TaintToleration",
    ]
    assert points["preFilter"] == ["NodeResourcesFit", "NodePorts"]


def test_filters_are_in_the_order_of_predicates_not_of_the_file() -> None:
    names = ["MatchInterPodAffinity", "NoVolumeZoneConflict", "NoDiskConflict", "HostName"]

    points = points_of(read(predicates=[predicate(name) for name in names], priorities=[]))

    assert points["filter"] == [
        "NodeUnschedulable",
        "NodeName",
        "VolumeRestrictions",
        "TaintToleration",
        "VolumeZone",
        "InterPodAffinity",
    ]


SCORERS = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "NodeAffinityPriority": "NodeAffinity",
    "ImageLocalityPriority": "ImageLocality",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
}
PREPARED_SCORERS = {
    "InterPodAffinityPriority": "InterPodAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
}


@pytest.mark.parametrize(("name", "plugin"), [*SCORERS.items(), *PREPARED_SCORERS.items()])
@pytest.mark.parametrize("weight", [1, 7, 10000])
def test_a_priority_is_a_scorer(name: str, plugin: str, weight: int) -> None:
    points = points_of(read(predicates=[], priorities=[priority(name, weight)]))

    assert points["score"] == [f"{plugin}={weight}"]
    assert points.get("preScore", []) == ([plugin] if name in PREPARED_SCORERS else [])


@pytest.mark.parametrize("name", ["SelectorSpreadPriority", "ServiceSpreadingPriority"])
def test_selector_spread_without_default_spreading(name: str) -> None:
    gates = {"DefaultPodTopologySpread": False}
    points = points_of(read(gates, predicates=[], priorities=[priority(name, 3)]))

    assert points["score"] == ["SelectorSpread=3"]
    assert points["preScore"] == ["SelectorSpread"]


@pytest.mark.parametrize(
    ("priorities", "gates", "defaulting"),
    [
        pytest.param(["EvenPodsSpreadPriority"], {}, "List", id="even spread alone"),
        pytest.param(["SelectorSpreadPriority"], {}, "System", id="selector spread alone"),
        pytest.param(["SelectorSpreadPriority", "EvenPodsSpreadPriority"], {}, "System", id="both"),
    ],
)
def test_the_source_of_constraints(
    priorities: list[str], gates: dict[str, bool], defaulting: str
) -> None:
    config = read(gates, predicates=[], priorities=[priority(name) for name in priorities])

    assert args_of(config, "PodTopologySpread") == PodTopologySpreadArgs(defaulting_type=defaulting)


def test_scorers_are_sorted_by_the_names_of_priorities() -> None:
    names = ["TaintTolerationPriority", "ImageLocalityPriority", "BalancedResourceAllocation"]

    points = points_of(read(predicates=[], priorities=[priority(name) for name in names]))

    assert points["score"] == [
        "NodeResourcesBalancedAllocation=1",
        "ImageLocality=1",
        "TaintToleration=1",
    ]


def test_a_plugin_of_two_priorities_keeps_the_first_weight() -> None:
    both = [priority("SelectorSpreadPriority", 9), priority("EvenPodsSpreadPriority", 2)]

    assert points_of(read(predicates=[], priorities=both))["score"] == ["PodTopologySpread=2"]


def test_the_last_weight_of_a_duplicate_priority_counts() -> None:
    twice = [priority("NodeAffinityPriority", 9), priority("NodeAffinityPriority", 4)]

    assert points_of(read(predicates=[], priorities=twice))["score"] == ["NodeAffinity=4"]


def test_equal_priority_is_left_out_with_a_note() -> None:
    reading = parse_reading({**HEAD, "priorities": [priority("EqualPriority")]})

    assert reading.config.profiles[0].plugins.score.enabled == ()
    assert reading.notes == ("priorities[0]: left out; EqualPriority prefers no node",)


def test_custom_predicates_are_merged_into_arguments() -> None:
    config = read(
        predicates=[
            predicate("Zones", serviceAffinity={"labels": ["zone"]}),
            predicate("Racks", serviceAffinity={"labels": ["rack", "row"]}),
            predicate("Needs", labelsPresence={"labels": ["a", "b"], "presence": True}),
            predicate("Avoids", labelsPresence={"labels": ["c"], "presence": False}),
        ],
        priorities=[],
    )

    points = points_of(config)
    assert points["filter"] == [*MANDATORY, "NodeLabel", "ServiceAffinity"]
    assert points["preFilter"] == ["ServiceAffinity"]
    assert args_of(config, "ServiceAffinity") == ServiceAffinityArgs(("zone", "rack", "row"))
    assert args_of(config, "NodeLabel") == NodeLabelArgs(("a", "b"), ("c",))


def test_custom_priorities_count_once_per_label() -> None:
    config = read(
        predicates=[],
        priorities=[
            priority("Likes", 3, labelPreference={"label": "ssd", "presence": True}),
            priority("Dislikes", 3, labelPreference={"label": "old", "presence": False}),
            priority("Zones", 5, serviceAntiAffinity={"label": "zone"}),
            priority("Racks", 5, serviceAntiAffinity={"label": "rack"}),
            priority("Rows", 5, serviceAntiAffinity={"label": "row"}),
        ],
    )

    assert points_of(config)["score"] == ["NodeLabel=6", "ServiceAffinity=15"]
    assert args_of(config, "NodeLabel") == NodeLabelArgs((), (), ("ssd",), ("old",))
    spread = ServiceAffinityArgs((), ("zone", "rack", "row"))
    assert args_of(config, "ServiceAffinity") == spread


def test_predicates_and_priorities_share_arguments() -> None:
    config = read(
        predicates=[predicate("Needs", labelsPresence={"labels": ["a"], "presence": True})],
        priorities=[priority("Likes", 2, labelPreference={"label": "b", "presence": True})],
    )

    assert args_of(config, "NodeLabel") == NodeLabelArgs(("a",), (), ("b",))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            [], (ResourceSpec("cpu", 1), ResourceSpec("memory", 1)), id="the default resources"
        ),
        pytest.param([{"name": "gpu", "weight": 200}], (ResourceSpec("gpu", 200),), id="one"),
    ],
)
def test_requested_to_capacity_ratio(
    resources: list[dict[str, Any]], expected: tuple[ResourceSpec, ...]
) -> None:
    argument = {"shape": SHAPE, "resources": resources}
    config = read(
        predicates=[], priorities=[priority("Pack", 4, requestedToCapacityRatioArguments=argument)]
    )

    assert points_of(config)["score"] == ["RequestedToCapacityRatio=4"]
    shape = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
    args = RequestedToCapacityRatioArgs(shape, expected)
    assert args_of(config, "RequestedToCapacityRatio") == args


@pytest.mark.parametrize("weight", [1, 50, 100])
def test_the_weight_of_hard_affinity(weight: int) -> None:
    config = read(hardPodAffinitySymmetricWeight=weight)

    assert args_of(config, "InterPodAffinity") == InterPodAffinityArgs(weight)


def test_a_weight_of_zero_counts_as_unset() -> None:
    assert (
        args_of(read(hardPodAffinitySymmetricWeight=0), "InterPodAffinity").hard_pod_affinity_weight
        == 1
    )


def test_without_the_priority_the_weight_is_not_used() -> None:
    config = read(priorities=[], hardPodAffinitySymmetricWeight=9)

    assert args_of(config, "InterPodAffinity") == InterPodAffinityArgs()


@pytest.mark.parametrize("wanted", [True, False])
def test_all_predicates_can_be_checked(wanted: bool) -> None:
    assert read(alwaysCheckAllPredicates=wanted).always_check_all_predicates is wanted


def test_extenders_are_converted_with_a_timeout_in_nanoseconds() -> None:
    extender = {
        "urlPrefix": "http://a",
        "filterVerb": "filter",
        "enableHttps": True,
        "httpTimeout": 1_500_000_000,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    }

    (found,) = read(extenders=[extender]).extenders

    assert (found.url_prefix, found.enable_https, found.http_timeout_s) == ("http://a", True, 1.5)
    assert found.managed_resources[0].ignored_by_scheduler


def test_extender_fields_are_case_insensitive_and_unknown_ones_are_noted() -> None:
    extender = {"URLPREFIX": "http://a", "EnableHTTPS": True, "apiVersion": "v1"}

    reading = parse_reading({**HEAD, "extenders": [extender]})

    assert reading.config.extenders == (Extender(url_prefix="http://a", enable_https=True),)
    assert reading.notes == ("extenders[0].apiVersion: left out; there is no such field",)


@pytest.mark.parametrize("name", ["CheckNodeLabelPresence", "CheckServiceAffinity"])
def test_a_known_name_takes_no_argument(name: str) -> None:
    given = predicate(name, labelsPresence={"labels": ["a"], "presence": True})

    reading = parse_reading({**HEAD, "predicates": [given], "priorities": []})

    plugin = PREDICATES[name][0][0]
    assert args_of(reading.config, plugin) in (NodeLabelArgs(), ServiceAffinityArgs())
    assert [note.partition(":")[0] for note in reading.notes] == ["predicates[0].argument"]


def test_all_default_predicates_are_known() -> None:
    assert len(DEFAULT_PREDICATES) == 12
    assert set(PREDICATES) > DEFAULT_PREDICATES


POLICY = {**HEAD, "predicates": [{"name": "HostName"}], "priorities": []}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(POLICY), id="JSON"),
        pytest.param(yaml.safe_dump(POLICY), id="YAML"),
        pytest.param(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "policy", "namespace": "kube-system"},
                    "data": {"policy.cfg": json.dumps(POLICY)},
                }
            ),
            id="a ConfigMap",
        ),
    ],
)
def test_the_forms_of_a_policy(text: str) -> None:
    assert points_of(parse_config(text))["filter"] == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(
            {"policy.cfg": None},
            "data.policy.cfg: expected a mapping; got nothing",
            id="no text",
        ),
        pytest.param(
            {"policy.cfg": "{"},
            "data.policy.cfg: expected JSON; got Expecting property name enclosed in double quotes "
            "(line 1, column 2)",
            id="no JSON",
        ),
        pytest.param(
            {"policy.cfg": "[]"},
            "data.policy.cfg: expected a mapping; got an empty list",
            id="a list",
        ),
        pytest.param(
            {"policy.cfg": "kind: Policy\nhardPodAffinitySymmetricWeight: 200"},
            "data.policy.cfg.hardPodAffinitySymmetricWeight: expected a weight from 0 to 100; got 200",
            id="a bad policy",
        ),
        pytest.param(
            {"policy.cfg": "kind: Pod"},
            'data.policy.cfg.kind: expected Policy; got "Pod"',
            id="a pod",
        ),
    ],
)
def test_a_config_map_without_a_valid_policy(data: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"apiVersion": "v1", "kind": "ConfigMap", "data": data}, "m")

    assert str(caught.value) == f"m: {problem}"
