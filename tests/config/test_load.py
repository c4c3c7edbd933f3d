from pathlib import Path
from typing import Any

import pytest

from bayplan.api.affinity import TopologySpreadConstraint
from bayplan.config.defaults import default_config
from bayplan.config.load import load_config, parse_config
from bayplan.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    NodeAffinityArgs,
    PodTopologySpreadArgs,
)
from bayplan.config.types import PluginRef, SchedulerConfiguration
from bayplan.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
VERSIONS = (
    "kubescheduler.config.k8s.io/v1, kubescheduler.config.k8s.io/v1beta3, "
    "kubescheduler.config.k8s.io/v1beta2 or kubescheduler.config.k8s.io/v1beta1"
)
JSON_HEAD = (
    '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", '
)


def problems_of(data: Any, source: str = "s.yaml") -> list[str]:
    """The lines of the error from reading `data`, without the file's name."""
    with pytest.raises(ConfigError) as caught:
        parse_config(data, source)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{source}: ") for line in lines)
    return [line.removeprefix(f"{source}: ") for line in lines]


def args_of(config: SchedulerConfiguration, plugin: str) -> Any:
    return config.profiles[0].plugin_config[plugin]


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(HEAD + "parallelism: 4\n")

    assert load_config(path).parallelism == 4


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.yaml"

    with pytest.raises(ConfigError) as caught:
        load_config(str(path))

    assert str(caught.value) == (f"{path}: expected a readable file; got No such file or directory")


def test_every_section_is_read() -> None:
    text = """
parallelism: 8
percentageOfNodesToScore: 50
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 30
delayCacheUntilActive: true
leaderElection: {leaderElect: false, leaseDuration: 1m30s, resourceName: mine}
clientConnection: {kubeconfig: /etc/kubeconfig, qps: 12.5, burst: 7}
extenders:
- urlPrefix: http://localhost:1/x
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 5
  enableHTTPS: true
  httpTimeout: 100ms
  tlsConfig: {insecure: true, caData: aGVsbG8=}
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
profiles:
- schedulerName: one
  plugins:
    score: {enabled: [{name: ImageLocality, weight: 9}], disabled: [{name: "*"}]}
"""
    config = parse_config(HEAD + text)

    assert (config.parallelism, config.percentage_of_nodes_to_score) == (8, 50)
    assert (config.pod_initial_backoff_s, config.pod_max_backoff_s) == (2, 30)
    assert config.delay_cache_until_active
    assert not config.leader_election.leader_elect
    assert config.leader_election.lease_duration_s == 90
    assert config.leader_election.resource_name == "mine"
    assert (config.client_connection.qps, config.client_connection.burst) == (12.5, 7)
    (extender,) = config.extenders
    assert (extender.weight, extender.enable_https, extender.http_timeout_s) == (5, True, 0.1)
    assert extender.tls_config is not None
    assert extender.tls_config.ca_data == b"hello"
    assert extender.managed_resources[0].ignored_by_scheduler
    score = config.profiles[0].plugins.score
    assert (score.enabled, score.disabled) == ((PluginRef("ImageLocality", 9),), ("*",))
    assert config.profile_named("one") is config.profiles[0]
    assert config.profile_named("two") is None


def test_arguments_are_typed() -> None:
    text = """
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 0}
  - name: DynamicResources
    args: {filterTimeout: 0s, bindingTimeout: 1m}
  - name: PodTopologySpread
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: PodTopologySpreadArgs
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: Exists}]}]
"""
    config = parse_config(HEAD + text)

    assert args_of(config, "DefaultPreemption") == DefaultPreemptionArgs(0, 100)
    assert args_of(config, "DynamicResources") == DynamicResourcesArgs(0.0, 60.0)
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway"
    )
    assert args_of(config, "PodTopologySpread") == PodTopologySpreadArgs((constraint,), "List")
    added = args_of(config, "NodeAffinity")
    assert isinstance(added, NodeAffinityArgs)
    assert added.added_affinity is not None
    assert added.added_affinity.required is not None
    assert added.added_affinity.required.node_selector_terms is not None
    assert added.added_affinity.required.node_selector_terms[0].expressions[0].key == "gpu"


