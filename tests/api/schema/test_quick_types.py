"""Quick types: the walk through the fields accepts all that they accept, and finds no unknown field in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.schema.fields import FIELDS
from bayplan.api.schema.input_check import (
    _check_struct,
    is_certainly_valid,
    quick_type,
    unknown_fields,
)
from bayplan.apiserver.registry.resource_table import RESOURCES
from tests.rig.api_server import workload_tree
from tests.rig.trees import pod_tree

SCHEMAS = sorted({resource.schema for resource in RESOURCES if resource.schema in FIELDS})
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, -1, 2**31, 2**63, 1.0, 1.5, "", "a", "5%"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("a"), inner, max_size=1),
    max_leaves=3,
)


def test_all_kinds_but_those_that_contain_themselves_or_bytes_have_one() -> None:
    without = {schema.rpartition(".")[2] for schema in SCHEMAS if quick_type(schema) is None}

    assert without >= {"CustomResourceDefinition", "ConfigMap", "Secret"}
    assert not without & {"Deployment", "Job", "Node", "Pod", "ReplicaSet", "Service"}


@pytest.mark.parametrize(
    ("tree", "schema"),
    [
        pytest.param(pod_tree("a"), "core.v1.Pod", id="a pod"),
        pytest.param(workload_tree("Deployment", "a", 1), "apps.v1.Deployment", id="a deployment"),
    ],
)
def test_ordinary_objects_need_no_walk(tree: dict[str, Any], schema: str) -> None:
    assert is_certainly_valid(tree, schema)


@given(st.data())
def test_what_is_certain_is_what_the_walk_finds(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(SCHEMAS))
    tree = draw_struct(data, schema, 0)

    if is_certainly_valid(tree, schema):
        unknown: list[str] = []
        _check_struct(tree, schema, "", "", unknown)  # raises when a type is wrong
        assert unknown == []


def draw_struct(data: st.DataObject, schema: str, depth: int) -> dict[str, Any]:
    """An object with a few fields, mostly of the right form."""
    fields = FIELDS.of(schema)
    names = data.draw(st.lists(st.sampled_from([*fields, "unknown"]), max_size=3, unique=True))
    tree: dict[str, Any] = {}
    for name in names:
        kind = fields[name].type if name in fields else None
        if kind is not None and kind.form == "struct" and depth < 4:
            tree[name] = draw_struct(data, kind.name, depth + 1)
        elif kind is not None and kind.form == "list" and kind.item and kind.item.form == "struct":
            tree[name] = [draw_struct(data, kind.item.name, depth + 1)] if depth < 4 else []
        else:
            tree[name] = data.draw(VALUES)
    return tree


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        pytest.param({"metadata": {"generation": 1.0}}, [], id="a whole number with a point"),
        pytest.param({"spec": {"nodeNam": "a"}}, ["spec.nodeNam"], id="an unknown field"),
    ],
)
def test_what_is_not_certain_is_walked_through(value: dict[str, Any], unknown: list[str]) -> None:
    assert unknown_fields(value, "core.v1.Pod") == unknown
