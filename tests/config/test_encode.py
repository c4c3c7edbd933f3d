"""Encode: durations in Go's notation, and configurations that survive a round trip."""

from typing import Any

import msgspec
import pytest

from bayplan.api.text.durations import format_go_duration
from bayplan.config.defaults import default_config
from bayplan.config.encode import encode_config
from bayplan.config.extender_order import extender_order, with_ignored_resources
from bayplan.config.generations import V1
from bayplan.config.internal_form import read_component
from bayplan.config.load import parse_config, parse_reading
from bayplan.config.plugin_args import NodeResourcesFitArgs
from bayplan.config.problems import Problems
from bayplan.config.types import Extender, ExtenderTLS, ManagedResource, SchedulerConfiguration
from bayplan.errors import ConfigError

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PEM = b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (1.5, "1.5s"),
        (-1, "-1s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (600, "10m0s"),
        (3600, "1h0m0s"),
        (3661.25, "1h1m1.25s"),
        (-90000, "-25h0m0s"),
        (0.1, "100ms"),
        (0.9995, "999.5ms"),
        (2e-6, "2µs"),
        (1.5e-6, "1.5µs"),
        (3e-9, "3ns"),
        (-0.02, "-20ms"),
    ],
)
def test_durations_are_those_of_go(seconds: float, text: str) -> None:
    assert format_go_duration(seconds) == text
    election = {"leaderElect": False, "retryPeriod": text}
    read = parse_config({**HEAD, "leaderElection": election}).leader_election.retry_period_s
    assert read == pytest.approx(seconds or 2)


def args(plugin: str, **fields: Any) -> dict[str, Any]:
    return {"profiles": [{"pluginConfig": [{"name": plugin, "args": fields}]}]}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="no settings"),
        pytest.param({"parallelism": 4, "percentageOfNodesToScore": 0}, id="numbers"),
        pytest.param({"leaderElection": {"leaderElect": False}}, id="no election"),
        pytest.param({"enableProfiling": False, "delayCacheUntilActive": True}, id="switches"),
        pytest.param(
            {"clientConnection": {"qps": 2.5, "kubeconfig": "k", "burst": 7}}, id="a connection"
        ),
        pytest.param(
            {
                "extenders": [
                    {
                        "urlPrefix": "https://a",
                        "prioritizeVerb": "p",
                        "weight": 4,
                        "enableHTTPS": True,
                        "httpTimeout": "1m30s",
                        "tlsConfig": {"caData": "YQ==", "insecure": False},
                        "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}],
                    },
                    {"urlPrefix": "http://b", "tlsConfig": {}, "ignorable": True},
                ]
            },
            id="extenders",
        ),
        pytest.param(args("Own", anything=[1, {"a": None}]), id="arguments of an own plugin"),
        pytest.param(args("VolumeBinding", bindTimeoutSeconds=0), id="a zero"),
        pytest.param(args("DynamicResources", filterTimeout="0s"), id="a duration of nothing"),
        pytest.param(
            args(
                "NodeAffinity",
                addedAffinity={
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
                },
            ),
            id="an affinity that fits no node",
        ),
        pytest.param(
            args(
                "NodeResourcesFit",
                ignoredResources=["example.com/a"],
                scoringStrategy={
                    "type": "RequestedToCapacityRatio",
                    "resources": [{"name": "cpu", "weight": 3}],
                    "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 5}]},
                },
            ),
            id="a scoring strategy",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a", "percentageOfNodesToScore": 0},
                    {
                        "schedulerName": "b",
                        "plugins": {
                            "score": {
                                "disabled": [{"name": "*"}],
                                "enabled": [{"name": "NodeAffinity", "weight": 3}],
                            }
                        },
                    },
                ]
            },
            id="two profiles",
        ),
    ],
)
def test_an_encoded_configuration_reads_back(data: dict[str, Any]) -> None:
    config = parse_config({**HEAD, **data})

    assert parse_config(encode_config(config)) == config


def test_the_default_configuration_reads_back() -> None:
    assert parse_config(encode_config(default_config())) == default_config()


def test_duplicate_arguments_are_written_twice() -> None:
    entries = [{"name": "Foo", "args": {"a": 1}}, {"name": "Foo", "args": {"a": 2}}]
    reading = read_component({**HEAD, "profiles": [{"pluginConfig": entries}]}, Problems(), V1)

    written = encode_config(reading.config, reading.entries)["profiles"][0]["pluginConfig"]

    assert written[:2] == entries


def with_extenders(*extenders: Extender) -> SchedulerConfiguration:
    config = default_config()
    return SchedulerConfiguration(profiles=config.profiles, extenders=extenders)


def test_ignorable_extenders_come_last() -> None:
    extenders = [
        Extender("a", ignorable=True),
        Extender("b"),
        Extender("c", ignorable=True),
        Extender("d"),
    ]

    assert [one.url_prefix for one in extender_order(extenders)] == ["b", "d", "a", "c"]


def test_resources_of_extenders_replace_those_in_the_file() -> None:
    resources = (ManagedResource("example.com/a", True), ManagedResource("example.com/b"))

    config = with_ignored_resources(with_extenders(Extender("a", managed_resources=resources)))

    fit = config.profiles[0].plugin_config["NodeResourcesFit"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.ignored_resources == ("example.com/a",)


def test_a_profile_without_node_resources_fit_is_rejected() -> None:
    data = {
        "extenders": [{"managedResources": [{"name": "a.b/c", "ignoredByScheduler": True}]}],
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}],
    }

    with pytest.raises(ConfigError, match="can't find NodeResourcesFitArgs in plugin config"):
        with_ignored_resources(parse_reading({**HEAD, **data}).config)


@pytest.mark.parametrize(
    ("tls", "fault"),
    [
        pytest.param({"caData": b"x"}, "unable to parse bytes as PEM block", id="no authority"),
        pytest.param({"caData": PEM, "insecure": True}, "insecure flag is not allowed", id="both"),
        pytest.param(
            {"certData": b"x", "keyData": b"y"}, "failed to find any PEM data", id="no certificate"
        ),
        pytest.param({"caFile": "/no/such/file"}, "open /no/such/file: no such file", id="no file"),
        pytest.param({"caData": PEM}, None, id="good"),
        pytest.param({"insecure": True}, None, id="no check at all"),
    ],
)
def test_certificates(tls: dict[str, Any], fault: str | None) -> None:
    plain = {k: msgspec.to_builtins(v) for k, v in tls.items()}
    config = with_extenders(Extender("a", tls_config=msgspec.convert(plain, ExtenderTLS)))

    if fault is None:
        assert with_ignored_resources(config) is config
    else:
        with pytest.raises(ConfigError, match=f"couldn't build extenders: .*{fault}"):
            with_ignored_resources(config)