def test_arguments_of_unknown_plugins_stay_as_written() -> None:
    args = {"anything": [1, {"goes": None}]}
    entry = {"name": "Mine", "args": args}

    config = parse_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [entry]}],
        }
    )

    assert args_of(config, "Mine") == args


@pytest.mark.parametrize(
    ("text", "parallelism"),
    [
        pytest.param(HEAD + "parallelism: 0x10", 16, id="hexadecimal"),
        pytest.param(HEAD + "parallelism: 010", 8, id="octal"),
        pytest.param(HEAD + "parallelism: 0o17", 15, id="octal as in YAML 1.2"),
        pytest.param(HEAD + "parallelism: 0b11", 3, id="binary"),
        pytest.param(HEAD + "parallelism: 08", 8, id="no octal number after all"),
        pytest.param(HEAD + "parallelism: 1_000", 1000, id="underscore"),
        pytest.param(HEAD + 'parallelism: !!int "7"', 7, id="a tag"),
        pytest.param(HEAD + "parallelism: 16.0", 16, id="a whole float"),
        pytest.param(HEAD + "parallelism: 1e2", 100, id="an exponent without a point"),
        pytest.param(HEAD + "parallelism: 3\n---\nparallelism: 4", 3, id="the first document"),
        pytest.param(JSON_HEAD + '"parallelism": 5}', 5, id="JSON"),
        pytest.param((HEAD + "parallelism: 6").encode(), 6, id="bytes"),
        pytest.param(
            b"\xef\xbb\xbf" + HEAD.encode() + b"parallelism: 7", 7, id="a byte order mark"
        ),
        pytest.param(HEAD + "<<: {parallelism: 9}", 9, id="a merge key"),
    ],
)
def test_numbers_and_notations(text: str | bytes, parallelism: int) -> None:
    assert parse_config(text).parallelism == parallelism


@pytest.mark.parametrize(
    ("text", "is_on"),
    [
        pytest.param("y", True, id="y"),
        pytest.param("N", False, id="N"),
        pytest.param("Yes", True, id="Yes"),
        pytest.param("OFF", False, id="OFF"),
    ],
)
def test_booleans_are_those_of_yaml_1_1(text: str, is_on: bool) -> None:
    assert parse_config(HEAD + f"enableProfiling: {text}").enable_profiling is is_on


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1:30", id="a number to base 60"),
        pytest.param("2024-01-01", id="a date"),
        pytest.param("<<", id="a merge key as a value"),
        pytest.param("!!str 5", id="a number with the tag of a text"),
        pytest.param("0x", id="a number that does not go on"),
        pytest.param("1e999", id="a number too large"),
    ],
)
def test_what_only_resembles_another_type_is_a_text(text: str) -> None:
    config = parse_config(HEAD + f"profiles: [{{schedulerName: {text}}}]")

    assert config.profiles[0].scheduler_name == text.removeprefix("!!str ")


def test_a_float_in_json_is_no_whole_number() -> None:
    assert problems_of(JSON_HEAD + '"parallelism": 16.0}') == [
        "parallelism: expected a whole number; got 16.0"
    ]


