"""Written versions: objects are written with the API version of the release, unless it lacks one of their fields."""

from typing import Any

import pytest

from bayplan.api.wire.served_versions import written_as
from bayplan.releases.release import RELEASES

OLD, NEW = "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1"


@pytest.mark.parametrize("kind", ["PodGroup", "Workload"])
@pytest.mark.parametrize(
    ("version", "given", "fields", "written"),
    [
        pytest.param("1.37", OLD, {}, NEW, id="newer release"),
        pytest.param("1.36", NEW, {}, OLD, id="older release"),
        pytest.param("1.37", OLD, {"disruptionMode": "PodGroup"}, OLD, id="a text is older"),
        pytest.param("1.36", NEW, {"disruptionMode": {"all": {}}}, NEW, id="an object is newer"),
        pytest.param("1.36", NEW, {"preemptionPolicy": "Never"}, NEW, id="a newer field"),
        pytest.param("1.37", NEW, {"preemptionPolicy": "Never"}, NEW, id="its own release"),
        pytest.param("1.34", OLD, {}, OLD, id="a release without groups"),
    ],
)
def test_groups(kind: str, version: str, given: str, fields: dict[str, Any], written: str) -> None:
    spec = fields if kind == "PodGroup" else {"podGroupTemplates": [{"name": "t", **fields}]}
    tree = {"apiVersion": given, "kind": kind, "metadata": {"name": "g"}, "spec": spec}

    assert written_as(tree, RELEASES[version].api_versions)["apiVersion"] == written


@pytest.mark.parametrize(
    ("kind", "version", "written"),
    [
        pytest.param("DeviceTaintRule", "1.37", "resource.k8s.io/v1", id="the same fields"),
        pytest.param("DeviceTaintRule", "1.35", "resource.k8s.io/v1beta2", id="other fields"),
        pytest.param("ResourceClaim", "1.33", "resource.k8s.io/v1beta2", id="other fields, too"),
    ],
)
def test_devices(kind: str, version: str, written: str) -> None:
    tree = {"apiVersion": "resource.k8s.io/v1beta2", "kind": kind, "metadata": {"name": "r"}}

    assert written_as(tree, RELEASES[version].api_versions)["apiVersion"] == written
