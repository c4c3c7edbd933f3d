"""Checking: values of the wrong type, and unknown fields."""

from typing import Any

import pytest

from bayplan.api.schema.input_check import WrongTypeError, unknown_fields


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"nodeName": "a"}, [], id="known"),
        pytest.param({"nodname": "a"}, ["spec.nodname"], id="misspelt"),
        pytest.param(
            {"containers": [{"name": "a", "imagee": "x"}]},
            ["spec.containers[0].imagee"],
            id="within a list",
        ),
        pytest.param({"nodeSelector": {"anything": "goes"}}, [], id="keys of a map are free"),
        pytest.param({"nodeName": None}, [], id="null is absent"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": 2, "memory": "1Gi"}}}]},
            [],
            id="quantities may be numbers",
        ),
    ],
)
def test_unknown_fields(spec: Any, expected: list[str]) -> None:
    assert unknown_fields({"spec": spec}, "core.v1.Pod") == expected


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param([], "spec", id="a list for an object"),
        pytest.param({"nodeName": 1}, "spec.nodeName", id="a number for text"),
        pytest.param({"containers": {}}, "spec.containers", id="an object for a list"),
        pytest.param({"containers": ["x"]}, "spec.containers[0]", id="text for an element"),
        pytest.param({"hostNetwork": "yes"}, "spec.hostNetwork", id="text for a boolean"),
        pytest.param({"priority": 2**31}, "spec.priority", id="too large a number"),
        pytest.param({"priority": True}, "spec.priority", id="a boolean for a number"),
        pytest.param({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a", id="a number in a map"),
    ],
)
def test_wrong_type(spec: Any, path: str) -> None:
    with pytest.raises(WrongTypeError, match="cannot unmarshal") as caught:
        unknown_fields({"spec": spec}, "core.v1.Pod")

    assert path in str(caught.value)


def test_types_missing_from_the_table_are_not_checked() -> None:
    assert unknown_fields({"x": 1}, "example.v1.Thing") == []
