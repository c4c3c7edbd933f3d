"""NodeVolumeLimits: in-tree volumes of Portworx by release."""

from typing import Any

import pytest

from bayplan.framework import SUCCESS, CycleState, Status
from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits
from bayplan.releases.feature_gates import FeatureGates
from bayplan.releases.release import find_release
from bayplan.table import ALL
from bayplan.testing.builders import make_handle, make_node, make_table
from bayplan.testing.storage import make_csi_node
from tests.plugins.test_node_volume_limits import FULL, PORTWORX, bound, using


@pytest.mark.parametrize(
    ("release", "migrated", "expected"),
    [
        pytest.param("1.36", [], FULL, id="from 1.36 on everywhere"),
        pytest.param("1.35", [], SUCCESS, id="up to 1.35 not where the driver has not taken over"),
        pytest.param("1.35", ["kubernetes.io/portworx-volume"], FULL, id="where it has"),
    ],
)
@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        pytest.param([], ["1", "2"], id="volumes of the pod"),
        pytest.param(["1"], ["2"], id="one that is there"),
    ],
)
def test_portworx_by_release(
    release: str, migrated: list[str], expected: Status, there: list[str], wanted: list[str]
) -> None:
    def disk(name: str) -> dict[str, Any]:
        return {"portworxVolume": {"volumeID": name}}

    placed = [using(f"p{name}", disk(name), node_name="a") for name in there]
    table = make_table(make_node("a"), pods=placed)
    gates = FeatureGates(release=find_release(release))
    csi_node = make_csi_node("a", {PORTWORX: 1}, migrated)
    plugin = NodeVolumeLimits.from_args(None, make_handle(table, [csi_node], feature_gates=gates))
    pod = using("new", *[disk(name) for name in wanted])

    assert plugin.filter_rows(CycleState(), pod, table, ALL).status(0) == expected
    assert plugin.filter_node(CycleState(), pod, table.node_at(0)).code is expected.code


def test_portworx_volumes_of_the_driver_count_in_every_release() -> None:
    table = make_table(make_node("a"), pods=[using("p", "c", node_name="a")])
    gates = FeatureGates(release=find_release("1.35"))
    listed = [*bound("c", driver=PORTWORX), *bound("d", driver=PORTWORX)]
    handle = make_handle(table, [*listed, make_csi_node("a", {PORTWORX: 1})], feature_gates=gates)
    plugin = NodeVolumeLimits.from_args(None, handle)

    assert plugin.filter_rows(CycleState(), using("q", "d"), table, ALL).status(0) == FULL
    assert plugin.filter_rows(CycleState(), using("r", "c"), table, ALL).status(0) == SUCCESS
