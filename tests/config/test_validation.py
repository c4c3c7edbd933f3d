from typing import Any

import pytest

from bayplan.config.defaults import default_config, default_profile
from bayplan.config.load import parse_config
from bayplan.config.plugin_args import VolumeBindingArgs
from bayplan.config.problems import Problem
from bayplan.config.types import LeaderElection, Plugins, Profile, SchedulerConfiguration
from bayplan.config.validation import validate_config
from bayplan.errors import ConfigError

V1 = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def problems_of(fields: dict[str, Any]) -> list[str]:
    """The problems of a configuration with these fields, without the file's name."""
    try:
        parse_config({**V1, **fields}, "s")
    except ConfigError as error:
        return [line.removeprefix("s: ") for line in str(error).splitlines()]
    return []


def test_the_default_configuration_is_valid() -> None:
    assert validate_config(default_config()) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"parallelism": 0}, "parallelism: expected a number above 0; got 0", id="no parallelism"
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: expected a percentage from 0 to 100; got 101",
            id="more than all nodes",
        ),
        pytest.param(
            {"profiles": [{"percentageOfNodesToScore": -1}]},
            "profiles[0].percentageOfNodesToScore: expected a percentage from 0 to 100; got -1",
            id="a negative percentage in a profile",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            "podInitialBackoffSeconds: expected a number above 0; got 0",
            id="no first backoff",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 20},
            "podMaxBackoffSeconds: expected a number not below podInitialBackoffSeconds, "
            "which is 20; got 10",
            id="the longest backoff below the first",
        ),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            "clientConnection.burst: expected a number not below 0; got -1",
            id="a negative burst",
        ),
        pytest.param(
            {"leaderElection": {"renewDeadline": "-1s"}},
            "leaderElection.renewDeadline: expected a duration above 0s; got -1s",
            id="a negative duration",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "10s"}},
            "leaderElection.leaseDuration: expected a duration above renewDeadline, which is 10s; "
            "got 10s",
            id="a lease that ends before it is renewed",
        ),
        pytest.param(
            {"leaderElection": {"resourceLock": "configmaps"}},
            'leaderElection.resourceLock: expected leases; got "configmaps"',
            id="another lock",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": ""}]},
            "profiles[0].schedulerName: expected a name; got nothing",
            id="an empty scheduler name",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {}]},
            "profiles[1].schedulerName: expected a name; got nothing",
            id="one of several profiles without a name",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            'profiles[1].schedulerName: expected a name no other profile has; got "a"',
            id="two profiles of one name",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}}]},
            "profiles[0].plugins.filter.enabled[0]: expected a plugin that still exists; "
            'got "EBSLimits"',
            id="a removed plugin",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"name": "CinderLimits"}]}]},
            'profiles[0].pluginConfig[0]: expected a plugin that still exists; got "CinderLimits"',
            id="arguments of a removed plugin",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}}]},
            "profiles[0].plugins.queueSort.Enabled: expected one queue sort plugin; got 2",
            id="two queue sorts",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a"},
                    {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "X"}]}}},
                ]
            },
            "profiles[1].plugins.queueSort: expected the same as in profiles[0]; "
            "got something else",
            id="profiles that sort differently",
        ),
        pytest.param(
            {
                "profiles": [
                    {
                        "schedulerName": name,
                        "plugins": {"queueSort": {"enabled": [{"name": "X"}]}},
                        "pluginConfig": [{"name": "X", "args": {"for": name}}],
                    }
                    for name in "ab"
                ]
            },
            "profiles[1].pluginConfig.args: expected the same args for X as in profiles[0]; "
            "got something else",
            id="profiles that sort with different arguments",
        ),
        pytest.param(
            {"extenders": [{"prioritizeVerb": "p"}]},
            "extenders[0].weight: expected a weight above 0, since prioritizeVerb is set; got 0",
            id="an extender that scores without weight",
        ),
        pytest.param(
            {"extenders": [{"bindVerb": "b"}, {"bindVerb": "b"}]},
            "extenders: expected at most one extender with a bindVerb; got 2 of them",
            id="two extenders that bind",
        ),
        pytest.param(
            {"extenders": [{"managedResources": [{"name": "cpu"}]}]},
            "extenders[0].managedResources[0].name: expected an extended resource such as "
            'example.com/gpu; got "cpu"',
            id="a native resource",
        ),
        pytest.param(
            {"extenders": [{"managedResources": [{"name": "a.b/c"}]}] * 2},
            "extenders[1].managedResources[0].name: expected a resource no extender manages "
            'already; got "a.b/c"',
            id="a resource of two extenders",
        ),
    ],
)
def test_configuration_rules(fields: dict[str, Any], expected: str) -> None:
    assert problems_of(fields) == [expected]


def test_leader_election_that_is_off_is_not_checked() -> None:
    off = {"leaderElect": False, "leaseDuration": "1s", "resourceLock": "configmaps"}

    assert problems_of({"leaderElection": off}) == []


def test_removed_plugins_under_multi_point_are_checked_by_the_registry() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "EBSLimits"}]}}

    assert problems_of({"profiles": [{"plugins": plugins}]}) == []


def test_a_configuration_made_in_code_is_checked_too() -> None:
    profile = Profile("a", plugins=Plugins(), plugin_config={"NodeAffinity": VolumeBindingArgs()})
    election = LeaderElection(resource_name="")
    config = SchedulerConfiguration(profiles=(profile,), leader_election=election)

    assert validate_config(config) == [
        Problem("leaderElection.resourceName", "a name", "nothing"),
        Problem("profiles[0].pluginConfig[0].args", "NodeAffinityArgs", "VolumeBindingArgs"),
    ]


def test_a_configuration_without_profiles_is_rejected() -> None:
    assert [str(problem) for problem in validate_config(SchedulerConfiguration())] == [
        "profiles: expected at least one profile; got an empty list"
    ]


def test_two_valid_profiles() -> None:
    config = SchedulerConfiguration(profiles=(default_profile("a"), default_profile("b")))

    assert validate_config(config) == []
