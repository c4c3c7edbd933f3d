"""Tests of a pod that names one claim twice: kube-scheduler takes devices for each entry."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan import Cluster, simulate

CLASS = "resource.k8s.io/v1"


def cluster(devices: int) -> list[dict[str, Any]]:
    """A node with devices, a claim for one of them, and a pod that names the claim twice."""
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    entries = [{"name": name, "resourceClaimName": "shared"} for name in ("x", "y")]
    used = [{"name": "x"}, {"name": "y"}]
    named = {"namespace": "default"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        },
        {"apiVersion": CLASS, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {
            "apiVersion": CLASS,
            "kind": "ResourceSlice",
            "metadata": {"name": "a"},
            "spec": {
                "driver": "d.example.com",
                "nodeName": "a",
                "pool": pool,
                "devices": [{"name": f"dev-{number}"} for number in range(devices)],
            },
        },
        {
            "apiVersion": CLASS,
            "kind": "ResourceClaim",
            "metadata": {"name": "shared", **named},
            "spec": {"devices": {"requests": [request]}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", **named},
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"claims": used}}],
                "resourceClaims": entries,
            },
        },
    ]


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_two_devices_are_found_and_the_second_write_fails_the_first_attempt(version: str) -> None:
    result = simulate(Cluster.of(*cluster(2)), kubernetes_version=version)

    (pod,) = result.pods
    assert (pod.attempt.node_name, pod.attempts) == ("a", 2)


def test_one_device_is_not_enough_for_two_entries() -> None:
    result = simulate(Cluster.of(*cluster(1)))

    (pod,) = result.pods
    assert not pod.is_placed
    assert "1 cannot allocate all claims" in pod.attempt.message
