from typing import Any

import msgspec
import pytest

from bayplan.api.schema.fields import FIELDS
from bayplan.api.schema.unknown import UnknownField, schema_type, strict_type, unknown_fields

POD = "core.v1.Pod"


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        pytest.param({"nodeSelecter": {}}, "nodeSelecter", "nodeSelector", id="a misspelt field"),
        pytest.param({"nodeselector": {}}, "nodeselector", "nodeSelector", id="another case"),
        pytest.param({"zzz": 1}, "zzz", "a field of PodSpec", id="similar to none"),
        pytest.param(
            {"containers": [{}, {"resources": {"request": {}}}]},
            "containers[1].resources.request",
            "requests",
            id="within a list",
        ),
        pytest.param(
            {"containers": [{"env": [{"nam": 1}]}]},
            "containers[0].env[0].nam",
            "name",
            id="a part without effect",
        ),
    ],
)
def test_unknown_field_is_named_with_the_most_similar(
    spec: dict[str, Any], path: str, expected: str
) -> None:
    tree = {"spec": spec}

    assert unknown_fields(tree, POD) == [UnknownField(f"spec.{path}", expected)]
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(tree), type=strict_type(POD))


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param({"metadata": {"labels": {"any": "key"}}}, id="keys of a map"),
        pytest.param({"spec": None, "metadata": {"labels": None}}, id="nulls"),
        pytest.param({"spec": {"containers": [{"name": 7}]}}, id="scalars of another type"),
    ],
)
def test_known_fields_are_accepted(tree: dict[str, Any]) -> None:
    assert unknown_fields(tree, POD) == []
    msgspec.json.decode(msgspec.json.encode(tree), type=strict_type(POD))


def test_values_of_a_wrong_form_are_passed_over() -> None:
    assert unknown_fields({"spec": [], "metadata": {"labels": 1}, "status": "x"}, POD) == []


@pytest.mark.parametrize("name", FIELDS.names)
def test_every_type_of_the_table_has_a_strict_one(name: str) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(strict_type(name))}

    assert fields == set(FIELDS.of(name))


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        pytest.param("v1", "Pod", POD, id="core"),
        pytest.param(
            "resource.k8s.io/v1", "ResourceClaim", "resource.v1.ResourceClaim", id="group"
        ),
        pytest.param("apps/v1beta1", "Deployment", "", id="a version that the table does not have"),
    ],
)
def test_schema_type_of_a_kind(api_version: str, kind: str, expected: str) -> None:
    assert schema_type(api_version, kind) == expected