def test_arguments_of_a_plugin_of_ones_own_keep_a_float_in_json() -> None:
    entry = '{"name": "Mine", "args": {"a": [{"b": 2.0}]}}'

    config = parse_config(JSON_HEAD + f'"profiles": [{{"pluginConfig": [{entry}]}}]}}')

    assert type(args_of(config, "Mine")["a"][0]["b"]) is float


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "",
            ["kind: expected KubeSchedulerConfiguration, Policy or ConfigMap; got nothing"],
            id="an empty file is not the default",
        ),
        pytest.param(
            "kind: Pod\napiVersion: v1",
            ['kind: expected KubeSchedulerConfiguration, Policy or ConfigMap; got "Pod"'],
            id="another kind",
        ),
        pytest.param(
            "kind: KubeSchedulerConfiguration",
            [f"apiVersion: expected {VERSIONS}; got nothing"],
            id="no version",
        ),
        pytest.param(
            "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1alpha1",
            [f'apiVersion: expected {VERSIONS}; got "kubescheduler.config.k8s.io/v1alpha1"'],
            id="another version",
        ),
        pytest.param("[]", ["expected a mapping; got an empty list"], id="a list"),
        pytest.param(
            "word " * 1000,
            [f'expected a mapping; got "{"word " * 19}word…"'],
            id="a text, of which the beginning is shown",
        ),
        pytest.param(
            "{{- if .Values.a }}\nkind: KubeSchedulerConfiguration\n{{- end }}",
            ["expected a configuration; got a template that is not rendered ({{- if .Values.a }})"],
            id="a template that begins with an action",
        ),
        pytest.param(
            "kind: KubeSchedulerConfiguration\nparallelism: {{ .Values.a }}",
            ["expected a configuration; got a template that is not rendered ({{ .Values.a }})"],
            id="a template with a value",
        ),
        pytest.param(
            "{kind: KubeSchedulerConfiguration}",
            [
                "expected JSON; got Expecting property name enclosed in double quotes "
                "(line 1, column 2)"
            ],
            id="a text that begins with a brace must be JSON",
        ),
        pytest.param(b"\xff", None, id="not UTF-8"),
        pytest.param("a: [", None, id="not YAML"),
    ],
)
def test_other_documents_are_rejected(text: str | bytes, expected: list[str] | None) -> None:
    found = problems_of(text)

    assert len(found) == 1
    if expected is not None:
        assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "paralelism: 3",
            ["paralelism: expected parallelism; got an unknown field"],
            id="a misspelt field",
        ),
        pytest.param(
            "Parallelism: 3",
            ["Parallelism: expected parallelism; got an unknown field"],
            id="names have a case",
        ),
        pytest.param(
            "profiles: [{plugins: {score: {foo: 1}}}]",
            ["profiles[0].plugins.score.foo: expected disabled or enabled; got an unknown field"],
            id="deeply nested",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {weight: 1}}]}]",
            [
                "profiles[0].pluginConfig[0].args.weight: expected hardPodAffinityWeight or "
                "ignorePreferredTermsOfExistingPods; got an unknown field"
            ],
            id="in arguments",
        ),
        pytest.param(
            "parallelism: 1\nparallelism: 2",
            ["parallelism: expected the field once; got it 2 times"],
            id="a field twice",
        ),
        pytest.param(
            "profiles:\n- schedulerName: a\n  schedulerName: b\n  schedulerName: c",
            ["profiles[0].schedulerName: expected the field once; got it 3 times"],
            id="a field three times",
        ),
        pytest.param(
            "profiles: [{schedulerNam: a}]\nprofiles: [{schedulerNames: a}]",
            [
                "profiles: expected the field once; got it 2 times",
                "profiles[0].schedulerNames: expected schedulerName; got an unknown field",
            ],
            id="a field twice, of which the last counts",
        ),
        pytest.param(
            "<<: {parallelism: 1}\nparallelism: 2",
            ["parallelism: expected the field once; got it 2 times"],
            id="a field beside a merge key that brings it",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: Mine, args: {a: 1, a: 2}}]}]",
            ["profiles[0].pluginConfig[0].args.a: expected the field once; got it 2 times"],
            id="a field twice in the arguments of an unknown plugin",
        ),
    ],
)
def test_reading_is_strict(text: str, expected: list[str]) -> None:
    assert problems_of(HEAD + text) == expected


