"""Feature gates: names, values, and gates that cannot be switched."""

import pytest

from bayplan.config import GATES, is_gate_on, parse_config, parse_feature_gates
from bayplan.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("GangScheduling=true", {"GangScheduling": True}, id="one"),
        pytest.param(
            " GangScheduling = true , SchedulerAsyncPreemption=0,",
            {"GangScheduling": True, "SchedulerAsyncPreemption": False},
            id="two with blanks",
        ),
        pytest.param("AllAlpha=T,AllBeta=F", {"AllAlpha": True, "AllBeta": False}, id="all"),
        pytest.param("SidecarContainers=true", {"SidecarContainers": True}, id="locked, as it is"),
        pytest.param(
            "GangScheduling=true,GangScheduling=false",
            {"GangScheduling": False},
            id="the last counts",
        ),
    ],
)
def test_gates_are_read(text: str, gates: dict[str, bool]) -> None:
    assert parse_feature_gates(text) == gates


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            "GangScheduling", "GangScheduling: expected true or false; got nothing", id="no value"
        ),
        pytest.param(
            "GangScheduling=yes",
            'GangScheduling: expected true or false; got "yes"',
            id="another value",
        ),
        pytest.param(
            "SchedulerQueueingHint=true",
            "SchedulerQueueingHint: expected SchedulerQueueingHints; got ",
            id="a misspelt name",
        ),
        pytest.param("x=true", "x: expected AllAlpha, AllBeta, ", id="no name"),
        pytest.param(
            "SidecarContainers=false",
            "SidecarContainers: expected true, to which the gate is locked; got false",
            id="a locked gate",
        ),
    ],
)
def test_invalid_gates_are_rejected(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates(text)

    assert str(caught.value).startswith(f"--feature-gates: {fault}")


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates("x=true,GangScheduling=5")

    assert len(str(caught.value).splitlines()) == 2


def test_gates_passed_to_the_reader_are_checked() -> None:
    data = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

    with pytest.raises(ConfigError, match=r"^featureGates: Best: .* got an unknown feature gate$"):
        parse_config(data, feature_gates={"Best": True})


@pytest.mark.parametrize("name", sorted(GATES))
def test_an_unset_gate_has_its_default(name: str) -> None:
    assert is_gate_on({}, name) is GATES[name].is_on
    if not GATES[name].is_locked:
        assert parse_feature_gates(f"{name}={not GATES[name].is_on}") == {
            name: not GATES[name].is_on
        }
