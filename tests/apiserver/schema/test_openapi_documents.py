"""OpenAPI: the documents are complete and usable by kubectl."""

from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.api.schema.fields import FIELDS
from bayplan.apiserver.registry.resource_table import RESOURCES
from bayplan.apiserver.schema.openapi_documents import GVK, document_v2, document_v3, root_of
from bayplan.apiserver.schema.protobuf import _walk
from bayplan.apiserver.web.openapi import encode_v2


def references(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if isinstance(tree.get("$ref"), str):
            yield tree["$ref"]
        for value in tree.values():
            yield from references(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from references(value)


def test_every_resource_is_in_the_table_of_fields() -> None:
    assert [r.schema for r in RESOURCES if r.schema not in FIELDS] == []


def test_every_type_of_a_field_is_in_the_table() -> None:
    document = document_v2(RESOURCES)
    known = {f"#/definitions/{name}" for name in document["definitions"]}

    assert set(references(document)) <= known


@pytest.mark.parametrize("root", sorted({root_of(one) for one in RESOURCES}))
def test_documents_of_versions_are_self_contained(root: str) -> None:
    document = document_v3(one for one in RESOURCES if root_of(one) == root)
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}

    assert set(references(document)) <= known


def test_patch_has_the_field_validation_parameter() -> None:
    document = document_v3(one for one in RESOURCES if root_of(one) == "apis/apps/v1")

    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]

    assert patch[GVK] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert {"dryRun", "fieldValidation"} <= {p["name"] for p in patch["parameters"]}


def test_lists_have_their_merge_strategy() -> None:
    pod = document_v2(RESOURCES)["definitions"]["io.k8s.api.core.v1.PodSpec"]

    containers = pod["properties"]["containers"]

    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert pod["required"] == ["containers"]


def test_the_encoded_document_has_all_definitions() -> None:
    document = document_v2(RESOURCES)

    fields = dict(_walk(encode_v2(document)))

    names = [bytes(dict(_walk(entry))[1]).decode() for _, entry in _walk(fields[9])]
    assert names == list(document["definitions"])
    assert bytes(fields[1]) == b"2.0"
