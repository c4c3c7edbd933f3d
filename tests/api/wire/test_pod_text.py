"""Pods from text: the same as from a parsed tree, whichever texts were decoded before."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.wire import pod_text
from bayplan.api.wire.decode import decode, decode_items, decode_object
from bayplan.api.wire.encode import to_dict

ACCESS = "kube-api-access-abc12"
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
SPECS: list[dict[str, Any]] = [
    {"containers": [CONTAINER]},
    {"containers": [CONTAINER], "nodeName": "n1"},
    {"containers": [CONTAINER], "nodeName": "n2"},
    {"nodeName": "n3", "containers": [CONTAINER]},
    {"containers": [CONTAINER], "nodeName": 'quo"te'},
    {"containers": [CONTAINER], "nodeName": None},
    {
        "containers": [{**CONTAINER, "volumeMounts": [{"name": ACCESS}]}],
        "volumes": [{"name": ACCESS}],
    },
    {"containers": [CONTAINER], "volumes": [{"name": "kube-api-access-zyx98", "projected": {}}]},
    {"volumes": [{"name": ACCESS, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
    {
        "volumes": [
            {"name": "kube-api-access-zyx98", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
        ]
    },
    {"volumes": [{"csi": {"driver": "d", "volumeAttributes": {"nodeName": "n1"}}}]},
    {
        "volumes": [{"csi": {"driver": "d", "volumeAttributes": {"nodeName": "n1"}}}],
        "nodeName": "n1",
    },
    {
        "volumes": [{"csi": {"driver": "d", "volumeAttributes": {"nodeName": "n2"}}}],
        "nodeName": "n1",
    },
    {"nodeSelector": {"nodeName": "n1"}},
    {"nodeSelector": {"nodeName": "n2"}},
    {},
]
METAS: list[dict[str, Any]] = [
    {"labels": {"app": "web"}},
    {"labels": None, "ownerReferences": None, "annotations": None},
    {
        "labels": {"app": "db", "a": "b"},
        "annotations": {"x": "y"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "1"}],
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 3,
    },
]
STATUSES: list[dict[str, Any] | None] = [
    {},
    {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    {
        "phase": "Running",
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
    },
    {"phase": "Failed", "message": "m" * 600},
]


def pod(i: int, spec: int, meta: int, status: int) -> dict[str, Any]:
    metadata = {"name": f"p{i}", "uid": f"u{i}", **METAS[meta]}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SPECS[spec]}
    return {**tree, "status": STATUSES[status]}


DRAWN = st.lists(
    st.tuples(st.integers(0, len(SPECS) - 1), st.integers(0, 2), st.integers(0, 3)), max_size=12
)


@settings(max_examples=80, deadline=None)
@given(DRAWN, st.sampled_from([None, 4]))
def test_a_pod_is_the_same_as_from_its_tree(drawn: list[Any], indent: int | None) -> None:
    trees = [pod(i, *rest) for i, rest in enumerate(drawn)]
    texts = [msgspec.json.encode(tree) for tree in trees]
    if indent:
        texts = [msgspec.json.format(text, indent=indent) for text in texts]

    found: Any = [decode(text) for text in texts]

    expected: Any = [decode_object(tree) for tree in trees]
    assert [one.spec for one in found] == [one.spec for one in expected], "specs are shared"
    assert [one.node_name for one in found] == [one.node_name for one in expected]
    assert list(map(to_dict, found)) == list(map(to_dict, expected))


def test_pods_of_a_workload_share_what_they_have_in_common() -> None:
    spec = {**SPECS[6], "nodeName": "n"}
    trees = [{**pod(i, 0, 2, 1), "spec": {**spec, "nodeName": f"n{i}"}} for i in range(3)]
    for i, tree in enumerate(trees):
        text = msgspec.json.encode(tree).replace(b"abc12", b"abc1%d" % i)
        trees[i] = msgspec.json.decode(text)

    pods: Any = decode_items(msgspec.json.encode(trees), "PodList")

    first = pods[0]
    assert [one.node_name for one in pods] == ["n0", "n1", "n2"]
    for one in pods[1:]:
        assert (one.spec, one.status) == (first.spec, first.status)
        assert one.status is first.status
        assert one.labels is first.labels
        assert one.owner_references is first.owner_references


def test_statuses_that_differ_share_their_phase_and_start_time() -> None:
    padding = "x" * pod_text.SHORT_STATUS
    trees = [
        {
            "metadata": {"name": f"p{i}"},
            "status": {
                "phase": "Running",
                "startTime": "2026-10-01T00:00:05Z",
                "podIP": f"10.0.0.{i}",
                "message": padding,
            },
        }
        for i in range(2)
    ]

    one, other = [each.status for each in decode_items(msgspec.json.encode(trees), "PodList") or ()]  # type: ignore[attr-defined]  # they are pods

    assert one is not other
    assert one.phase is other.phase
    assert one.start_time is other.start_time


def test_texts_are_kept_within_a_limit() -> None:
    memo: pod_text.TextMemo[int] = pod_text.TextMemo(100)

    for i in range(50):
        memo.put(b"%010d" % i, i)

    assert memo.get(b"%010d" % 49) == 49
    assert memo.get(b"%010d" % 30) is None


@pytest.mark.parametrize("spec", [{"containers": 3}, "text", {"containers": [{"name": 1}]}])
def test_an_invalid_part_is_reported_with_its_path(spec: Any) -> None:
    tree = {**pod(0, 0, 0, 0), "spec": spec}

    with pytest.raises(Exception, match=r"pod default/p0: spec") as of_tree:
        decode_object(tree)
    with pytest.raises(Exception, match=r"pod default/p0: spec") as of_text:
        decode(msgspec.json.encode(tree))

    assert str(of_text.value) == str(of_tree.value)
