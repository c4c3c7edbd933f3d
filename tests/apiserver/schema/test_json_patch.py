"""JSON patch."""

from copy import deepcopy
from typing import Any

import pytest

from bayplan.api.schema.strategic import PatchError
from bayplan.apiserver.schema.json_patch import json_patch

DOCUMENT = {"a": {"b": [1, 2, 3]}, "c~/d": "x"}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([], DOCUMENT, id="nothing to do"),
        pytest.param(
            [{"op": "add", "path": "/a/b/1", "value": 9}],
            {"a": {"b": [1, 9, 2, 3]}, "c~/d": "x"},
            id="added before an element",
        ),
        pytest.param(
            [{"op": "add", "path": "/a/b/-", "value": 9}],
            {"a": {"b": [1, 2, 3, 9]}, "c~/d": "x"},
            id="added at the end",
        ),
        pytest.param(
            [{"op": "remove", "path": "/a/b/0"}],
            {"a": {"b": [2, 3]}, "c~/d": "x"},
            id="an element removed",
        ),
        pytest.param(
            [{"op": "replace", "path": "/c~0~1d", "value": "y"}],
            {"a": {"b": [1, 2, 3]}, "c~/d": "y"},
            id="escaped name replaced",
        ),
        pytest.param(
            [{"op": "move", "from": "/a/b", "path": "/e"}],
            {"a": {}, "c~/d": "x", "e": [1, 2, 3]},
            id="moved",
        ),
        pytest.param(
            [{"op": "copy", "from": "/a/b/2", "path": "/a/x"}],
            {"a": {"b": [1, 2, 3], "x": 3}, "c~/d": "x"},
            id="copied",
        ),
        pytest.param(
            [{"op": "test", "path": "/a/b", "value": [1, 2, 3]}, {"op": "remove", "path": "/a"}],
            {"c~/d": "x"},
            id="test holds",
        ),
    ],
)
def test_json_patch(operations: list[dict[str, Any]], expected: Any) -> None:
    before = deepcopy(DOCUMENT)

    assert json_patch(before, operations) == expected
    assert before == DOCUMENT, "the document itself is left alone"


@pytest.mark.parametrize(
    ("operations", "unprocessable"),
    [
        pytest.param({"op": "add"}, False, id="no list"),
        pytest.param([1], False, id="no object"),
        pytest.param([{"op": "swap", "path": "/a"}], False, id="unknown operation"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], False, id="no pointer"),
        pytest.param([{"op": "add", "path": "/a/b"}], False, id="no value"),
        pytest.param([{"op": "remove", "path": "/x"}], True, id="nothing to remove"),
        pytest.param([{"op": "replace", "path": "/a/b/7", "value": 1}], True, id="no such element"),
        pytest.param([{"op": "add", "path": "/c~0~1d/x", "value": 1}], True, id="within a text"),
        pytest.param([{"op": "test", "path": "/a/b/0", "value": 2}], True, id="test fails"),
        pytest.param([{"op": "test", "path": "/a/b/0", "value": True}], True, id="true is not one"),
        pytest.param([{"op": "remove", "path": ""}], False, id="the whole document"),
    ],
)
def test_json_patch_refuses(operations: Any, unprocessable: bool) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch(DOCUMENT, operations)

    assert caught.value.is_unprocessable is unprocessable
