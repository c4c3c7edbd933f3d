"""Configurations of other releases: fields they do not have, and words of theirs."""

import pytest

from bayplan.config.args_validation import validate_args
from bayplan.config.load import parse_config
from bayplan.config.plugin_args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
    UtilizationShapePoint,
)
from bayplan.config.problems import Problems
from bayplan.errors import ConfigError
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from tests.rig.conformance.upstream_words import upstream_errors


def faults(release: str, profile: str) -> str:
    """The faults of a configuration with one profile; empty if it has none."""
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        + profile
    )
    try:
        parse_config(text, "x", FeatureGates(release=find_release(release)))
    except ConfigError as error:
        return str(error)
    return ""


ARGS = "- pluginConfig:\n  - name: {}\n    args: {}\n"
SHAPE = "{shape: [{utilization: 0, score: 0}]}"


@pytest.mark.parametrize(
    ("profile", "release", "expected"),
    [
        pytest.param(
            "- plugins: {placementScore: {enabled: [{name: PodGroupPodsCount}]}}\n",
            "1.35",
            "profiles[0].plugins.placementScore: expected a field of v1.35; got an unknown field",
            id="a point of 1.36",
        ),
        pytest.param(
            ARGS.format("DynamicResources", "{bindingTimeout: 60s}"),
            "1.34",
            "args.bindingTimeout: expected a field of v1.34; got an unknown field",
            id="an argument of 1.35",
        ),
        pytest.param(
            ARGS.format("DynamicResources", "{bindingTimeout: 60s}"),
            "1.35",
            "args.bindingTimeout: expected nothing while feature gate DRADeviceBindingConditions",
            id="the same in 1.35, where its gate is off",
        ),
        pytest.param(
            ARGS.format(
                "NodeResourcesFit",
                f"{{scoringStrategy: {{type: LeastAllocated, requestedToCapacityRatio: {SHAPE}}}}}",
            ),
            "1.36",
            "expected nothing unless type is RequestedToCapacityRatio",
            id="a shape that is not used",
        ),
        pytest.param(
            ARGS.format(
                "NodeResourcesFit",
                f"{{scoringStrategy: {{type: LeastAllocated, requestedToCapacityRatio: {SHAPE}}}}}",
            ),
            "1.35",
            "",
            id="up to 1.35 it may be there",
        ),
        pytest.param(
            ARGS.format(
                "NodeResourcesFit",
                "{scoringStrategy: {type: LeastAllocated, requestedToCapacityRatio: {shape: []}}}",
            ),
            "1.35",
            "scoringStrategy.shape: expected at least one point",
            id="but not without points",
        ),
    ],
)
def test_fields_of_other_releases(profile: str, release: str, expected: str) -> None:
    found = faults(release, profile)

    assert expected in found
    assert bool(found) is bool(expected)


@pytest.mark.parametrize(("release", "word"), [("1.33", "utilization "), ("1.34", "")])
def test_words_of_1_33(release: str, word: str) -> None:
    points = (UtilizationShapePoint(5, 1), UtilizationShapePoint(5, 2))
    ratio = RequestedToCapacityRatioParam(points)
    strategy = ScoringStrategy(type="RequestedToCapacityRatio", requested_to_capacity_ratio=ratio)
    args, problems, found = (
        NodeResourcesFitArgs(scoring_strategy=strategy),
        Problems(),
        find_release(release),
    )

    validate_args(args, "args", problems, FeatureGates(release=found))

    [error] = upstream_errors(problems[0], {}, found)
    assert error.detail == f"{word}values must be sorted in increasing order"
