"""Changes: what they do to manifests, and what cannot be done."""

from typing import Any

import pytest

from bayplan.answers import Change, ChangeKind, ObjectRef, apply_changes
from bayplan.answers.changes import pointer
from bayplan.errors import InputError

POD = ObjectRef(kind="Pod", namespace="default", name="p")
MANIFEST: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a/b": "1"}},
    "spec": {"taints": [{"key": "x"}, {"key": "y", "effect": "NoSchedule", "more": 1}]},
}


def change(kind: str, path: str, to: Any = None, before: Any = None) -> Change:
    return Change(kind=ChangeKind(kind), object=POD, path=path, from_=before, to=to)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(
            change("replace", "/metadata/labels/a~1b", "2", "1"),
            ("metadata", {"name": "p", "labels": {"a/b": "2"}}),
            id="a label whose key has a slash",
        ),
        pytest.param(
            change("remove", "/metadata/labels/a~1b"),
            ("metadata", {"name": "p", "labels": {}}),
            id="a label goes",
        ),
        pytest.param(
            change("add", "/status/nominatedNodeName", "n"),
            ("status", {"nominatedNodeName": "n"}),
            id="what the path leads through is made",
        ),
        pytest.param(
            change("add", "/status/conditions/-", 1),
            ("status", {"conditions": [1]}),
            id="the first item of a list that was not there",
        ),
        pytest.param(
            change("remove", "/spec/taints/0", before={"key": "y", "effect": "NoSchedule"}),
            ("spec", {"taints": [{"key": "x"}]}),
            id="an item that is no longer where it was is found by what it is",
        ),
        pytest.param(
            change("add", "/spec/taints/-", {"key": "z"}),
            ("spec", {"taints": [*MANIFEST["spec"]["taints"], {"key": "z"}]}),
            id="an item more",
        ),
        pytest.param(
            change("replace", "/spec/taints/0/key", "z"),
            ("spec", {"taints": [{"key": "z"}, MANIFEST["spec"]["taints"][1]]}),
            id="a field of an item",
        ),
    ],
)
def test_a_field_changes(made: Change, expected: tuple[str, Any]) -> None:
    before = repr(MANIFEST)

    [changed] = apply_changes([MANIFEST], [made])

    assert changed[expected[0]] == expected[1]
    assert repr(MANIFEST) == before, "what was given is not touched"


def test_objects_come_and_go() -> None:
    other = {"kind": "Node", "metadata": {"name": "n"}}
    node = ObjectRef(kind="Node", name="n")

    made = apply_changes([MANIFEST], [Change(kind=ChangeKind.CREATE, object=node, to=other)])
    left = apply_changes(made, [Change(kind=ChangeKind.DELETE, object=POD)])

    assert (made, left) == ([MANIFEST, other], [other])


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(change("remove", "/metadata/labels/none"), id="no such field"),
        pytest.param(change("remove", "/spec/taints/7"), id="no such item"),
        pytest.param(change("remove", "/spec/taints/0", before={"key": "q"}), id="no item like it"),
        pytest.param(change("replace", "/kind/below", 1), id="below a text"),
        pytest.param(change("replace", "", 1), id="no path"),
        pytest.param(
            Change(kind=ChangeKind.DELETE, object=ObjectRef(kind="Node", name="q")), id="no object"
        ),
    ],
)
def test_what_cannot_be_done_is_an_error_with_its_place(wrong: Change) -> None:
    with pytest.raises(InputError, match="expected"):
        apply_changes([MANIFEST], [wrong])


def test_pointers_escape_what_they_must() -> None:
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"
