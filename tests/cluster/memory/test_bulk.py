"""Pods that are added together: admitted and stored as if they were added one by one."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.pod import Pod
from bayplan.api.wire.decode import decode_object
from bayplan.api.wire.encode import to_dict
from bayplan.cluster.memory.admission import Admission
from bayplan.cluster.memory.object_store import MemoryCluster
from bayplan.cluster.memory.pod_index import PodIndex
from tests.rig.trees import pod_of

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "ScheduleAnyway",
    "matchLabelKeys": ["app"],
    "labelSelector": {"matchLabels": {"a": "b"}},
}
KINDS: list[dict[str, Any]] = [
    {},
    {"priority": 5},
    {"runtimeClassName": "gv"},
    {"topologySpreadConstraints": [SPREAD]},
]
RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "l", "namespace": "limited"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]},
}
CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "gv"},
    "handler": "gv",
    "overhead": {"podFixed": {"cpu": "50m"}},
}
OWNERS = [
    [],
    [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}],
]


@st.composite
def pods(draw: st.DrawFn) -> list[Pod]:
    each = st.tuples(
        st.integers(0, 3), st.sampled_from(["", "n"]), st.sampled_from(["default", "limited"])
    )
    meta = st.tuples(st.sampled_from(["", "7", "x"]), st.booleans(), st.integers(0, 1))
    found = []
    for i, ((kind, node, space), (version, has_uid, owner)) in enumerate(
        draw(st.lists(st.tuples(each, meta), max_size=12))
    ):
        metadata = {
            "namespace": space,
            "labels": {"app": f"app-{i % 3}"},
            "resourceVersion": version,
            "ownerReferences": OWNERS[owner],
        }
        metadata |= {"uid": f"u{i}"} if has_uid else {}
        place = {"nodeName": node} if node else {}
        found.append(pod_of(f"p{i}", metadata=metadata, **KINDS[kind], **place))
    return found


def make_cluster() -> MemoryCluster:
    cluster = MemoryCluster()
    for tree in (RANGE, CLASS):
        cluster.add(decode_object(tree))  # type: ignore[type-var]  # a kind of the cluster
    return cluster


@settings(max_examples=60, deadline=None)
@given(pods())
def test_they_are_as_if_they_came_one_by_one(given_pods: list[Pod]) -> None:
    first, second = make_cluster(), make_cluster()
    admission = Admission(first)
    for pod in given_pods:
        first.add(admission.admit(pod))

    second.add_pods(Admission(second).admit_all(given_pods))

    stored = [list(cluster.list("Pod")) for cluster in (first, second)]
    assert list(map(to_dict, stored[1])) == list(map(to_dict, stored[0]))
    assert all(a.spec is b.spec for a, b in zip(*stored, strict=True))
    assert second.by_name("Pod").keys() == first.by_name("Pod").keys()


@settings(max_examples=40, deadline=None)
@given(pods(), st.data())
def test_an_index_that_is_read_late_is_the_same(given_pods: list[Pod], data: st.DataObject) -> None:
    early, late = PodIndex(), PodIndex()
    early.get("", "")
    changes = data.draw(st.lists(st.sampled_from(given_pods), max_size=6)) if given_pods else []
    for pod in (*given_pods, *(pod.with_node("m") for pod in changes)):
        assert early.add(pod) == late.add(pod)

    for pod in given_pods:
        assert late.get(pod.namespace, pod.name) is early.get(pod.namespace, pod.name)
        assert late.owner_of(pod) == early.owner_of(pod)
    for node in ("n", "m"):
        assert late.on_node(node) == early.on_node(node)
