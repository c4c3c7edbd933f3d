"""Custom objects: named, decoded where a plugin reads them, patched, and written as they were."""

import re
from typing import Any

import pytest

from bayplan.api.custom import CustomObject, CustomResource, reading_custom
from bayplan.api.wire.decode import UnknownObject, decode_object, iter_objects
from bayplan.api.wire.encode import to_dict
from bayplan.api.wire.whole import apply_patch
from bayplan.errors import DecodeError

FOOS = CustomResource("foos.v1.example.com", "Foo")
RACKS = CustomResource("racks.v1.example.com", "Rack", is_namespaced=False)


def foo(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "a", "labels": {"x": "1"}, "managedFields": [{}]}
    return {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": metadata, **fields}


def decode(tree: dict[str, Any]) -> Any:
    with reading_custom([FOOS, RACKS]):
        return decode_object(tree)


def test_an_object_has_its_manifest_and_the_names_of_others() -> None:
    found = decode(foo(spec={"size": 3}))

    assert isinstance(found, CustomObject)
    assert (found.kind, found.key, found.labels) == (FOOS.name, "default/a", {"x": "1"})
    assert found.raw["spec"] == {"size": 3}
    assert found.raw["kind"] == "Foo"
    assert "managedFields" not in found.raw["metadata"]


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    found = decode({"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "r"}})

    assert (found.namespace, found.key) == ("", "r")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"apiVersion": "example.com/v2"}, id="another version"),
        pytest.param({"apiVersion": "example.org/v1"}, id="another group"),
        pytest.param({"kind": "Bar"}, id="another kind"),
    ],
)
def test_what_no_plugin_reads_stays_unknown(changes: dict[str, str]) -> None:
    assert isinstance(decode(foo(**changes)), UnknownObject)


def test_it_stays_unknown_where_no_plugin_reads_it() -> None:
    assert isinstance(decode_object(foo()), UnknownObject)


def test_items_of_lists_are_read() -> None:
    with reading_custom([FOOS]):
        found = list(iter_objects({"kind": "List", "apiVersion": "v1", "items": [foo(), foo()]}))

    assert [type(obj).__name__ for obj in found] == ["Foo", "Foo"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param({}, "metadata.name: expected a name; got none", id="without a name"),
        pytest.param({"name": "a", "labels": 3}, "metadata.labels: expected object", id="labels"),
    ],
)
def test_a_faulty_object_is_refused_with_its_path(metadata: Any, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode({**foo(), "metadata": metadata})


def test_a_patch_changes_the_manifest_and_keeps_the_rest() -> None:
    found: Any = apply_patch(decode(foo(spec={"size": 3, "on": True})), {"spec": {"size": 4}})

    assert isinstance(found, CustomObject)
    assert to_dict(found)["spec"] == {"size": 4, "on": True}
    assert found.labels == {"x": "1"}


@pytest.mark.parametrize(
    ("resource", "problem"),
    [
        pytest.param(FOOS, None, id="plural, version and group"),
        pytest.param(CustomResource("configmaps.v1.", "ConfigMap"), None, id="the core group"),
        pytest.param(CustomResource("Foo", "Foo"), "expected plural.version.group", id="a kind"),
        pytest.param(CustomResource("foos.v1", "Foo"), "got .foos.v1.", id="without a group"),
        pytest.param(CustomResource("foos.example.com/v1", "Foo"), "got", id="as apiVersion"),
        pytest.param(CustomResource("foos.v1.example.com", "foos"), "as Foo", id="kind as plural"),
        pytest.param(
            CustomResource("pods.v1.", "Pod"), "does not have; got Pod", id="a known kind"
        ),
        pytest.param(
            CustomResource("podgroups.v1alpha1.scheduling.x-k8s.io", "PodGroup"),
            None,
            id="another group's kind of a known name",
        ),
    ],
)
def test_what_cannot_be_declared_says_why(resource: CustomResource, problem: str | None) -> None:
    found = resource.problem()

    assert (found is None) if problem is None else re.search(problem, found or "")
