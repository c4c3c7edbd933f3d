"""Running recorded configurations: every stage is compared, and a difference is detected."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.rig.conformance.cli import main
from tests.rig.conformance.config import (
    ConfigOutcome,
    is_config_case,
    run_config_case,
    run_start,
)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def make_case(text: str) -> dict[str, Any]:
    """A case that expects our own result."""
    ours = run_start(text)
    expected = {
        "decodeError": None,
        "decodeErrorKind": ours.decode_error_kind,
        "strictFields": ours.strict_fields,
        "config": ours.config,
        "validationErrors": ours.validation_errors,
        "buildError": ours.build_error,
        "profiles": ours.profiles,
        "extenders": ours.extenders,
    }
    return {"id": "own", "tags": [], "yaml": text, "expected": expected}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("", "missingKind", id="nothing"),
        pytest.param("kind: KubeSchedulerConfiguration", "missingVersion", id="no version"),
        pytest.param("hello", "syntax", id="a word"),
        pytest.param("{a", "syntax", id="bad JSON"),
        pytest.param("kind: [", "syntax", id="bad YAML"),
        pytest.param("apiVersion: a/b/c\nkind: x", "value", id="a bad version"),
        pytest.param("apiVersion: v1\nkind: Policy", "notRegistered", id="a policy"),
        pytest.param(HEAD.replace("/v1", "/v1beta3"), "notRegistered", id="an older version"),
        pytest.param(
            HEAD.replace("KubeSchedulerConfiguration", "NodeAffinityArgs"), "otherKind", id="args"
        ),
        pytest.param(HEAD + "parallelism: many", "type", id="a word for a number"),
        pytest.param(HEAD + "leaderElection: {retryPeriod: soon}", "value", id="no duration"),
        pytest.param(HEAD + "foo: 1", "strict", id="an unknown field"),
        pytest.param(
            HEAD + "foo: 1\nparallelism: x",
            "type",
            id="type errors take precedence over strict ones",
        ),
        pytest.param(HEAD + "parallelism: 0", None, id="validation is another stage"),
    ],
)
def test_kinds_of_decoding_errors(text: str, kind: str | None) -> None:
    assert run_start(text).decode_error_kind == kind


def args_text(args: str, name: str = "VolumeBinding") -> str:
    return f"{HEAD}profiles: [{{pluginConfig: [{{name: {name}, args: {args}}}]}}]"


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        pytest.param("{kind: NodeAffinityArgs}", "argsKind", id="of another plugin"),
        pytest.param("{kind: FooArgs}", "notRegistered", id="of no plugin"),
        pytest.param("{apiVersion: v1}", "notRegistered", id="of another version"),
        pytest.param("{apiVersion: a/b/c}", "value", id="of a bad version"),
        pytest.param("[]", "syntax", id="a list"),
        pytest.param("{bindTimeoutSeconds: x}", "type", id="a word for a number"),
        pytest.param("{foo: 1}", "strict", id="an unknown field"),
        pytest.param("null", None, id="none"),
    ],
)
def test_kinds_of_errors_in_arguments(args: str, kind: str | None) -> None:
    assert run_start(args_text(args)).decode_error_kind == kind


def test_fields_have_kube_schedulers_names() -> None:
    text = f"{args_text('{foo: 1}')}\nbar: 1\nparallelism: 1\nparallelism: 2\n"

    assert run_start(text).strict_fields == [
        {"problem": "duplicate", "field": "parallelism"},
        {"problem": "unknown", "field": "bar"},
        {"problem": "unknown", "field": "foo"},
    ]


def test_arguments_of_unknown_plugins_may_repeat_keys_in_json() -> None:
    entry = '{"name": "Own", "args": {"a": 1, "a": 2}}'
    text = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", '
        f'"profiles": [{{"pluginConfig": [{entry}]}}]}}'
    )

    assert run_start(text).decode_error_kind is None


def test_invalid_fit_arguments_fail_at_creation() -> None:
    outcome = run_start(args_text("{scoringStrategy: {type: Foo}}", "NodeResourcesFit"))

    assert outcome.validation_errors == []
    assert outcome.build_error == (
        "initializing profiles: creating profile for scheduler name default-scheduler: "
        'initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "Foo": '
        'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
    )


def test_stages_end_where_one_fails() -> None:
    assert run_start("hello") == ConfigOutcome(decode_error_kind="syntax")
    invalid = run_start(HEAD + "parallelism: 0")
    assert invalid.config is not None
    assert (invalid.build_error, invalid.profiles, invalid.extenders) == (None, None, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("decodeErrorKind", "strict"),
        ("strictFields", []),
        ("config", {"parallelism": 15}),
        (
            "validationErrors",
            [{"field": "x", "type": "y", "detail": "z", "badValue": None, "text": ""}],
        ),
        ("buildError", "something"),
        ("profiles", [{"schedulerName": "other"}]),
        ("extenders", ["http://a"]),
    ],
)
def test_a_difference_is_detected(field: str, value: Any) -> None:
    case = make_case(HEAD)
    assert is_config_case(case)
    assert list(run_config_case(case)) == [[]]

    case["expected"][field] = value

    (found,) = run_config_case(case)
    assert [one.field for one in found] == [field]


def test_the_command_runs_such_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.jsonl.gz"
    cases = [make_case(text) for text in (HEAD, "hello", HEAD + "foo: 1", HEAD + "parallelism: 0")]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, cases)).encode()))

    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "agree 4 of 4 decisions in 4 cases\n"
