"""Meaning of the flags of `bayplan run`, with and without a configuration file."""

import json
from pathlib import Path

import pytest

from bayplan.cli.flags.command import FlagValues
from bayplan.cli.flags.run_settings import RunSettings, log_options, read_settings
from bayplan.config.plugin_args import InterPodAffinityArgs
from bayplan.errors import BayplanError

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
enableProfiling: false
"""
POLICY = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}]}


def settings(**flags: str) -> RunSettings:
    values = FlagValues({name.replace("_", "-"): text for name, text in flags.items()})
    log_options(values)  # first, as in `run`
    return read_settings(values)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return str(path)


def test_without_flags_everything_is_as_kube_scheduler_does_it() -> None:
    found = settings()

    assert found.config.leader_election.leader_elect
    assert found.serving.address == "0.0.0.0"
    assert found.serving.port == 10259
    assert found.flags.parts("authorization-always-allow-paths") == [
        "/healthz",
        "/readyz",
        "/livez",
    ]
    assert found.config.pod_max_in_unschedulable_pods_s == 300
    assert log_options(found.flags)["verbosity"] == 0
    assert found.remarks == ()
    assert found.serving.flags.text("kube-api-burst") == "100"


def test_the_client_flags_count_without_a_file() -> None:
    found = settings(kube_api_qps="7.5", kube_api_burst="9", profiling="false")

    assert (found.config.client_connection.qps, found.config.client_connection.burst) == (7.5, 9)
    assert not found.config.enable_profiling


def test_beside_a_file_only_the_election_flags_count(config: str) -> None:
    found = settings(
        config=config,
        kube_api_qps="7",
        profiling="true",
        leader_elect="false",
        lock_object_name="x",
    )

    assert found.config.client_connection.qps == 50
    assert not found.config.enable_profiling
    assert not found.config.leader_election.leader_elect
    assert found.config.leader_election.resource_name == "x"
    assert found.remarks == (
        "--kube-api-qps has no effect: --config counts",
        "--profiling has no effect: --config counts",
    )


def test_fields_of_the_file_without_effect_are_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        f"{CONFIG}parallelism: 4\nclientConnection: {{acceptContentTypes: text/plain}}\n"
    )

    assert settings(config=str(path)).remarks == (
        "parallelism has no effect: all nodes are judged in one loop",
        "clientConnection.acceptContentTypes has no effect: requests and responses are in JSON",
    )


def test_the_newer_name_of_a_flag_counts() -> None:
    found = settings(lock_object_namespace="old", leader_elect_resource_namespace="new")

    assert found.config.leader_election.resource_namespace == "new"


def test_how_long_pods_stay_unschedulable() -> None:
    found = settings(pod_max_in_unschedulable_pods_duration="90s")
    assert found.config.pod_max_in_unschedulable_pods_s == 90


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param({"policy_configmap": "p"}, ("kube-system", "p"), id="alone"),
        pytest.param(
            {"policy_configmap": "p", "policy_configmap_namespace": "n", "policy_config_file": "f"},
            ("n", "p"),
            id="before a file",
        ),
        pytest.param(
            {
                "policy_configmap": "p",
                "policy_config_file": "f",
                "use_legacy_policy_config": "true",
            },
            None,
            id="the legacy file first",
        ),
    ],
)
def test_which_policy_counts(
    flags: dict[str, str], expected: tuple[str, str] | None, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_text(json.dumps(POLICY))
    if "policy_config_file" in flags:
        flags = {**flags, "policy_config_file": str(path)}

    assert settings(**flags).policy == expected


def test_a_policy_file_and_a_provider(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY))

    of_file = settings(policy_config_file=str(path), scheduler_name="mine").config
    assert [profile.scheduler_name for profile in of_file.profiles] == ["mine"]
    provider = settings(
        algorithm_provider="ClusterAutoscalerProvider", hard_pod_affinity_symmetric_weight="7"
    ).config
    args = provider.profiles[0].plugin_config["InterPodAffinity"]
    assert isinstance(args, InterPodAffinityArgs)
    assert args.hard_pod_affinity_weight == 7


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            {"emulated_version": "1.32"},
            '--emulated-version: expected 1.36 or 1.35 or 1.34 or 1.33; got "1.32"',
        ),
        (
            {"leader_elect_resource_lock": "endpoints"},
            "--leader-elect-resource-lock: expected leases",
        ),
        ({"tls_min_version": "VersionTLS9"}, "--tls-min-version: expected"),
        ({"logging_format": "xml"}, "--logging-format: expected text or json"),
        ({"vmodule": "cycle"}, "--vmodule: expected NAME=NUMBER,..."),
        ({"tls_sni_cert_key": "a.crt"}, "--tls-sni-cert-key: expected CERT,KEY"),
        ({"authorization_always_allow_paths": "/a*/b"}, "--authorization-always-allow-paths:"),
        ({"feature_gates": "Nothing=true"}, "Nothing"),
        ({"config": "/nowhere", "policy_configmap": "p"}, "/nowhere"),
    ],
)
def test_what_cannot_be_is_refused(flags: dict[str, str], problem: str) -> None:
    with pytest.raises(BayplanError) as caught:
        settings(**flags)
    assert problem in str(caught.value)


def test_the_log_and_the_certificates() -> None:
    found = settings(
        v="4",
        logging_format="json",
        log_json_split_stream="true",
        vmodule="cycle=10,queue*=3",
        tls_sni_cert_key="a.crt,a.key:x.example,y.example,b.crt,b.key",
    )

    assert log_options(found.flags) == {
        "verbosity": 4,
        "as_json": True,
        "is_split": True,
        "modules": {"cycle": 10, "queue*": 3},
    }
    assert found.serving.tls.by_name == (
        (Path("a.crt"), Path("a.key"), ("x.example", "y.example")),
        (Path("b.crt"), Path("b.key"), ()),
    )
