"""Pods that use neither volumes nor devices pass by the plugins that are about those."""

from typing import Any

import pytest

from bayplan.framework import SKIP, Code, CycleState, FilterPlugin, PreFilterPlugin, ScorePlugin
from bayplan.framework.diagnosis import Diagnosis
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_pod, make_table
from bayplan.testing.conformance import check_conformance

ALL_OF_THEM: list[type[PreFilterPlugin]] = [
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    DynamicResources,
]
TABLE = make_table(make_node("a"), make_node("b"))

CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}
CSI = {"csi": {"driver": "d"}}
IMAGE = {"image": {"reference": "r"}}
CONFIG = {"configMap": {"name": "m"}}
EMPTY_DIR: dict[str, Any] = {"emptyDir": {}}


def volume(source: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


DEVICES = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}


@pytest.mark.parametrize("plugin", ALL_OF_THEM)
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="no volumes"),
        pytest.param(volume(CONFIG), id="a config map"),
        pytest.param(volume(EMPTY_DIR), id="scratch space"),
        pytest.param(volume(IMAGE), id="an image"),
        pytest.param(volume(CSI), id="an inline CSI volume"),
    ],
)
def test_pods_that_do_not_use_them_pass(
    plugin: type[PreFilterPlugin], spec: dict[str, Any]
) -> None:
    made = plugin.from_args(None, make_handle(TABLE))

    assert made.pre_filter(CycleState(), make_pod(spec=spec), TABLE) == SKIP
    assert isinstance(made, FilterPlugin)
    verdict = made.filter_rows(CycleState(), make_pod(spec=spec), TABLE, ALL)
    assert verdict.feasible.tolist() == [True, True]


@pytest.mark.parametrize(
    "plugin", [VolumeRestrictions, VolumeBinding, VolumeZone, DynamicResources]
)
def test_pods_without_claims_are_not_refused_for_a_disk_of_another_kind(
    plugin: type[PreFilterPlugin],
) -> None:
    azure = volume({"azureDisk": {"diskName": "d", "diskURI": "u"}})

    assert plugin().pre_filter(CycleState(), make_pod(spec=azure), TABLE) == SKIP


def test_dynamic_resources_has_nothing_to_deallocate() -> None:
    plugin, state, pod = DynamicResources(), CycleState(), make_pod()
    assert plugin.pre_filter(state, pod, TABLE) == SKIP

    result, status = plugin.post_filter(state, pod, Diagnosis(TABLE))

    assert (status.code, status.message) == (Code.Unschedulable, "no new claims to deallocate")
    assert result.nominated_node_name is None


def test_dynamic_resources_fails_when_its_pre_filter_did_not_run() -> None:
    state = CycleState()
    state.unreached = frozenset({"DynamicResources"})
    _, status = DynamicResources().post_filter(state, make_pod(), Diagnosis(TABLE))

    assert (status.code, status.message) == (Code.Error, "not found")


def test_dynamic_resources_scores_nothing() -> None:
    plugin = DynamicResources()
    assert isinstance(plugin, ScorePlugin)

    assert plugin.score_rows(CycleState(), make_pod(), TABLE, ALL).tolist() == [0, 0]


@pytest.mark.parametrize("plugin", ALL_OF_THEM)
def test_conformance(plugin: type[PreFilterPlugin]) -> None:
    pods = [make_pod("p"), make_pod("q", spec=volume(CLAIM)), make_pod("r", spec=DEVICES)]

    check_conformance(plugin, pods, TABLE)
