"""Feature gates: defaults, stages, locks, dependencies, emulated versions, and gates that are not implemented."""

import re

import pytest

from bayplan.config.internal_form import gate_notes
from bayplan.errors import ConfigError
from bayplan.releases.feature_gates import (
    ALL_ALPHA,
    ALL_BETA,
    CURRENT_VERSION,
    STAGE_GATES,
    FeatureGates,
    gates_of,
)
from bayplan.releases.feature_gates import GATES as ALL_GATES
from bayplan.releases.gate_effects import EFFECTS
from bayplan.releases.release import DEFAULT_RELEASE, RELEASES, find_release

GATES = gates_of(DEFAULT_RELEASE)
NAMES = sorted(GATES)


def needed_by(name: str) -> set[str]:
    """The gates that need gate `name`, directly or through others."""
    found = {gate.name for gate in GATES.values() if name in gate.needs}
    return found | {other for gate in found for other in needed_by(gate)}


def needs_of(name: str) -> set[str]:
    """The gates that gate `name` needs, directly or through others."""
    needs = set(GATES[name].needs)
    return needs | {other for gate in needs for other in needs_of(gate)}


def consistent(name: str, value: bool) -> dict[str, bool]:
    """Settings with `name` at `value`, and with the values that its dependencies require."""
    others = needs_of(name) if value else needed_by(name)
    states = {other: GATES[other].at(CURRENT_VERSION) for other in others}
    return {
        name: value,
        **{other: value for other, state in states.items() if state.default is not value},
    }


def fault_of(settings: dict[str, bool]) -> str:
    """The refusal of these settings, empty if they are taken."""
    try:
        FeatureGates(settings)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_an_unset_gate_has_its_default(name: str) -> None:
    assert FeatureGates().enabled(name) is GATES[name].at(CURRENT_VERSION).default


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in STAGE_GATES])
def test_a_gate_is_set_or_refused_with_a_reason(name: str, value: bool) -> None:
    state, settings = GATES[name].at(CURRENT_VERSION), consistent(name, value)
    effect = EFFECTS.get(name)

    fault = fault_of(settings)

    if state.is_locked and value is not state.default:
        shown, default = str(value).lower(), str(state.default).lower()
        text = f"cannot set feature gate {name} to {shown}, feature is locked to {default}"
        assert text in fault
    elif any(EFFECTS[n].missing is v for n, v in settings.items() if n in EFFECTS):
        assert "is not implemented: " in fault
        if effect is not None and effect.missing is value:
            assert effect.describe(value) in fault
    else:
        assert fault == ""
        assert FeatureGates(settings).enabled(name) is value
        assert FeatureGates(settings)[name] is value


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_an_effect_belongs_to_a_gate_and_its_default_is_implemented(name: str) -> None:
    effect = EFFECTS[name]

    assert effect.on
    assert effect.off
    gate = ALL_GATES[name]
    for version in gate.releases:
        assert effect.missing is not gate.at(version).default


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        (name, needed)
        for name in NAMES
        for needed in GATES[name].needs
        if not GATES[needed].at(CURRENT_VERSION).is_locked
    ],
)
def test_a_gate_that_is_on_requires_those_it_needs(name: str, needed: str) -> None:
    fault = fault_of({**consistent(name, True), needed: False})

    assert f"{name} is enabled, but depends on features that are disabled: [" in fault


@pytest.mark.parametrize(
    ("stage_gate", "left_out"),
    [
        pytest.param(ALL_ALPHA, ("NativeHistograms",), id="all alpha gates"),
        pytest.param(ALL_BETA, (), id="all beta gates"),
    ],
)
def test_a_stage_leaves_out_what_is_not_implemented(
    stage_gate: str, left_out: tuple[str, ...]
) -> None:
    gates = FeatureGates({stage_gate: True})

    assert gates.left_out == left_out
    assert not any(gates.enabled(name) for name in left_out)
    assert FeatureGates().left_out == ()
    for name in left_out:
        assert f"{name} is not on: {EFFECTS[name].on}" in gate_notes(gates)
        assert f"{name}=true is not implemented" in fault_of({stage_gate: True, name: True})


@pytest.mark.parametrize("stage_gate", [ALL_ALPHA, ALL_BETA])
@pytest.mark.parametrize("value", [True, False])
def test_all_gates_of_a_stage_are_set_together(stage_gate: str, value: bool) -> None:
    stage = STAGE_GATES[stage_gate]
    members = [n for n in NAMES if n not in STAGE_GATES and GATES[n].at("1.36").stage == stage]
    missing = {n: not value for n in members if n in EFFECTS and EFFECTS[n].missing is value}
    # A gate whose dependency is off is off, too.
    off = {other: False for n, on in missing.items() if not on for other in needed_by(n)}

    gates = FeatureGates({stage_gate: value, **off, **missing})

    assert {n for n in members if gates.enabled(n) is not value} == {*missing, *off}
    assert gates.enabled("SidecarContainers") is True


