"""The flag --feature-gates: names and values; the rules of gates are in tests/framework."""

import pytest

from bayplan.config.gates import parse_feature_gates
from bayplan.config.load import parse_config
from bayplan.errors import ConfigError
from bayplan.releases.feature_gates import FeatureGates


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("GenericWorkload=true", {"GenericWorkload": True}, id="one"),
        pytest.param(
            " GenericWorkload = true , SchedulerAsyncPreemption=0,",
            {"GenericWorkload": True, "SchedulerAsyncPreemption": False},
            id="two with blanks",
        ),
        pytest.param("AllAlpha=F,AllBeta=f", {"AllAlpha": False, "AllBeta": False}, id="all"),
        pytest.param("SidecarContainers=true", {"SidecarContainers": True}, id="locked, as it is"),
        pytest.param(
            "GenericWorkload=true,GenericWorkload=false",
            {"GenericWorkload": False},
            id="the last counts",
        ),
    ],
)
def test_gates_are_read(text: str, gates: dict[str, bool]) -> None:
    assert parse_feature_gates(text).settings == gates


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            "GenericWorkload", "GenericWorkload: expected true or false; got nothing", id="no value"
        ),
        pytest.param(
            "GenericWorkload=yes",
            'GenericWorkload: expected true or false; got "yes"',
            id="another value",
        ),
        pytest.param(
            "SchedulerQueueingHint=true",
            "unrecognized feature gate: SchedulerQueueingHint; did you mean SchedulerQueueingHints?",
            id="a misspelt name",
        ),
        pytest.param(
            "SidecarContainers=false",
            "cannot set feature gate SidecarContainers to false, feature is locked to true",
            id="a locked gate",
        ),
        pytest.param(
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: "
            "[GenericWorkload]",
            id="a gate that needs another",
        ),
        pytest.param(
            "NativeHistograms=true",
            "NativeHistograms=true is not implemented: metrics are served as text, in which histograms are "
            "classic; native ones need the protobuf format",
            id="a position that is not implemented",
        ),
    ],
)
def test_invalid_gates_are_rejected(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates(text)

    assert str(caught.value) == f"--feature-gates: {fault}"


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates("x=true,GangScheduling=5")

    assert len(str(caught.value).splitlines()) == 2


def test_gates_passed_to_the_reader_are_checked() -> None:
    data = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

    with pytest.raises(ConfigError, match=r"^featureGates: unrecognized feature gate: Best$"):
        parse_config(data, feature_gates={"Best": True})


def test_an_emulated_version_is_taken() -> None:
    gates = parse_feature_gates("GenericWorkload=true", version="1.35")

    assert isinstance(gates, FeatureGates)
    assert not gates.enabled("DRAConsumableCapacity")
