"""Counterfactuals of pods with devices: the change reported for each kind of rejection helps, and no part of it is
superfluous."""

from typing import Any

import pytest

from bayplan.answers import find_counterfactual
from tests.answers.changed_cluster import check, make, make_view, web_pod, zone_node

pytest.importorskip("cel_expr_python", reason="expressions need the extra `dra`")

GROUP = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
CLASS = make(
    "DeviceClass",
    "gpu",
    GROUP,
    spec={"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
)
ONE_GPU = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}
TWO_GPUS = {
    "devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu", "count": 2}}]}
}


def devices(node: str, *names: str) -> dict[str, Any]:
    """The devices of a node, all of one model."""
    listed = [{"name": name, "attributes": {"model": {"string": "a"}}} for name in names]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed}
    return make("ResourceSlice", f"{node}-gpus", GROUP, spec=spec)


def claim(name: str, spec: dict[str, Any], node: str = "", *held: str) -> dict[str, Any]:
    """A claim, with devices of a node if it has any."""
    results = [{"request": "g", "driver": DRIVER, "pool": node, "device": each} for each in held]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
    status = {"status": {"allocation": allocation}} if held else {}
    return make(
        "ResourceClaim", name, GROUP, metadata={"namespace": "default"}, spec=spec, **status
    )


def user(**entry: str) -> dict[str, Any]:
    """A pod that uses one claim."""
    return web_pod(resourceClaims=[{"name": "g", **entry}])


TEMPLATE = make(
    "ResourceClaimTemplate", "t", GROUP, metadata={"namespace": "default"}, spec={"spec": ONE_GPU}
)


@pytest.mark.parametrize(
    ("manifests", "expected", "texts"),
    [
        pytest.param(
            [devices("m", "d0"), claim("c", ONE_GPU), user(resourceClaimName="c")],
            ["create ResourceSlice/n-more-gpu.example.com "],
            [f"a device more of {DRIVER} like d0 on n"],
            id="a node without devices gets one of a model that others have",
        ),
        pytest.param(
            [devices("m", "d0"), claim("c", TWO_GPUS), user(resourceClaimName="c")],
            ["create ResourceSlice/n-more-gpu.example.com "],
            [f"2 devices more of {DRIVER} like d0 on n"],
            id="as many as the claim asks for",
        ),
        pytest.param(
            [devices("n", "d0"), claim("c", ONE_GPU, "m", "d0"), user(resourceClaimName="c")],
            ["remove ResourceClaim/c /status/allocation"],
            ["deallocate claim default/c"],
            id="a claim with a device of another node is allocated again",
        ),
        pytest.param(
            [devices("n", "d0"), user(resourceClaimName="c")],
            ["create ResourceClaim/c "],
            ["create claim default/c"],
            id="a claim that does not exist is created",
        ),
        pytest.param(
            [devices("n", "d0"), TEMPLATE, user(resourceClaimTemplateName="t")],
            ["add Pod/p /status/resourceClaimStatuses/-", "create ResourceClaim/p-g "],
            ["create claim default/p-g", "record claim p-g in the pod's status"],
            id="a claim of a template is created as its controller would",
        ),
    ],
)
def test_the_reported_change(
    manifests: list[dict[str, Any]], expected: list[str], texts: list[str]
) -> None:
    whole = [zone_node(), zone_node("m"), CLASS, *manifests]
    view, pod = make_view(*whole)

    found = find_counterfactual(view, pod, "n")

    named = [f"{c.kind} {c.object.kind}/{c.object.name} {c.path}" for c in found.changes]
    assert sorted(named) == sorted(expected)
    assert sorted(change.text for change in found.changes) == texts
    check(found, whole, pod)


def test_the_devices_of_another_claim_may_be_freed_or_the_claim_dropped() -> None:
    whole = [
        zone_node(),
        CLASS,
        devices("n", "d0"),
        claim("held", ONE_GPU, "n", "d0"),
        claim("c", ONE_GPU),
        user(resourceClaimName="c"),
    ]
    view, pod = make_view(*whole)

    found = find_counterfactual(view, pod, "n")

    (step,) = found.steps
    ways = {step.goal, *(other.goal for other in step.alternatives)}
    assert ways == {
        f"a device more of {DRIVER} like d0 on n",
        "delete claim default/held, which frees its devices",
        "drop the devices",
    }
    check(found, whole, pod)
