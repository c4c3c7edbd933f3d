"""Store: names, uids, versions, notification, and binding."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.cluster.memory.created_names import make_uid
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.objects.object_index import ObjectIndex
from bayplan.errors import ConflictError, NotFoundError
from bayplan.trials import StillCluster
from tests.rig.objects import stored


class Recorder:
    """Records its notifications."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_add(self, obj: Any) -> None:
        self.told.append(f"add {obj.kind} {obj.name}")

    def on_update(self, old: Any, new: Any) -> None:
        self.told.append(f"update {old.name} {old.node_name or '-'} to {new.node_name or '-'}")

    def on_delete(self, obj: Any) -> None:
        self.told.append(f"delete {obj.kind} {obj.name}")


def make(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Any:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def make_cluster(*objects: Any) -> MemoryCluster:
    cluster = MemoryCluster()
    for obj in objects:
        cluster.add(obj)
    return cluster


def test_an_object_gets_a_uid_that_depends_on_its_name_alone() -> None:
    first = make_cluster(make("Node", "other")).add(make("Pod", "a"))
    second = MemoryCluster().add(make("Pod", "a"))

    assert first.uid == second.uid != ""
    assert MemoryCluster().add(make("Pod", "b")).uid != first.uid


def test_an_object_that_has_uid_and_version_keeps_them() -> None:
    pod = make("Pod", "a", metadata={"uid": "u-1", "resourceVersion": "77"})

    stored = MemoryCluster().add(pod)

    assert (stored.uid, stored.resource_version) == ("u-1", "77")


def test_versions_given_out_are_newer_than_those_of_the_input() -> None:
    cluster = make_cluster(make("Pod", "a", metadata={"resourceVersion": "77"}))

    assert cluster.add(make("PersistentVolumeClaim", "b")).resource_version == "78"


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_pods_and_nodes_get_a_version_with_their_first_change(kind: str) -> None:
    cluster = MemoryCluster()
    added = cluster.add(make(kind, "a"))

    changed = cluster.update(added)

    assert (added.resource_version, changed.resource_version) == ("", "1")


def test_a_recreated_name_gets_another_uid() -> None:
    cluster = MemoryCluster()
    first = cluster.add(make("Pod", "a"))
    cluster.delete(first)

    assert cluster.add(make("Pod", "a")).uid != first.uid


def test_a_pod_with_generate_name_gets_a_name() -> None:
    cluster = MemoryCluster()
    unnamed = decode_object({"kind": "Pod", "metadata": {"generateName": "web-"}})
    assert isinstance(unnamed, Pod)

    names = [cluster.add(unnamed).name for _ in range(2)]

    assert len(set(names)) == 2
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)


def test_a_second_object_of_the_same_name_is_rejected() -> None:
    cluster = make_cluster(make("Pod", "a"))
    cluster.add(make("Pod", "a", metadata={"namespace": "elsewhere"}))
    cluster.add(make("Service", "a"))

    with pytest.raises(ConflictError, match='Pod "default/a" exists already'):
        cluster.add(make("Pod", "a"))


def test_a_watcher_receives_existing_objects_pending_pods_last() -> None:
    cluster = make_cluster(
        make("Pod", "waits"),
        make("Pod", "runs", spec={"nodeName": "n"}),
        make("Node", "n"),
        make("Service", "s"),
    )
    recorder = Recorder()

    cluster.watch(recorder)

    assert recorder.told == ["add Service s", "add Node n", "add Pod runs", "add Pod waits"]


def test_a_watcher_receives_every_change() -> None:
    cluster, recorder = MemoryCluster(), Recorder()
    cluster.watch(recorder)

    cluster.add(make("Node", "n"))
    pod = cluster.add(make("Pod", "a"))
    cluster.bind(pod, "n")
    cluster.delete(pod)

    assert recorder.told == [
        "add Node n",
        "add Pod a",
        "update a - to n",
        "delete Pod a",
    ]


def test_the_version_changes_with_services_but_not_with_pods_and_nodes() -> None:
    cluster = make_cluster(make("Service", "s"))
    before = cluster.version

    cluster.add(make("Node", "n"))
    cluster.bind(cluster.add(make("Pod", "a")), "n")
    assert cluster.version == before

    cluster.delete(make("Service", "s"))
    assert cluster.version != before


