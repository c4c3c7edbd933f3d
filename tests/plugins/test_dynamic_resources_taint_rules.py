"""DeviceTaintRules: taints that are added to the devices of drivers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bayplan.api.devices import DeviceTaintRule
from bayplan.testing.builders import Tree, make_node
from bayplan.testing.devices import (
    claiming,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_taint_rule,
)
from tests.rig.scenarios import Scenario

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

ON = {"DRADeviceTaintRules": True}
BROKEN = "broken=yes:NoSchedule"
TOLERATING = make_request(tolerations=[{"key": "broken", "operator": "Exists"}])


def claiming_one(
    *objects: object, devices: Sequence[str | Tree] = ("d0",), gates: dict[str, bool] = ON
) -> Scenario:
    """A node with devices of the pool `a`, and a pod that claims one."""
    scenario = Scenario(
        make_node("a"),
        make_class("gpu"),
        make_slice("s", *devices, node="a"),
        *objects,
        feature_gates=gates,
    )
    if scenario.cluster.get("ResourceClaim", "default", "c") is None:
        scenario.add(make_claim("c"))
    scenario.add(claiming("c"))
    return scenario


def is_bound(scenario: Scenario) -> bool:
    """Whether the pod has a node, once nothing is left to do."""
    scenario.run()
    return bool(scenario.cluster.get("Pod", "default", "pod").node_name)


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        pytest.param(make_taint_rule("r", BROKEN), False, id="an empty selector is any device"),
        pytest.param(
            make_taint_rule("r", BROKEN, driver="gpu.example.com", pool="a", device="d0"),
            False,
            id="all three of them match",
        ),
        pytest.param(make_taint_rule("r", BROKEN, driver="other"), True, id="another driver"),
        pytest.param(make_taint_rule("r", BROKEN, pool="b"), True, id="another pool"),
        pytest.param(make_taint_rule("r", BROKEN, device="d1"), True, id="another device"),
        pytest.param(
            make_taint_rule("r", "broken=yes:NoExecute", device="d0"), False, id="NoExecute"
        ),
        pytest.param(
            make_taint_rule("r", "broken=yes:None", device="d0"), True, id="a taint without effect"
        ),
    ],
)
def test_a_rule_is_about_the_devices_it_selects(rule: DeviceTaintRule, fits: bool) -> None:
    assert is_bound(claiming_one(rule)) is fits


def test_a_rule_without_selector_is_about_all_devices() -> None:
    rule = make_taint_rule("r", BROKEN)
    spec = type(rule.spec)(device_selector=None, taint=rule.spec.taint)

    assert not is_bound(claiming_one(type(rule)(metadata=rule.metadata, spec=spec)))


def test_a_request_may_tolerate_the_taint_of_a_rule() -> None:
    assert is_bound(claiming_one(make_taint_rule("r", BROKEN), make_claim("c", TOLERATING)))


def test_the_taints_of_the_driver_stay() -> None:
    own = make_device("d0", taints=["own=yes:NoSchedule"])
    rule = make_taint_rule("r", BROKEN)

    assert not is_bound(claiming_one(rule, make_claim("c", TOLERATING), devices=[own]))


def test_without_the_gate_rules_are_not_read() -> None:
    assert is_bound(claiming_one(make_taint_rule("r", BROKEN), gates={}))


def test_a_pod_is_tried_again_when_the_rule_goes() -> None:
    rule = make_taint_rule("r", BROKEN)
    scenario = claiming_one(rule)
    assert not is_bound(scenario)

    scenario.cluster.take_out(scenario.cluster.get("DeviceTaintRule", "", "r"))

    assert is_bound(scenario)


def test_a_rule_that_comes_later_counts() -> None:
    scenario = claiming_one(make_claim("d"), devices=["d0", "d1"])
    assert is_bound(scenario)

    scenario.add(make_taint_rule("r", BROKEN), claiming("d", name="late"))
    scenario.run()

    assert not scenario.cluster.get("Pod", "default", "late").node_name


def test_a_rule_about_no_slice_moves_no_pod() -> None:
    scenario = claiming_one(make_taint_rule("r", BROKEN))
    assert not is_bound(scenario)

    scenario.add(make_taint_rule("other", BROKEN, pool="b"))

    assert len(scenario.scheduler.queue.unschedulable) == 1
