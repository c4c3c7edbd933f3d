"""Strategic merge patch: lists merged by the key that the table of fields names."""

from copy import deepcopy
from typing import Any

import pytest

from bayplan.api.schema.strategic import PatchError, strategic_merge

POD = {
    "metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"]},
    "spec": {
        "containers": [
            {"name": "main", "image": "app:1", "args": ["-v"]},
            {"name": "side", "image": "side:1"},
        ],
        "tolerations": [{"key": "old"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}


def containers(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    return list(pairs)


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "side", "image": "side:2"}]}},
            [("main", "app:1"), ("side", "side:2")],
            id="merged by name",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "new", "image": "n"}]}},
            [("main", "app:1"), ("side", "side:1"), ("new", "n")],
            id="a new one is added",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "main", "$patch": "delete"}]}},
            [("side", "side:1")],
            id="deleted by name",
        ),
        pytest.param(
            {
                "spec": {
                    "containers": [{"$patch": "replace"}, {"name": "only", "image": "o"}],
                }
            },
            [("only", "o")],
            id="the list replaced",
        ),
        pytest.param(
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                    "containers": [{"name": "main", "image": "app:2"}],
                }
            },
            [("side", "side:1"), ("main", "app:2")],
            id="put in order",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}},
            [("side", "side:1"), ("main", "app:1")],
            id="only put in order",
        ),
    ],
)
def test_containers(patch: Any, expected: list[tuple[str, str]]) -> None:
    before = deepcopy(POD)

    merged = strategic_merge(before, patch, "core.v1.Pod")

    found = [(c["name"], c["image"]) for c in merged["spec"]["containers"]]
    assert found == expected
    assert before == POD, "the object itself is left alone"


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        pytest.param(
            {"metadata": {"labels": {"b": "2", "a": None}}},
            ("metadata", "labels"),
            {"b": "2"},
            id="maps are merged",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["y", "z"]}},
            ("metadata", "finalizers"),
            ["x", "y", "z"],
            id="a set grows",
        ),
        pytest.param(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}},
            ("metadata", "finalizers"),
            ["y"],
            id="out of a set",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "new"}]}},
            ("spec", "tolerations"),
            [{"key": "new"}],
            id="a list without key is replaced",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "data", "$retainKeys": ["name", "nfs"], "nfs": {}}]}},
            ("spec", "volumes"),
            [{"name": "data", "nfs": {}}],
            id="other sources of a volume go",
        ),
        pytest.param(
            {"metadata": {"$patch": "replace", "labels": {"z": "1"}}},
            ("metadata",),
            {"labels": {"z": "1"}},
            id="a map replaced",
        ),
    ],
)
def test_other_fields(patch: Any, path: tuple[str, ...], expected: Any) -> None:
    found: Any = strategic_merge(POD, patch, "core.v1.Pod")
    for step in path:
        found = found[step]

    assert found == expected


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param([], id="no object"),
        pytest.param({"spec": {"containers": [{"image": "x"}]}}, id="an element without key"),
        pytest.param({"spec": {"$patch": "turn"}}, id="unknown directive"),
    ],
)
def test_refused(patch: Any) -> None:
    with pytest.raises(PatchError):
        strategic_merge(POD, patch, "core.v1.Pod")
