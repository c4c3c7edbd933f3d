"""Columns of custom resources: cells by the type of the column and of the value."""

from typing import Any

import pytest

from tests.rig.api_server import ServerInThread

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KINDS = ("string", "integer", "number", "boolean", "date")


@pytest.fixture
def widgets(api: ServerInThread) -> ServerInThread:
    """A server with widgets, which have a column of each type for their value."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    columns = [{"name": kind, "type": kind, "jsonPath": ".spec.value"} for kind in KINDS]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free}}},
        "additionalPrinterColumns": columns,
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [version],
    }
    api.make(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    api.settle()
    return api


@pytest.mark.parametrize(
    ("spec", "cells"),
    [
        pytest.param({"value": "a"}, ["a", None, None, None, "<invalid>"], id="a text"),
        pytest.param({"value": 3}, ["3", 3, 3.0, None, None], id="a number"),
        pytest.param({"value": 2.5}, ["2.5", 2, 2.5, None, None], id="a fraction"),
        pytest.param({"value": True}, ["true", None, None, True, None], id="a truth value"),
        pytest.param(
            {"value": {"a": [1]}}, ['{"a":[1]}', None, None, None, None], id="an object as JSON"
        ),
        pytest.param({}, [None] * 5, id="nothing"),
        pytest.param(
            {"value": "2025-12-31T23:59:30Z"},
            ["2025-12-31T23:59:30Z", None, None, None, "30s"],
            id="a moment, as the time since then",
        ),
    ],
)
def test_cells_by_type(widgets: ServerInThread, spec: dict[str, Any], cells: list[Any]) -> None:
    head = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    widgets.make(WIDGETS, {**head, "spec": spec})

    table = widgets.get(WIDGETS, Accept=TABLE).tree

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", *KINDS]
    assert table["rows"][0]["cells"] == ["w", *cells]
