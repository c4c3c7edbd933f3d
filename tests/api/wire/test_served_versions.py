"""Served versions: versions of built-in kinds that v1.36 does not have are named with their successor."""

import pytest

from bayplan.api.rules.object_validation import storage_of
from bayplan.api.wire.served_versions import version_fault
from bayplan.apiserver.registry.resource_table import RESOURCES


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("extensions/v1beta1", "Deployment", "apps/v1"),
        ("extensions/v1beta1", "DaemonSet", "apps/v1"),
        ("extensions/v1beta1", "Ingress", "networking.k8s.io/v1"),
        ("apps/v1beta2", "StatefulSet", "apps/v1"),
        ("batch/v1beta1", "CronJob", "batch/v1"),
        ("policy/v1beta1", "PodDisruptionBudget", "policy/v1"),
        ("scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"),
        ("storage.k8s.io/v1beta1", "StorageClass", "storage.k8s.io/v1"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2"),
        ("resource.k8s.io/v1beta1", "ResourceSlice", "resource.k8s.io/v1"),
        ("v1", "Deployment", "apps/v1"),
    ],
)
def test_a_version_that_is_gone_has_its_successor(
    api_version: str, kind: str, expected: str
) -> None:
    assert version_fault(api_version, kind).startswith(f"expected {expected}; got {api_version}")


def test_devices_of_v1beta1_are_refused_with_what_differs() -> None:
    version = "resource.k8s.io/v1beta1"

    assert version_fault(version, "DeviceClass") == ""
    assert version_fault(version, "ResourceClaimTemplate") == (
        f"expected resource.k8s.io/v1; got {version}; a request has its fields in `exactly` there"
    )


def test_a_kind_that_is_gone_and_a_misspelt_one_are_named() -> None:
    assert "PodSecurityPolicy is gone since v1.25" in version_fault(
        "policy/v1beta1", "PodSecurityPolicy"
    )
    assert version_fault("apps/v1", "Deploymet") == "expected a kind of apps/v1; got Deploymet"


def test_all_served_kinds_pass() -> None:
    assert [one for one in RESOURCES if version_fault(one.api_version, one.kind)] == []


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshot"),
        ("gateway.networking.k8s.io/v1beta1", "HTTPRoute"),
        ("certificates.k8s.io/v1beta1", "ClusterTrustBundle"),
        ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
        ("argoproj.io/v1alpha1", "Rollout"),
    ],
)
def test_custom_and_beta_kinds_pass(api_version: str, kind: str) -> None:
    assert version_fault(api_version, kind) == ""


def test_storages_have_the_names_of_the_registry() -> None:
    checked = [
        one
        for one in RESOURCES
        if not one.is_review and not one.stored_as and one.group != "metrics.k8s.io"
    ]

    assert [storage_of(one.api_version, one.kind) for one in checked] == [
        one.storage for one in checked
    ]