def test_a_gate_set_by_its_name_outweighs_its_stage() -> None:
    gates = FeatureGates({"SchedulerAsyncPreemption": True, ALL_BETA: False})

    assert gates.enabled("SchedulerAsyncPreemption")
    assert not gates.enabled("SchedulerPopFromBackoffQ")


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        pytest.param(
            "SchedulerQueueingHint", "; did you mean SchedulerQueueingHints?", id="a misspelt name"
        ),
        pytest.param("x", "", id="nothing similar"),
    ],
)
def test_an_unknown_gate_is_refused_with_a_suggestion(name: str, ending: str) -> None:
    assert fault_of({name: True}) == f"featureGates: unrecognized feature gate: {name}{ending}"


def test_all_mistakes_are_reported_at_once() -> None:
    fault = fault_of({"x": True, "SidecarContainers": False, "y": True})

    assert [line.partition(": ")[2].split()[0] for line in fault.splitlines()] == [
        "unrecognized",
        "cannot",
        "unrecognized",
    ]


def test_gates_of_other_components_are_named_as_without_effect() -> None:
    gates = FeatureGates({"KubeletPSI": True, "MemoryQoS": True, "SchedulerAsyncAPICalls": True})

    assert gates.without_effect() == ("KubeletPSI", "MemoryQoS")


@pytest.mark.parametrize(
    ("version", "is_on"),
    [
        pytest.param("1.36", True, id="beta and on"),
        pytest.param("1.35", False, id="alpha and off"),
        pytest.param("v1.34", False, id="alpha, written with a v"),
    ],
)
def test_an_emulated_version_has_its_own_defaults(version: str, is_on: bool) -> None:
    assert FeatureGates(version=version).enabled("DRAConsumableCapacity") is is_on


def test_a_gate_that_an_emulated_version_does_not_have_cannot_be_set() -> None:
    text = (
        "cannot set feature gate DRAListTypeAttributes to false, feature is PreAlpha at emulated "
        "version 1.35, min compatibility version 1.34"
    )
    with pytest.raises(ConfigError, match=re.escape(text)):
        FeatureGates({"DRAListTypeAttributes": False}, version="1.35")


def test_an_emulated_version_without_what_is_always_done_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"SchedulerQueueingHints=false is not implemented"):
        FeatureGates(version="1.31")


def test_an_emulated_version_must_be_a_version() -> None:
    with pytest.raises(ConfigError, match=r"expected a version such as 1\.36; got 'latest'"):
        FeatureGates(version="latest")


def test_gates_that_were_read_are_taken_as_they_are() -> None:
    gates = FeatureGates({"SchedulerAsyncAPICalls": True})

    assert FeatureGates.of(gates) is gates
    assert FeatureGates.of({"SchedulerAsyncAPICalls": True}).settings == gates.settings
    assert FeatureGates.of(None) is FeatureGates.of({})
    assert len(gates) == len(list(gates)) == len(GATES)


@pytest.mark.parametrize("version", list(RELEASES))
def test_every_release_has_its_gates(version: str) -> None:
    release = find_release(version)

    gates = FeatureGates(release=release)

    assert gates.release is release
    assert gates.version == version
    assert set(gates) == set(gates_of(release))
    assert all(gates.enabled(name) is gates_of(release)[name].at(version).default for name in gates)


@pytest.mark.parametrize(
    ("version", "name", "text"),
    [
        pytest.param(
            "1.37", "SidecarContainers", "v1.37 does not have it, only v1.33 to v1.36", id="removed"
        ),
        pytest.param(
            "1.35", "WorkloadWithJob", "v1.35 does not have it, only v1.36 to v1.37", id="later"
        ),
        pytest.param("1.37", "DRANodeAllocatableResources", "has another form", id="refused"),
    ],
)
def test_a_release_refuses_gates_that_it_lacks(version: str, name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        FeatureGates({name: True}, release=find_release(version))


def test_early_releases_do_not_check_what_gates_need() -> None:
    settings = {"DRAAdminAccess": True, "DynamicResourceAllocation": False}

    assert FeatureGates(settings, release=find_release("1.34")).enabled("DRAAdminAccess")
    with pytest.raises(ConfigError, match="locked"):
        FeatureGates(settings, release=find_release("1.35"))


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.33", "1.33"), ("v1.35.8", "1.35"), ("v1.36.2-gke.100+x", "1.36"), ("1.40", "1.37")],
)
def test_a_release_is_found_by_version(text: str, version: str) -> None:
    assert find_release(text).version == version


def test_gates_that_were_merged_have_the_position_of_the_other() -> None:
    on = FeatureGates({"GenericWorkload": True}, release=RELEASES["1.37"])
    off = FeatureGates(release=RELEASES["1.37"])

    assert on.enabled("GangScheduling")
    assert on["WorkloadAwarePreemption"]
    assert not off.enabled("GangScheduling")
