"""Convert: any generation to a file that gives the same plugins in the current format."""

from typing import Any

import pytest

from bayplan.config.encode import LEGACY_PLUGINS, convert_config
from bayplan.config.expand import ExpandedPlugins, expand_plugins
from bayplan.config.internal_form import Reading
from bayplan.config.legacy.policy import provider_reading
from bayplan.config.load import parse_config, parse_reading
from bayplan.config.types import Profile
from bayplan.config.validation import REMOVED_PLUGINS
from bayplan.plugins.in_tree import IN_TREE
from bayplan.runtime import Registry

GROUP = "kubescheduler.config.k8s.io"
LEGACY_POINTS = {
    "NodeLabel": {"filter", "score"},
    "NodePreferAvoidPods": {"score"},
    "NodeResourcesLeastAllocated": {"score"},
    "NodeResourcesMostAllocated": {"score"},
    "RequestedToCapacityRatio": {"score"},
    "SelectorSpread": {"pre_score", "score"},
    "ServiceAffinity": {"pre_filter", "filter", "score"},
}
REGISTRY = Registry(IN_TREE)
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def expand(profile: Profile) -> ExpandedPlugins:
    def implements(plugin: str, point: str) -> bool:
        return point in LEGACY_POINTS.get(plugin, ()) or REGISTRY.implements(plugin, point)

    return expand_plugins(profile, {*REGISTRY, *LEGACY_POINTS, "Own"}, implements)


def older(version: str, *profiles: dict[str, Any], **fields: Any) -> Reading:
    data = {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **fields}
    return parse_reading({**data, "profiles": list(profiles)})


def policy(**fields: Any) -> Reading:
    return parse_reading({"apiVersion": "v1", "kind": "Policy", **fields})


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


READINGS = [
    *(pytest.param(older(v), id=v) for v in ("v1", "v1beta3", "v1beta2", "v1beta1")),
    pytest.param(provider_reading("DefaultProvider"), id="DefaultProvider"),
    pytest.param(provider_reading("ClusterAutoscalerProvider"), id="ClusterAutoscalerProvider"),
    pytest.param(
        provider_reading("DefaultProvider", {"DefaultPodTopologySpread": False}),
        id="DefaultProvider with SelectorSpread",
    ),
    pytest.param(
        older("v1beta3", {"plugins": {"multiPoint": {"disabled": named("ImageLocality")}}}),
        id="v1beta3 without a plugin",
    ),
    pytest.param(
        older(
            "v1beta3",
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 9}]}}},
        ),
        id="v1beta3 with a weight",
    ),
    pytest.param(
        older(
            "v1beta2",
            {"schedulerName": "a", "plugins": {"filter": {"disabled": named("*")}}},
            {"schedulerName": "b", "plugins": {"preScore": {"disabled": named("NodeAffinity")}}},
            parallelism=3,
            extenders=[{"urlPrefix": "http://a", "httpTimeout": "3s", "filterVerb": "f"}],
        ),
        id="v1beta2 with two profiles",
    ),
    pytest.param(
        older(
            "v1beta1",
            {
                "plugins": {"filter": {"enabled": named("NodeLabel")}},
                "pluginConfig": [{"name": "NodeLabel", "args": {"presentLabels": ["a"]}}],
            },
        ),
        id="v1beta1 with NodeLabel",
    ),
    pytest.param(
        older(
            "v1",
            {
                "plugins": {
                    "multiPoint": {
                        "disabled": named("NodePorts"),
                        "enabled": [{"name": "NodePorts"}, {"name": "GangScheduling"}],
                    }
                }
            },
        ),
        id="v1 with a new order",
    ),
    pytest.param(
        older(
            "v1",
            {
                "pluginConfig": [
                    {
                        "name": "NodeAffinity",
                        "args": {
                            "addedAffinity": {
                                "requiredDuringSchedulingIgnoredDuringExecution": {
                                    "nodeSelectorTerms": [
                                        {
                                            "matchExpressions": [
                                                {"key": "a", "operator": "In", "values": ["b"]}
                                            ]
                                        }
                                    ]
                                }
                            }
                        },
                    },
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 3}},
                ]
            },
        ),
        id="v1 with arguments",
    ),
    pytest.param(policy(), id="a policy"),
    pytest.param(policy(predicates=[], priorities=[]), id="an empty policy"),
    pytest.param(
        policy(
            predicates=[
                {"name": "GeneralPredicates"},
                {"name": "MaxEBSVolumeCount"},
                {"name": "Zones", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
                {"name": "x", "argument": {"labelsPresence": {"labels": ["a"], "presence": True}}},
            ],
            priorities=[
                {"name": "MostRequestedPriority", "weight": 4},
                {
                    "name": "Pack",
                    "weight": 2,
                    "argument": {"requestedToCapacityRatioArguments": {"shape": SHAPE}},
                },
            ],
            hardPodAffinitySymmetricWeight=7,
            extenders=[
                {
                    "urlPrefix": "https://a",
                    "enableHttps": True,
                    "tlsConfig": {"caData": "YQ==", "serverName": "s"},
                    "httpTimeout": 10**9,
                    "managedResources": [{"name": "example.com/a"}],
                    "ignorable": True,
                }
            ],
        ),
        id="a policy with everything",
    ),
]


@pytest.mark.parametrize("reading", READINGS)
def test_the_converted_file_gives_the_same_plugins(reading: Reading) -> None:
    expanded = [expand(profile) for profile in reading.config.profiles]

    converted = convert_config(reading, expanded)
    again = parse_config(converted.document)

    dropped = {name for name in REMOVED_PLUGINS if any(name in note for note in converted.notes)}
    for before, own, after in zip(reading.config.profiles, expanded, again.profiles, strict=True):
        wanted = {
            point: tuple(ref for ref in refs if ref.name not in dropped)
            for point, refs in own.items()
        }
        assert expand(after) == wanted
        assert after.scheduler_name == before.scheduler_name
        assert after.plugin_config == before.plugin_config
    assert again.extenders == reading.config.extenders
    assert again.parallelism == reading.config.parallelism


@pytest.mark.parametrize("reading", READINGS)
def test_converting_twice_changes_nothing(reading: Reading) -> None:
    first = convert_config(reading, [expand(p) for p in reading.config.profiles]).document

    again = parse_reading(first)
    second = convert_config(again, [expand(p) for p in again.config.profiles]).document

    assert second == first


def test_settings_without_an_equivalent_are_noted() -> None:
    reading = policy(
        predicates=[{"name": "MaxEBSVolumeCount"}],
        priorities=[
            {"name": "EqualPriority", "weight": 1},
            {"name": "MostRequestedPriority", "weight": 1},
        ],
        alwaysCheckAllPredicates=True,
    )

    notes = convert_config(reading, [expand(p) for p in reading.config.profiles]).notes

    assert [note.partition(";")[0] for note in notes] == [
        "priorities[0]: left out",
        "profile default-scheduler: EBSLimits: left out",
        "profile default-scheduler: NodeResourcesMostAllocated: kept",
        "alwaysCheckAllPredicates: left out",
    ]


def test_the_older_plugins_are_those_with_their_own_points() -> None:
    assert set(LEGACY_POINTS) == LEGACY_PLUGINS