def test_a_field_twice_in_json_has_its_path() -> None:
    text = JSON_HEAD + '"leaderElection": {"retryPeriod": "1s", "retryPeriod": "2s"}}'

    assert problems_of(text) == [
        "leaderElection.retryPeriod: expected the field once; got it 2 times"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            'parallelism: "3"', 'parallelism: expected a whole number; got "3"', id="a text"
        ),
        pytest.param(
            "parallelism: true", "parallelism: expected a whole number; got true", id="a bool"
        ),
        pytest.param(
            "parallelism: 1.5", "parallelism: expected a whole number; got 1.5", id="a fraction"
        ),
        pytest.param(
            "parallelism: .inf",
            "expected a number that JSON has; got .inf (line 3)",
            id="no number at all",
        ),
        pytest.param(
            "parallelism: 3000000000",
            "parallelism: expected a whole number from -2147483648 to 2147483647; got 3000000000",
            id="a number beyond 32 bits",
        ),
        pytest.param(
            "enableProfiling: 1",
            "enableProfiling: expected true or false; got 1",
            id="a number for a bool",
        ),
        pytest.param(
            "clientConnection: {qps: fast}",
            'clientConnection.qps: expected a number; got "fast"',
            id="a text for a float",
        ),
        pytest.param(
            "profiles: [{schedulerName: 123}]",
            "profiles[0].schedulerName: expected a text; got 123",
            id="a number for a text",
        ),
        pytest.param(
            "profiles: {}", "profiles: expected a list; got an empty mapping", id="a mapping"
        ),
        pytest.param(
            "profiles: [{plugins: {filter: [1]}}]",
            "profiles[0].plugins.filter: expected a mapping; got a list of 1",
            id="a list",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: 3}]}]",
            "profiles[0].pluginConfig[0].args: expected a mapping; got 3",
            id="arguments that are no mapping",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: soon}",
            'leaderElection.retryPeriod: expected a duration such as 1m30s; got "soon"',
            id="a text that is no duration",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: 5}",
            "leaderElection.retryPeriod: expected a duration such as 1m30s; got 5",
            id="a number for a duration",
        ),
        pytest.param(
            "extenders: [{tlsConfig: {caData: '%%%'}}]",
            'extenders[0].tlsConfig.caData: expected a text in base64; got "%%%"',
            id="no base64",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {kind: FooArgs}}]}]",
            'profiles[0].pluginConfig[0].args.kind: expected NodeAffinityArgs; got "FooArgs"',
            id="arguments of another kind",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {apiVersion: v1}}]}]",
            "profiles[0].pluginConfig[0].args.apiVersion: expected kubescheduler.config.k8s.io/v1; "
            'got "v1"',
            id="arguments of another version",
        ),
    ],
)
def test_a_wrong_type_is_named(text: str, expected: str) -> None:
    assert problems_of(HEAD + text) == [expected]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("1h2m3s", 3723, id="hours, minutes, seconds"),
        pytest.param("1.5s", 1.5, id="a fraction"),
        pytest.param(".5m", 30, id="a fraction without a leading digit"),
        pytest.param("250ms", 0.25, id="milliseconds"),
        pytest.param("+4s", 4, id="a sign"),
    ],
)
def test_durations(written: str, expected: float) -> None:
    config = parse_config(HEAD + f"leaderElection: {{leaderElect: false, retryPeriod: {written}}}")

    assert config.leader_election.retry_period_s == pytest.approx(expected)


@pytest.mark.parametrize(
    "written",
    [pytest.param(bad, id=bad) for bad in ("5", "s", "1d", "1s2", "1.2.3s", "--1s", "00")],
)
def test_invalid_durations(written: str) -> None:
    assert len(problems_of(HEAD + f"extenders: [{{httpTimeout: '{written}'}}]")) == 1


def test_all_problems_are_reported_at_once() -> None:
    text = """
parallelism: 0
parallelisms: 1
podInitialBackoffSeconds: -1
podInitialBackoffSeconds: -2
profiles:
- schedulerName: a
  percentageOfNodesToScore: 101
  pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: many}
  - name: InterPodAffinity
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastRequested}}
- schedulerName: a
"""
    assert sorted(problems_of(HEAD + text)) == [
        "parallelism: expected a number above 0; got 0",
        "parallelisms: expected parallelism; got an unknown field",
        "podInitialBackoffSeconds: expected the field once; got it 2 times",
        "profiles[0].percentageOfNodesToScore: expected a percentage from 0 to 100; got 101",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: expected a whole number; "
        'got "many"',
        'profiles[0].pluginConfig[1]: expected each plugin once; got "InterPodAffinity"',
        "profiles[0].pluginConfig[2].args.scoringStrategy.type: expected LeastAllocated, "
        'MostAllocated or RequestedToCapacityRatio; got "LeastRequested"',
        'profiles[1].schedulerName: expected a name no other profile has; got "a"',
    ]


def test_an_unreadable_field_is_reported_once() -> None:
    text = "profiles: [{schedulerName: 1}, {schedulerName: b}]"

    assert problems_of(HEAD + text) == ["profiles[0].schedulerName: expected a text; got 1"]


def test_default_config_is_valid() -> None:
    assert parse_config(HEAD) == default_config()