def test_lists_are_in_insertion_order_across_namespaces() -> None:
    cluster = make_cluster(
        make("Pod", "z", metadata={"namespace": "two"}),
        make("Pod", "a", metadata={"namespace": "one"}),
        make("Pod", "b", metadata={"namespace": "two"}),
    )

    assert [pod.name for pod in cluster.list("Pod")] == ["z", "a", "b"]
    assert [pod.name for pod in cluster.list("Pod", "two")] == ["z", "b"]
    assert list(cluster.list("Service")) == []
    assert stored(cluster, Pod, "a", "one").name == "a"
    assert cluster.get("Pod", "two", "a") is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["here", "still"]),
            st.sampled_from(["put", "take"]),
            st.sampled_from(["Pod", "Service"]),
            st.sampled_from(["one", "two"]),
            st.sampled_from("abc"),
        ),
        max_size=30,
    ),
    st.integers(0, 30),
)
def test_a_list_of_a_namespace_is_the_part_of_the_whole_list(
    steps: list[tuple[str, str, str, str, str]], listed_first: int
) -> None:
    """Also of kinds that are listed by namespace before they change, and of a cluster with the same objects."""
    cluster = MemoryCluster()
    clusters: dict[str, ObjectIndex] = {"here": cluster, "still": StillCluster.of(cluster)}

    def check() -> None:
        for kind in ("Pod", "Service"):
            for space in ("one", "two", "three"):
                expected = [obj for obj in cluster.list(kind) if obj.namespace == space]
                for each in clusters.values():
                    assert list(each.list(kind, space)) == expected

    for number, (where, what, kind, space, name) in enumerate(steps):
        if number == listed_first:
            check()
        old = cluster.get(kind, space, name)
        if what == "put":
            clusters[where].put_in(make(kind, name, metadata={"namespace": space}))
        elif old is not None:
            clusters[where].take_out(old)
    check()


def test_binding_puts_the_pod_on_the_node() -> None:
    cluster = make_cluster(make("Node", "n"))
    pod = cluster.add(make("Pod", "a"))

    cluster.bind(pod, "n")

    bound = stored(cluster, Pod, "a")
    assert bound.node_name == "n"
    assert bound.uid == pod.uid
    assert bound.resource_version != pod.resource_version


@pytest.mark.parametrize(
    ("there", "error", "text"),
    [
        pytest.param(None, NotFoundError, "not found", id="the pod is gone"),
        pytest.param(
            {"spec": {"nodeName": "m"}}, ConflictError, 'on node "m" already', id="bound elsewhere"
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            ConflictError,
            "being deleted",
            id="terminating",
        ),
        pytest.param({"metadata": {"uid": "new"}}, ConflictError, "replaced", id="another one"),
    ],
)
def test_binding_is_rejected(
    there: dict[str, Any] | None, error: type[Exception], text: str
) -> None:
    cluster = make_cluster(make("Node", "n"))
    pod = make("Pod", "a", metadata={"uid": "old"})
    if there is not None:
        metadata = {"uid": "old", **there.get("metadata", {})}
        cluster.add(make("Pod", "a", **{**there, "metadata": metadata}))

    with pytest.raises(error, match=text):
        cluster.bind(pod, "n")


def test_binding_to_a_missing_node_is_rejected() -> None:
    cluster = MemoryCluster()
    pod = cluster.add(make("Pod", "a"))

    with pytest.raises(NotFoundError, match='Node "n"'):
        cluster.bind(pod, "n")


def test_eviction_deletes_the_victim_once_and_records_the_preemptor() -> None:
    cluster = make_cluster(make("Pod", "victim", spec={"nodeName": "n"}), make("Pod", "urgent"))
    victim, urgent = stored(cluster, Pod, "victim"), stored(cluster, Pod, "urgent")

    cluster.evict(victim, urgent)
    cluster.evict(victim, urgent)

    assert cluster.get("Pod", "default", "victim") is None
    assert cluster.evictions == [(victim, urgent)]


def test_a_nomination_can_be_cleared() -> None:
    cluster = make_cluster(make("Pod", "a", status={"nominatedNodeName": "n"}))

    cluster.clear_nomination(stored(cluster, Pod, "a"))

    assert stored(cluster, Pod, "a").nominated_node_name == ""


@pytest.mark.parametrize("path", ["Pod/default/a", "Node//node-1", "Pod/default/ü#3"])
def test_a_uid_is_a_name_based_uuid(path: str) -> None:
    namespace = uuid.UUID("6d6f6f72-696e-4700-8000-000000000000")

    assert make_uid(path) == str(uuid.uuid5(namespace, path))
