"""The feature gates of device allocation, in both positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from bayplan.api.pod import Pod
from bayplan.config.load import parse_config
from bayplan.config.plugin_args import DynamicResourcesArgs
from bayplan.errors import ConfigError
from bayplan.framework import CycleState
from bayplan.framework.events import DEVICE_CLASS
from bayplan.plugins.dynamic_resources.claim_state import ClaimState
from bayplan.plugins.dynamic_resources.plugin import STATE, DynamicResources
from bayplan.plugins.node_resources_fit.plugin import NodeResourcesFit
from bayplan.scheduler.attempt import Outcome
from bayplan.table import ALL, Ints
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.devices import (
    claiming,
    make_choice,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.rig.scenarios import Scenario

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

SHARED = make_device("shared", shared=True, capacity={"memory": "80Gi"})
POOLED = make_device(
    "shared",
    shared=True,
    capacity={"memory": {"value": "80Gi", "requestPolicy": {"default": "1Gi"}}},
)
COUNTERS = {"card": {"slots": "1"}}
READY = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Failed"]}
BINDING = {"DRADeviceBindingConditions": False}


class Case(NamedTuple):
    """A cluster, the gates that are switched off, and the result of a pod with them on and off.

    The result is its devices, or the message of the failed attempt.
    """

    gates: dict[str, bool]
    objects: list[Any]
    on: str
    off: str
    pod: Pod = claiming("c")


CASES = {
    "DRAConsumableCapacity: a share of a device that is in use": Case(
        {"DRAConsumableCapacity": False},
        [
            make_slice("s", SHARED, node="a"),
            make_claim("c", make_request(capacity={"requests": {"memory": "1Gi"}})),
        ],
        "shared",
        "claim default/c, request gpu: has capacity requests, but the DRAConsumableCapacity "
        "feature is disabled",
    ),
    "DRAConsumableCapacity: an alternative with capacity": Case(
        {"DRAConsumableCapacity": False},
        [
            make_slice("s", SHARED, node="a"),
            make_claim(
                "c", make_choice("r", make_request("x", capacity={"requests": {"memory": "1"}}))
            ),
        ],
        "shared",
        "claim default/c, subrequest x: has capacity requests",
    ),
    "DRAConsumableCapacity: a request policy": Case(
        {"DRAConsumableCapacity": False},
        [
            make_slice(
                "s",
                make_device(
                    "strict",
                    capacity={
                        "memory": {
                            "value": "80Gi",
                            "requestPolicy": {"validRange": {"min": "1Gi", "max": "40Gi"}},
                        }
                    },
                ),
                node="a",
            ),
            make_claim("c"),
        ],
        "cannot allocate all claims",
        "strict",
    ),
    "DRAConsumableCapacity: another claim has a share": Case(
        {"DRAConsumableCapacity": False},
        [
            make_slice("s", POOLED, node="a"),
            make_claim(
                "other",
                devices=["a/shared"],
                status={
                    "allocation": {
                        "devices": {
                            "results": [
                                {
                                    "request": "gpu",
                                    "driver": "gpu.example.com",
                                    "pool": "a",
                                    "device": "shared",
                                    "shareID": "share",
                                    "consumedCapacity": {"memory": "1Gi"},
                                }
                            ]
                        }
                    }
                },
            ),
            make_claim("c"),
        ],
        "shared",
        "cannot allocate all claims",
    ),
    "DRAConsumableCapacity: an expression asks whether a device is shared": Case(
        {"DRAConsumableCapacity": False},
        [
            make_slice("s", SHARED, node="a"),
            make_claim("c", make_request("gpu", "device.allowMultipleAllocations")),
        ],
        "shared",
        "selector #0: CEL compile error",
    ),
    "DRADeviceBindingConditions: a device that must be made ready": Case(
        BINDING,
        [make_slice("s", make_device("slow", fields=READY), node="a"), make_claim("c")],
        "slow",
        "cannot allocate all claims",
    ),
    "DRAResourceClaimDeviceStatus: a device that must be made ready": Case(
        {
            **BINDING,
            "DRAResourceClaimDeviceStatus": False,
            "DRAResourceClaimGranularStatusAuthorization": False,
        },
        [make_slice("s", make_device("slow", fields=READY), node="a"), make_claim("c")],
        "slow",
        "cannot allocate all claims",
    ),
    "DRADeviceTaints: a tainted device": Case(
        {"DRADeviceTaints": False},
        [make_slice("s", make_device("sick", taints=["ecc=bad:NoSchedule"]), node="a")],
        "cannot allocate all claims",
        "sick",
    ),
    "DRAPartitionableDevices: a partition": Case(
        {"DRAPartitionableDevices": False},
        [
            make_slice("s", make_device("part", counters=COUNTERS), node="a", count=2),
            make_slice("t", node="a", pool="a", count=2, counters=COUNTERS),
        ],
        "part",
        "cannot allocate all claims",
    ),
    "DRAPartitionableDevices: a slice whose devices choose their nodes": Case(
        {"DRAPartitionableDevices": False},
        [
            make_slice(
                "s", make_device("here", fields={"nodeName": "a"}), perDeviceNodeSelection=True
            )
        ],
        "here",
        "cannot allocate all claims",
    ),
    "DRAPartitionableDevices: all devices, one of which is a partition": Case(
        {"DRAPartitionableDevices": False},
        [
            make_slice("s", "plain", make_device("part", counters=COUNTERS), node="a", count=2),
            make_slice("t", node="a", pool="a", count=2, counters=COUNTERS),
            make_claim("c", make_request(allocationMode="All")),
        ],
        "plain part",
        "cannot allocate all claims",
    ),
    "DRAPrioritizedList: a claim with alternatives": Case(
        {"DRAPrioritizedList": False},
        [
            make_slice("s", "d", node="a"),
            make_claim("c", make_choice("r", make_request("x"), make_request("y"))),
        ],
        "d",
        "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList feature "
        "is disabled",
    ),
    "DRAExtendedResource: a resource that the node lacks": Case(
        {"DRAExtendedResource": False},
        [make_slice("s", "d", node="a")],
        "d",
        "Insufficient example.com/gpu",
        make_pod("pod", requests={"example.com/gpu": 1}),
    ),
    "DRAExtendedResource: a resource by the name of the class": Case(
        {"DRAExtendedResource": False},
        [make_slice("s", "d", node="a")],
        "d",
        "Insufficient deviceclass.resource.kubernetes.io/gpu",
        make_pod("pod", requests={"deviceclass.resource.kubernetes.io/gpu": 1}),
    ),
}


def outcome(case: Case, gates: dict[str, bool]) -> str:
    """The devices that the pod is given, or the message of its attempt."""
    claims = [] if any(obj.name == "c" for obj in case.objects) else [make_claim("c")]
    scenario = Scenario(
        make_node("a"),
        make_class("gpu", resource="example.com/gpu"),
        *case.objects,
        *claims,
        feature_gates=gates,
    )
    scenario.add(case.pod)
    attempt = scenario.scheduler.schedule_one()
    assert attempt is not None
    given = [
        result.device
        for claim in scenario.cluster.list("ResourceClaim")
        if claim.name != "other" and claim.allocation is not None
        for result in claim.allocation.devices.results or ()
    ]
    if (
        attempt.outcome is Outcome.BINDING
    ):  # a pod that waits for its devices gives up without claim
        scenario.cluster.take_out(scenario.cluster.get("ResourceClaim", "default", "c"))
        scenario.advance(10)
    return " ".join(given) or attempt.message


@pytest.mark.parametrize("name", CASES)
def test_a_gate_in_both_positions(name: str) -> None:
    case = CASES[name]

    on, off = outcome(case, {}), outcome(case, case.gates)

    assert case.on in on if " " in case.on else on == case.on
    assert case.off in off if " " in case.off else off == case.off


@pytest.mark.parametrize(
    ("is_on", "has_timestamp"),
    [
        pytest.param(True, True, id="on: the claim says when it was allocated"),
        pytest.param(False, False, id="off: it does not"),
    ],
)
def test_when_a_claim_was_allocated(is_on: bool, has_timestamp: bool) -> None:
    scenario = Scenario(
        make_node("a"),
        make_class("gpu"),
        make_slice("s", "d", node="a"),
        make_claim("c"),
        feature_gates={"DRADeviceBindingConditions": is_on},
    )
    scenario.add(claiming("c"))

    scenario.run()

    allocation = scenario.cluster.get("ResourceClaim", "default", "c").allocation
    assert (allocation.allocation_timestamp is not None) is has_timestamp


class Answers:
    """Found the first alternative on one node, the second on the other."""

    def scores(self, rows: object) -> Ints:
        return np.array([8, 7])


@pytest.mark.parametrize(
    ("is_on", "scores"),
    [
        pytest.param(True, [100, 87], id="on: the first alternative scores higher"),
        pytest.param(False, [0, 0], id="off: no scores"),
    ],
)
def test_scores_of_alternatives_that_are_allocated(is_on: bool, scores: list[int]) -> None:
    table = make_table(make_node("a"), make_node("b"))
    handle = make_handle(table, feature_gates={"DRAPrioritizedList": is_on})
    plugin, state = DynamicResources.from_args(None, handle), CycleState()
    state.write(STATE, ClaimState([make_claim("c")], answers=Answers()))  # type: ignore[arg-type]

    found = plugin.normalize(plugin.score_rows(state, claiming("c"), table, ALL))

    assert found.tolist() == scores


# Arguments


HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def args_of(gates: dict[str, bool], **given: str) -> Any:
    """The arguments of the plugin in a configuration that gives these."""
    config = [{"name": "DynamicResources", "args": given}] if given else []
    data = {**HEAD, "profiles": [{"pluginConfig": config}]}
    return parse_config(data, feature_gates=gates).profiles[0].plugin_config["DynamicResources"]


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param({}, DynamicResourcesArgs(10, 600), id="on"),
        pytest.param(
            {"DRASchedulerFilterTimeout": False}, DynamicResourcesArgs(None, 600), id="no limit"
        ),
        pytest.param(BINDING, DynamicResourcesArgs(10, None), id="no conditions"),
    ],
)
def test_default_timeouts(gates: dict[str, bool], expected: DynamicResourcesArgs) -> None:
    assert args_of(gates) == expected


@pytest.mark.parametrize(
    ("gates", "field", "fault"),
    [
        pytest.param(
            {"DRASchedulerFilterTimeout": False},
            "filterTimeout",
            "expected nothing while feature gate DRASchedulerFilterTimeout is off; got 5s",
            id="the search",
        ),
        pytest.param(
            BINDING,
            "bindingTimeout",
            "expected nothing while feature gate DRADeviceBindingConditions or "
            "DRAResourceClaimDeviceStatus is off; got 5s",
            id="the binding",
        ),
    ],
)
def test_a_timeout_whose_gate_is_off_is_refused(
    gates: dict[str, bool], field: str, fault: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        args_of(gates, **{field: "5s"})

    path = f"scheduler.yaml: profiles[0].pluginConfig[0].args.{field}"
    assert str(caught.value) == f"{path}: {fault}"
    assert getattr(args_of({}, **{field: "5s"}), f"{field.removesuffix('Timeout')}_timeout_s") == 5


@pytest.mark.parametrize(
    ("is_on", "tries"),
    [
        pytest.param(True, 500_000, id="on: so many tries per second"),
        pytest.param(False, None, id="off: any number"),
    ],
)
def test_the_limit_of_a_search(is_on: bool, tries: int | None) -> None:
    handle = make_handle(feature_gates={"DRASchedulerFilterTimeout": is_on})

    plugin = DynamicResources.from_args(DynamicResourcesArgs(filter_timeout_s=1), handle)

    assert plugin._tries == tries


@pytest.mark.parametrize("is_on", [True, False])
def test_node_resources_fit_waits_for_device_classes(is_on: bool) -> None:
    handle = make_handle(feature_gates={"DRAExtendedResource": is_on})

    events = NodeResourcesFit.from_args(None, handle).events_to_register()

    assert (DEVICE_CLASS in [wanted.event.resource for wanted in events]) is is_on
