import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.manifests import decoder, pieces
from bayplan.sim import read_manifests

UNKNOWN = "expected nodeSelector; got an unknown field"


def pod(name: str, uid: str = "", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": uid} if uid else {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [], **spec}}


def remarks(path: Path) -> list[str]:
    found = read_manifests([path]).unknown.values()
    return [str(remark).removeprefix(f"{path}: ") for remark in found]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to write; indented lists in it are read in pieces, also short ones."""
    monkeypatch.setattr(pieces, "LIST_FROM", 0)
    return tmp_path / "manifests"


def test_documents_of_yaml_name_document_object_and_path(path: Path) -> None:
    path.write_text(yaml.safe_dump_all([pod("a"), pod("b", nodeSelecter={})]))

    assert remarks(path) == [f"document 2: pod default/b: spec.nodeSelecter: {UNKNOWN}"]


@pytest.mark.parametrize("indent", [pytest.param(None, id="one line"), pytest.param(4, id="lines")])
@pytest.mark.parametrize("count", [pytest.param(3, id="short"), pytest.param(2000, id="long")])
@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_lists_name_the_first_item_and_count_the_others(
    path: Path, kind: str, count: int, indent: int | None
) -> None:
    items = [pod("good"), *(pod(f"p{i}", nodeSelecter={}) for i in range(count))]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": kind, "items": items}, indent=indent))

    assert remarks(path) == [
        f"document 1: items[1]: pod default/p0: spec.nodeSelecter: {UNKNOWN} "
        f"(and in {count - 1:,} more places)"
    ]


@pytest.mark.parametrize("indent", [pytest.param(None, id="one line"), pytest.param(4, id="lines")])
@pytest.mark.parametrize(
    ("uid", "count", "number"),
    [
        pytest.param("u", 2000, 0, id="a long list that a server wrote"),
        pytest.param("u", 2001, 0, id="a long list that a server wrote, whose last batch is short"),
        pytest.param("", 2000, 1, id="a long list that a server did not write"),
    ],
)
def test_long_lists_of_stored_objects_are_not_searched(
    path: Path, uid: str, count: int, number: int, indent: int | None
) -> None:
    items = [pod(f"p{i}", uid, nodeSelecter={}) for i in range(count)]
    path.write_text(json.dumps({"kind": "List", "items": items}, indent=indent))
    assert path.stat().st_size > decoder.LONG_LIST

    assert len(remarks(path)) == number


def test_unknown_fields_of_stored_objects_are_one_note(path: Path) -> None:
    items = [pod(f"p{i}", "u", nodeSelecter={}) for i in range(3)]
    path.write_text(json.dumps({"kind": "List", "items": items}))

    (note,) = read_manifests([path]).notes

    assert remarks(path) == []
    assert "pod default/p0: spec.nodeSelecter: expected nodeSelector; got an unknown" in note


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "Pod", "zzz": 1}, id="custom resource"
        ),
    ],
)
def test_other_kinds_are_not_checked(path: Path, tree: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(tree | {"metadata": {"name": "a"}}))

    assert remarks(path) == []


def test_what_a_timeline_adds_and_changes_is_checked(path: Path) -> None:
    events = [
        {"at": "5s", "add": [pod("a"), {"kind": "List", "items": [pod("b", nodeSelecter={})]}]},
        {
            "at": "6s",
            "change": [{"kind": "Node", "metadata": {"name": "n1"}, "spec": {"taint": []}}],
        },
    ]
    path.write_text(
        yaml.safe_dump({"apiVersion": "bayplan.dev/v1", "kind": "Timeline", "events": events})
    )

    assert remarks(path) == [
        f"document 1: timeline: events[0].add[1].spec.nodeSelecter: {UNKNOWN}",
        "document 1: timeline: events[1].change[0].spec.taint: expected taints; got an unknown field",
    ]
