"""Gates that v1.36 has locked and that an emulated version can still switch off."""

from __future__ import annotations

import pytest

from bayplan.config.defaults import default_plugins
from bayplan.releases.feature_gates import FeatureGates
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.devices import claiming, make_class, make_request, make_slice
from bayplan.testing.devices import make_claim as make_device_claim
from bayplan.testing.storage import claim_volume, make_claim, make_storage_class, make_volume
from tests.rig.scenarios import Scenario

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

DEVICES = (
    "DRAAdminAccess",
    "DRAPrioritizedList",
    "DRASchedulerFilterTimeout",
    "DynamicResourceAllocation",
)
BOUND = ""


def gates(*off: str) -> FeatureGates:
    """The gates of v1.34 with these switched off."""
    return FeatureGates(dict.fromkeys(off, False), version="1.34")


def message(scenario: Scenario) -> str:
    """Message of the pod's attempt; empty when it is bound."""
    (attempt,) = scenario.run()
    return BOUND if scenario.pod("pod").node_name else attempt.message


@pytest.mark.parametrize(
    ("off", "device"),
    [
        pytest.param((), "d0", id="on: it gets one"),
        pytest.param(DEVICES, "", id="off: the pod is bound without"),
    ],
)
def test_a_claim_for_a_device(off: tuple[str, ...], device: str) -> None:
    scenario = Scenario(
        make_node("a"),
        make_class("gpu"),
        make_slice("s", "d0", node="a"),
        make_device_claim("c"),
        feature_gates=gates(*off),
    )
    scenario.add(claiming("c"))

    assert message(scenario) == BOUND

    allocation = scenario.cluster.get("ResourceClaim", "default", "c").allocation
    found = [] if allocation is None else [result.device for result in allocation.devices.results]
    assert found == ([device] if device else [])


def test_without_the_gate_a_claim_that_is_missing_holds_up_no_pod() -> None:
    scenario = Scenario(make_node("a"), feature_gates=gates(*DEVICES))
    scenario.add(claiming("missing"))

    assert message(scenario) == BOUND


def test_a_pod_that_fits_nowhere_says_that_the_plugin_is_off() -> None:
    scenario = Scenario(make_node("a", cpu="1"), feature_gates=gates(*DEVICES))
    scenario.add(make_pod("pod", cpu="2"))

    assert "plugin disabled" in message(scenario)


def test_the_plugin_is_a_default_with_the_gate_only() -> None:
    def names(*off: str) -> frozenset[str]:
        return default_plugins(gates(*off)).names()

    assert names() - names(*DEVICES) == {"DynamicResources"}


ADMIN = make_device_claim("c", make_request(adminAccess=True))


@pytest.mark.parametrize(
    ("off", "expected"),
    [
        pytest.param((), BOUND, id="on: a device that is in use"),
        pytest.param(
            ("DRAAdminAccess",),
            "claim default/c, request gpu: admin access is requested, but the feature is disabled",
            id="off: an error",
        ),
    ],
)
def test_a_claim_with_admin_access(off: tuple[str, ...], expected: str) -> None:
    scenario = Scenario(
        make_node("a"),
        make_class("gpu"),
        make_slice("s", "d0", node="a"),
        make_device_claim("other", devices=["a/d0"], node="a"),
        ADMIN,
        feature_gates=gates(*off),
    )
    scenario.add(claiming("c"))

    found = message(scenario)

    assert (found == expected) if expected == BOUND else (expected in found)


FAST = {"volumeAttributesClassName": "fast"}
GATE = "VolumeAttributesClass"
REFUSED = (
    "unsupported volumeAttributesClassName is set on claim default/c when the feature-gate "
    "VolumeAttributesClass is disabled"
)


@pytest.mark.parametrize(
    ("off", "claim", "volume", "expected"),
    [
        pytest.param((), FAST, FAST, BOUND, id="on: equal classes"),
        pytest.param((GATE,), FAST, FAST, REFUSED, id="off: a claim with a class is an error"),
        pytest.param((GATE,), {}, {}, BOUND, id="off: none has a class"),
        pytest.param((GATE,), {}, FAST, "find available", id="off: a volume with one is not used"),
    ],
)
def test_a_claim_and_a_volume_with_attributes(
    off: tuple[str, ...], claim: dict[str, str], volume: dict[str, str], expected: str
) -> None:
    scenario = Scenario(
        make_node("a"),
        make_storage_class(),
        make_volume("v", spec=volume),
        make_claim("c", spec=claim),
        feature_gates=gates(*off),
    )
    scenario.add(make_pod("pod", spec={"volumes": [claim_volume("c")]}))

    (attempt,) = scenario.run()
    scenario.scheduler.binding_tools.parts.executor.close()  # type: ignore[attr-defined]  # what still waits for a volume

    if expected == BOUND:
        assert attempt.node_name == "a"
    else:
        assert expected in attempt.message
