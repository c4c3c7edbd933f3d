"""Overlay: manifests applied to a cluster: unchanged, new and changed objects."""

from typing import Any

from bayplan.api.wire.decode import decode_object
from bayplan.manifests.loader import ManifestPlace
from bayplan.sim import Manifests, Simulation, lay_over, manifests_of


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def make_file(*objects: Any) -> Manifests:
    places: list[Any] = [
        ManifestPlace("new.yaml", number, -1) for number in range(1, len(objects) + 1)
    ]
    return Manifests(list(objects), places)


def make_replica_set(replicas: int) -> Any:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d"}
    return make(
        "ReplicaSet",
        "web-1",
        "apps/v1",
        metadata={"uid": "r", "ownerReferences": [{**owner, "controller": True}]},
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    )


def make_running(name: str) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r"}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata = {
        "uid": name,
        "labels": {"app": "web"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    return make(
        "Pod",
        name,
        metadata=metadata,
        spec={"nodeName": "a", "containers": [container]},
        status={"phase": "Running"},
    )


NODE = make("Node", "a", status={"allocatable": {"cpu": "8", "pods": "20"}})
CLAIM = make(
    "PersistentVolumeClaim",
    "data",
    metadata={"uid": "c", "labels": {"old": "1"}},
    spec={"volumeName": "v", "accessModes": ["ReadWriteOnce"]},
    status={"phase": "Bound"},
)


def test_an_object_in_both_keeps_fields_the_manifest_does_not_mention() -> None:
    given = make(
        "PersistentVolumeClaim",
        "data",
        metadata={"uid": "other", "labels": {"new": "2"}},
        spec={"accessModes": ["ReadWriteMany"]},
    )

    merged, present = lay_over(manifests_of([NODE, CLAIM], "https://server"), make_file(given))

    claim: Any = merged.objects[1]
    assert present == []
    assert merged.objects[0] is NODE
    assert (claim.uid, claim.spec.volume_name, claim.status.phase) == ("c", "v", "Bound")
    assert claim.labels == {"old": "1", "new": "2"}
    assert claim.spec.access_modes == ("ReadWriteMany",)


def test_the_types_are_those_of_both() -> None:
    service, group = make("Service", "web"), make("PriorityClass", "high", "scheduling.k8s.io/v1")
    cluster = manifests_of([service], "the server")

    merged, _ = lay_over(cluster, make_file(group))

    assert merged.of_type(type(service)) == [service]
    assert merged.of_type(type(group)) == [group]
    assert cluster.of_type(type(group)) == []


def test_places_name_the_file_or_the_server() -> None:
    given = make("PersistentVolumeClaim", "data")
    new = make("Namespace", "shop")

    merged, _ = lay_over(manifests_of([NODE, CLAIM], "https://server"), make_file(given, new))

    assert [merged.place_of(obj) for obj in merged.objects] == [
        "https://server",
        "new.yaml: document 1",
        "new.yaml: document 2",
    ]


def test_an_existing_pod_is_unchanged_and_reported() -> None:
    running = make_running("web-1-a")
    again = make("Pod", "web-1-a", spec={"containers": [{"name": "c"}]})

    merged, present = lay_over(manifests_of([NODE, running], "server"), make_file(again))

    assert merged.objects == [NODE, running]
    assert present == [again]


def test_a_scaled_up_deployment_keeps_its_pods_and_creates_the_rest() -> None:
    there = [NODE, make_replica_set(2), make_running("web-1-a"), make_running("web-1-b")]
    template: Any = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "image": "app:2", "resources": {"requests": {"cpu": "1"}}}]
        },
    }
    deployment = make(
        "Deployment",
        "web",
        "apps/v1",
        spec={
            "replicas": 5,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    )

    merged, _ = lay_over(manifests_of(there, "server"), make_file(deployment))
    report = Simulation(merged.objects, seed=1).run()

    assert len(report.placed) == 3
    assert {"web-1-a", "web-1-b"}.isdisjoint(result.pod.name for result in report.placed)
