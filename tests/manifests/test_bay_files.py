"""Files of the format of snapshots: they read as the same objects in YAML do, and damaged ones are refused."""

import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.wire.encode import to_dict
from bayplan.api.wire.sourced import keeping_sources
from bayplan.errors import InputError
from bayplan.manifests import bay_objects
from bayplan.manifests.bay_format import BlockKind, block, start_of_file
from bayplan.manifests.bay_objects import bay_pieces
from bayplan.manifests.loader import read_manifests, read_source
from bayplan.manifests.sources import Source
from bayplan.sim import Simulation

SPECS: list[dict[str, Any]] = [
    {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], "priority": 5},
    {"nodeName": "n2", "tolerations": [{"key": "a", "operator": "Exists"}]},
    {},
]
METAS: list[dict[str, Any]] = [
    {"namespace": "default", "labels": {"app": "web"}},
    {"namespace": "other", "uid": "u", "resourceVersion": "7", "generation": 2},
    {
        "namespace": "default",
        "annotations": {"a": "b"},
        "deletionTimestamp": "2026-01-01T00:00:09Z",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
        ],
    },
]
STATUSES: list[dict[str, Any]] = [
    {},
    {"phase": "Running", "startTime": "2026-01-01T00:00:01Z"},
    {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
]
NODES: list[dict[str, Any]] = [
    {},
    {"labels": {"zone": "a"}, "creationTimestamp": "2026-01-01T00:00:00Z", "uid": "nu"},
    {"annotations": {"x": "y"}, "resourceVersion": "3"},
]


def pod(i: int, spec: int, meta: int, status: int) -> dict[str, Any]:
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}", **METAS[meta]}}
    parts = {"spec": SPECS[spec], "status": STATUSES[status]}
    return tree | {name: part for name, part in parts.items() if part}


def node(i: int, meta: int) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "4", "pods": "10"}, "capacity": {"cpu": "4", "pods": "10"}}
    metadata = {"name": f"n{i}", **NODES[meta]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def other(i: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns{i}"}}


NUMBER = st.integers(0, 2)
OBJECTS = st.lists(
    st.tuples(st.just(pod), st.integers(0, 3), NUMBER, NUMBER)
    | st.tuples(st.just(node), NUMBER)
    | st.tuples(st.just(other)),
    max_size=25,
)


def bay(trees: list[dict[str, Any]]) -> bytes:
    return b"".join(bay_pieces(trees))


def read(data: bytes) -> list[Any]:
    return read_source(Source("cluster.bay", data, len(data))).objects


@settings(max_examples=60, deadline=None)
@given(OBJECTS, st.integers(1, 6))
def test_objects_are_those_of_json(drawn: list[Any], size: int) -> None:
    trees = [make(i, *rest) for i, (make, *rest) in enumerate(drawn)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": trees}).encode()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bay_objects, "BLOCK_OBJECTS", size)
        data = bay(trees)
    found, expected = read(data), read(text)

    assert list(map(to_dict, found)) == list(map(to_dict, expected))
    specs = [obj.spec for obj in expected if obj.kind == "Pod"]
    assert all(
        a.spec is b for a, b in zip([o for o in found if o.kind == "Pod"], specs, strict=True)
    )


def test_a_pod_without_a_column_for_a_field_is_written_as_a_whole() -> None:
    odd = pod(1, 0, 0, 0)
    odd["metadata"]["finalizers"] = ["a/b"]

    assert BlockKind.OBJECTS.value in bay([odd])
    assert [one.name for one in read(bay([pod(0, 0, 0, 0), odd, pod(2, 1, 1, 1)]))] == [
        "p0",
        "p1",
        "p2",
    ]


def test_files_and_folders_with_it_are_read_with_places(tmp_path: Path) -> None:
    (tmp_path / "cluster.bay").write_bytes(bay([node(0, 0), *(pod(i, 1, 0, 1) for i in range(3))]))

    manifests = read_manifests([tmp_path])

    assert [obj.name for obj in manifests.objects] == ["n0", "p0", "p1", "p2"]
    assert manifests.place_of(manifests.objects[2]).endswith("cluster.bay: document 1: items[2]")


def test_an_object_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cluster.bay"
    file.write_bytes(bay([node(0, 0), pod(0, 1, 0, 1), pod(0, 1, 0, 1)]))

    with pytest.raises(InputError, match='expected each name once; Pod "default/p0" exists'):
        Simulation(read_manifests([file]).objects)


def test_sources_are_kept_where_plugins_read_whole_objects() -> None:
    with keeping_sources():
        found = read(bay([pod(0, 1, 0, 1), node(1, 1)]))

    names = [msgspec.json.decode(obj.source)["metadata"]["name"] for obj in found]
    assert names == ["p0", "n1"]


GOOD = bay([node(0, 1), pod(0, 1, 2, 1), other(1)])


def altered(position: int) -> bytes:
    data = bytearray(GOOD)
    data[position] ^= 1
    return bytes(data)


def of_blocks(*blocks: tuple[BlockKind, Any]) -> bytes:
    return start_of_file() + b"".join(
        block(kind, json.dumps(tree).encode()) for kind, tree in blocks
    )


COLUMNS = {"name": ["a"], "uid": [""], "resourceVersion": [""], "node": [0], "created": [0]}
LIKE = [0, 0, 0, 0, 0, 0, 0, 0]
END = (BlockKind.END, {"objects": 1})


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        pytest.param(
            GOOD[:8] + struct.pack("<I", 2) + GOOD[12:],
            "expected a snapshot of format 1 or older; got format 2, which a newer version of bayplan reads",
            id="newer",
        ),
        pytest.param(GOOD[:10], "got one that is cut off", id="cut off at the start"),
        pytest.param(GOOD[:40], "got one that is cut off", id="cut off within a block"),
        pytest.param(GOOD[: GOOD.index(b"END.")], "got one that is cut off", id="without its end"),
        pytest.param(GOOD + b"x", "got bytes after its end", id="with more"),
        pytest.param(altered(60), "got other bytes than were written before byte", id="altered"),
        pytest.param(
            of_blocks((BlockKind.END, {"objects": 3})),
            "got 0 objects instead of 3",
            id="fewer objects",
        ),
        pytest.param(
            of_blocks(
                (BlockKind.PODS, {**COLUMNS, "likes": [LIKE], "like": [5], "status": [0]}), END
            ),
            "got a block that cannot be read",
            id="a number without common fields",
        ),
        pytest.param(
            of_blocks(
                (BlockKind.PODS, {**COLUMNS, "likes": [LIKE], "like": [0], "status": [-1]}), END
            ),
            "Expected `int` >= 0",
            id="a negative number",
        ),
        pytest.param(
            of_blocks(
                (BlockKind.PODS, {**COLUMNS, "likes": [LIKE], "like": [0], "status": []}), END
            ),
            "got a block that cannot be read",
            id="a column that is too short",
        ),
        pytest.param(
            of_blocks((BlockKind.PODS, {**COLUMNS, "labels": []}), END),
            "unknown field `labels`",
            id="an unknown column",
        ),
    ],
)
def test_damaged_and_newer_files_are_refused(data: bytes, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        read(data)

    assert str(caught.value).startswith("cluster.bay: expected ")
    assert fault in str(caught.value)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, len(GOOD)))
def test_no_damage_is_a_traceback(position: int, end: int) -> None:
    for data in (altered(position), GOOD[:end]):
        if data != GOOD and data[:8] == GOOD[:8]:
            with pytest.raises(InputError):
                read(data)
