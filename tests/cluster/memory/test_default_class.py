"""The storage class of new claims that name none."""

from typing import Any

import pytest

from bayplan.api.storage import PersistentVolumeClaim
from bayplan.cluster.memory.default_class import is_default_class
from bayplan.sim.simulation import Simulation
from bayplan.testing.builders import make_node, make_object, make_pod

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
DRIVER = "csi.example.com"
REQUEST = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def make_class(name: str, annotation: str = IS_DEFAULT, created: str | None = None) -> Any:
    metadata = {"annotations": {annotation: "true"}, "creationTimestamp": created}
    return make_object("StorageClass", name, metadata=metadata, provisioner=DRIVER)


def make_claim(name: str = "claim", **spec: Any) -> Any:
    metadata = {"annotations": spec.pop("annotations", {})}
    status = spec.pop("status", {})
    return make_object(
        "PersistentVolumeClaim",
        name,
        namespace="default",
        metadata=metadata,
        spec=REQUEST | spec,
        status=status,
    )


def run(*objects: Any) -> Simulation:
    simulation = Simulation([make_node("n"), *objects], seed=0)
    simulation.proceed()
    return simulation


def stored(simulation: Simulation, name: str = "claim") -> PersistentVolumeClaim:
    found = simulation.cluster.get("PersistentVolumeClaim", "default", name)
    assert isinstance(found, PersistentVolumeClaim)
    return found


def make_volume() -> Any:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    return make_object("PersistentVolume", "vol", spec=spec | {"hostPath": {"path": "/x"}})


def make_user() -> Any:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}
    return make_pod("p", spec={"volumes": [volume]})


def test_a_claim_that_names_a_volume_of_no_class_waits_for_ever_beside_a_default_class() -> None:
    simulation = run(make_claim(volumeName="vol"), make_volume(), make_class("std"), make_user())

    assert stored(simulation).spec.storage_class_name == "std"
    assert stored(simulation).status.phase == "Pending"
    pod = simulation.cluster.get("Pod", "default", "p")
    assert pod is not None
    assert not pod.node_name
    assert "unbound immediate PersistentVolumeClaims" in simulation.message_of(pod)


def test_without_a_default_class_such_a_claim_is_bound() -> None:
    simulation = run(make_claim(volumeName="vol"), make_volume(), make_user())

    assert stored(simulation).status.phase == "Bound"


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param({}, "std", id="none"),
        pytest.param({"storageClassName": ""}, "", id="an empty name is a class"),
        pytest.param({"storageClassName": "other"}, "other", id="another class"),
        pytest.param({"annotations": {BETA_CLASS: "old"}}, None, id="the annotation is a class"),
        pytest.param({"annotations": {BETA_CLASS: ""}}, None, id="an empty annotation, too"),
        pytest.param(
            {"volumeName": "vol", "status": {"phase": "Pending"}}, None, id="created before"
        ),
    ],
)
def test_only_new_claims_without_a_class_get_the_default(
    claim: dict[str, Any], expected: str | None
) -> None:
    simulation = run(make_claim(**claim), make_class("std"))

    assert stored(simulation).spec.storage_class_name == expected


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([make_class("b"), make_class("a")], "a", id="the first by name"),
        pytest.param(
            [
                make_class("a", created="2024-01-01T00:00:00Z"),
                make_class("b", created="2025-01-01T00:00:00Z"),
            ],
            "b",
            id="the newest",
        ),
        pytest.param([make_class("old", BETA_DEFAULT)], "old", id="marked by the beta annotation"),
    ],
)
def test_which_of_several_classes_is_the_default(classes: list[Any], expected: str) -> None:
    assert stored(run(*classes, make_claim())).spec.storage_class_name == expected


def test_the_annotation_must_be_true() -> None:
    assert is_default_class({IS_DEFAULT: "true"})
    assert not is_default_class({IS_DEFAULT: "false", BETA_DEFAULT: "yes"})


def test_claims_of_stateful_sets_and_of_ephemeral_volumes_get_it_before_a_volume_is_found() -> None:
    template = {"spec": REQUEST}
    labels = {"app": "db"}
    stateful = make_object(
        "StatefulSet",
        "db",
        namespace="default",
        spec={
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": REQUEST}],
        },
    )
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}
    pod = make_pod("p", spec={"volumes": [volume]})

    simulation = run(make_volume(), make_class("std"), stateful, pod)

    assert stored(simulation, "data-db-0").spec.storage_class_name == "std"
    assert stored(simulation, "p-tmp").spec.storage_class_name == "std"
    assert stored(simulation, "data-db-0").spec.volume_name != "vol"
