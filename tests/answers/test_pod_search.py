"""Pods by the name of their owner: any kind that makes pods."""

from typing import Any

import pytest

from bayplan.answers.pod_search import find_pods
from bayplan.answers.stage import Stage
from bayplan.api.custom_workloads import CustomWorkload
from bayplan.api.wire.decode import decode_object
from bayplan.errors import InputError
from bayplan.testing.builders import make_node

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "c"}]}}
RAY = {
    "headGroupSpec": {"rayStartParams": {}, "template": TEMPLATE},
    "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "template": TEMPLATE}],
}


def custom(kind: str, name: str, spec: Any, owner: str = "") -> Any:
    metadata: dict[str, Any] = {"name": name, "namespace": "ml", "uid": name}
    if owner:
        metadata["ownerReferences"] = [reference("RayJob", owner)]
    return decode_object(
        {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    )


def reference(kind: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "name": name,
        "uid": name,
        "controller": True,
    }


def pod(name: str, owner: str = "", namespace: str = "ml") -> Any:
    owned = {"ownerReferences": [reference("RayCluster", owner)]} if owner else {}
    metadata = {"name": name, "namespace": namespace, **owned}
    return decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **TEMPLATE})


def find(target: str, *objects: Any, namespace: str | None = None) -> list[str]:
    stage = Stage([make_node("a"), *objects])
    stage.begin()
    customs = [obj for obj in objects if isinstance(obj, CustomWorkload)]
    return [found.name for found in find_pods(stage.view(), target, namespace, customs)]


JOB = custom("RayJob", "train", {"rayClusterSpec": RAY})


@pytest.mark.parametrize("word", ["rayjob", "RayJob", "rayjobs", "rayjobs.ray.io", "rayjob.ray.io"])
def test_the_pods_that_are_made_for_a_kind_of_the_table(word: str) -> None:
    assert len(find(f"{word}/train", JOB)) == 3
    assert len(find(f"{word}/ml/train", JOB)) == 3
    assert len(find(f"{word}/train", JOB, namespace="ml")) == 3


def test_owners_are_followed_through_custom_workloads() -> None:
    cluster = custom("RayCluster", "c1", RAY, owner="train")

    found = find("rayjob/train", cluster, pod("head", "c1"), pod("other"))
    assert "head" in found
    assert len(found) == 3, "the others are made"
    assert find("raycluster/c1", pod("head", "c1"), pod("other")) == ["head"]


def test_a_cluster_that_is_missing_is_named_after_its_job() -> None:
    assert find("rayjob/train", pod("head", "train-raycluster-x1y2z")) == ["head"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        pytest.param("rayjob/tran", 'RayJob "tran": .* such as train', id="a similar name"),
        pytest.param("pytorchjob/x", 'PyTorchJob "x": expected one of the cluster', id="none"),
    ],
)
def test_a_workload_that_is_not_there(target: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        find(target, JOB)


def test_a_namespace_with_the_name_of_a_kind() -> None:
    assert find("workflow/step", pod("step", namespace="workflow")) == ["step"]


def deployment(namespace: str) -> Any:
    labels = {"app": "web"}
    return decode_object(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, **TEMPLATE},
            },
        }
    )


def test_a_name_without_a_kind_is_that_of_the_only_workload() -> None:
    assert len(find("web", deployment("shop"))) == 2
    assert len(find("shop/web", deployment("shop"), deployment("other"))) == 2
    assert find("web", deployment("shop"), pod("web")) == ["web"]
    for target, objects in (
        ("pod/web", [deployment("shop")]),
        ("web", [deployment("shop"), deployment("other")]),
    ):
        with pytest.raises(InputError, match="expected a pod of the cluster"):
            find(target, *objects)
