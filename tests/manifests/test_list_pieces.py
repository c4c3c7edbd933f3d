"""Long lists in pieces: the same objects and places as in one piece."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.errors import InputError
from bayplan.manifests import decoder, pieces
from bayplan.manifests.loader import read_source
from bayplan.manifests.sources import Source


def make(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


POD = make("Pod", "a", spec={"containers": [{"name": "c"}]})
ITEMS = st.sampled_from(
    [
        make("Pod", "p", spec={"nodeName": "n1"}),
        make("Pod", "q", spec={"nodeName": None}),
        make("Node", "n1"),
        make("Service", "s"),
        make("ConfigMap", "c"),
        {**make("Pod", "foreign"), "apiVersion": "example.com/v1"},
    ]
)


@given(
    st.lists(ITEMS, min_size=1, max_size=12), st.integers(1, 2000), st.sampled_from((4, 0, None))
)
def test_a_list_reads_the_same_in_pieces_of_any_size(
    items: list[Any], size: int, indent: int | None
) -> None:
    tree = {"apiVersion": "v1", "items": items, "kind": "List"}
    text = json.dumps(tree, indent=indent).encode()
    source = Source("list", text, len(text))
    whole = read_source(Source("list", json.dumps(tree).encode(), len(text)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LIST_FROM", 0)
        patch.setattr(decoder, "JSON_PIECE", size)
        cut = read_source(source)

    assert [f"{obj.kind} {obj.name}" for obj in cut.objects] == [
        f"{obj.kind} {obj.name}" for obj in whole.objects
    ]
    assert list(map(cut.place_of, cut.objects)) == list(map(whole.place_of, whole.objects))
    assert cut.unused == whole.unused


NESTED = {"apiVersion": "v1", "kind": "List", "items": [make("Pod", "x"), make("Node", "y1")]}
HEADS = st.sampled_from(
    [
        {"apiVersion": "v1", "kind": "List"},
        {"kind": "List"},
        {"apiVersion": "v1", "kind": "PodList"},
        {"apiVersion": "example.com/v1", "kind": "PodList"},
        {"apiVersion": "apps/v1", "kind": "DeploymentList"},
    ]
)


OWNED = make("Pod", "owned")
OWNED["metadata"]["ownerReferences"] = [
    {"apiVersion": "v1", "kind": "Thing", "name": str(i), "uid": str(i)} for i in range(3)
]


@given(
    HEADS,
    st.lists(st.just(POD) | ITEMS | st.just(NESTED) | st.just(OWNED), max_size=12),
    st.integers(1, 2000),
)
def test_a_list_without_line_breaks_reads_the_same_in_pieces(
    head: dict[str, Any], items: list[Any], size: int
) -> None:
    text = json.dumps({**head, "items": items}).encode()
    source = Source("list", text, len(text))
    whole = _read_or_fault(source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LIST_FROM", 0)
        patch.setattr(decoder, "JSON_PIECE", size)
        cut = _read_or_fault(source)

    assert cut == whole


def _read_or_fault(source: Source) -> Any:
    try:
        read = read_source(source)
    except InputError as error:
        return str(error)
    places = [read.place_of(obj) for obj in read.objects]
    return [f"{obj.kind} {obj.name}" for obj in read.objects], places, read.unused
