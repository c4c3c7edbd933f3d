"""Changes: their effect on manifests, and their errors."""

from typing import Any

import pytest

from bayplan.answers import apply_changes
from bayplan.answers.manifest_changes import ChangeKind, ObjectChange, ObjectRef, pointer
from bayplan.errors import InputError

POD = ObjectRef(kind="Pod", namespace="default", name="p")
MANIFEST: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a/b": "1"}},
    "spec": {"taints": [{"key": "x"}, {"key": "y", "effect": "NoSchedule", "more": 1}]},
}


def change(kind: str, path: str, to: Any = None, before: Any = None) -> ObjectChange:
    return ObjectChange(kind=ChangeKind(kind), object=POD, path=path, from_=before, to=to)


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
            id="a label is removed",
        ),
        pytest.param(
            change("add", "/status/nominatedNodeName", "n"),
            ("status", {"nominatedNodeName": "n"}),
            id="missing parents of the path are created",
        ),
        pytest.param(
            change("add", "/status/conditions/-", 1),
            ("status", {"conditions": [1]}),
            id="the first item of a missing list",
        ),
        pytest.param(
            change("remove", "/spec/taints/0", before={"key": "y", "effect": "NoSchedule"}),
            ("spec", {"taints": [{"key": "x"}]}),
            id="an item that moved is found by its content",
        ),
        pytest.param(
            change("add", "/spec/taints/-", {"key": "z"}),
            ("spec", {"taints": [*MANIFEST["spec"]["taints"], {"key": "z"}]}),
            id="an item is appended",
        ),
        pytest.param(
            change("replace", "/spec/taints/0/key", "z"),
            ("spec", {"taints": [{"key": "z"}, MANIFEST["spec"]["taints"][1]]}),
            id="a field of an item",
        ),
    ],
)
def test_a_field_is_changed(made: ObjectChange, expected: tuple[str, Any]) -> None:
    before = repr(MANIFEST)

    [changed] = apply_changes([MANIFEST], [made])

    assert changed[expected[0]] == expected[1]
    assert repr(MANIFEST) == before, "the input is not modified"


def test_objects_are_created_and_deleted() -> None:
    other = {"kind": "Node", "metadata": {"name": "n"}}
    node = ObjectRef(kind="Node", name="n")

    made = apply_changes([MANIFEST], [ObjectChange(kind=ChangeKind.CREATE, object=node, to=other)])
    left = apply_changes(made, [ObjectChange(kind=ChangeKind.DELETE, object=POD)])

    assert (made, left) == ([MANIFEST, other], [other])


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(change("remove", "/metadata/labels/none"), id="no such field"),
        pytest.param(change("remove", "/spec/taints/7"), id="no such item"),
        pytest.param(
            change("remove", "/spec/taints/0", before={"key": "q"}), id="no item with this content"
        ),
        pytest.param(change("replace", "/kind/below", 1), id="below a text"),
        pytest.param(change("replace", "", 1), id="no path"),
        pytest.param(
            ObjectChange(kind=ChangeKind.DELETE, object=ObjectRef(kind="Node", name="q")),
            id="no object",
        ),
    ],
)
def test_an_impossible_change_is_an_error_with_its_path(wrong: ObjectChange) -> None:
    with pytest.raises(InputError, match="expected"):
        apply_changes([MANIFEST], [wrong])


def test_pointers_escape_slash_and_tilde() -> None:
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"
