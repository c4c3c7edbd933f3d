"""Names: the object of the body is that of the path, when it is created, too."""

from typing import Any

import pytest

from tests.rig.api_server import PATCH_TYPES, PODS
from tests.rig.trees import pod_tree

from .rig import CORE, JSON, LEASES, GuardedApi, rule

MAPS = f"{CORE}/configmaps"
APPLY = PATCH_TYPES["apply"]
OTHER = "the name of the object (other) does not match the name on the URL (mine)"
NO_NAME = "the name of the object (mine based on URL) was undeterminable: name must be provided"
ELSEWHERE = "the namespace of the provided object does not match the namespace sent on the request"


def lease(**metadata: str) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}


def config_map(**metadata: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


WAYS = [
    pytest.param("PUT", f"{LEASES}/mine", lease, JSON, id="an update that creates"),
    pytest.param("PATCH", f"{MAPS}/mine?fieldManager=m", config_map, APPLY, id="an apply"),
]
METADATA = [
    pytest.param({"name": "other"}, OTHER, id="another name"),
    pytest.param({}, NO_NAME, id="no name"),
    pytest.param({"generateName": "x-"}, NO_NAME, id="a generated name"),
    pytest.param({"name": "mine", "namespace": "kube-system"}, ELSEWHERE, id="another namespace"),
]


@pytest.mark.parametrize(("method", "path", "make", "kind"), WAYS)
@pytest.mark.parametrize(("metadata", "message"), METADATA)
@pytest.mark.parametrize("exists", [False, True], ids=["new", "existing"])
def test_the_body_names_the_object_of_the_path(
    guarded: GuardedApi,
    method: str,
    path: str,
    make: Any,
    kind: str,
    metadata: dict[str, str],
    message: str,
    exists: bool,
) -> None:
    group = "coordination.k8s.io" if make is lease else ""
    plural = "leases" if make is lease else "configmaps"
    mallory = guarded.account("mallory", rule("create update patch", plural, group, "mine"))
    if exists:
        assert mallory.ask(method, path, make(name="mine"), kind).status == 201

    answer = mallory.ask(method, path, make(**metadata), kind)

    assert (answer.status, answer.tree["message"]) == (400, message)
    listed = guarded.admin("GET", path.partition("/mine")[0])
    assert set(listed.names) <= ({"mine"} if exists else set())


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("merge", {"metadata": {"name": "other"}}, id="merge"),
        pytest.param("strategic", {"metadata": {"name": "other"}}, id="strategic"),
        pytest.param(
            "json", [{"op": "replace", "path": "/metadata/name", "value": "other"}], id="json"
        ),
    ],
)
def test_a_patch_does_not_rename(guarded: GuardedApi, kind: str, patch: Any) -> None:
    guarded.make(MAPS, config_map(name="mine"))

    answer = guarded.admin("PATCH", f"{MAPS}/mine", patch, PATCH_TYPES[kind])

    assert (answer.status, answer.tree["message"]) == (400, OTHER)


def test_parts_of_an_object_name_it(guarded: GuardedApi) -> None:
    guarded.make(PODS, pod_tree("a"))
    eviction = {"metadata": {"name": "b"}}
    binding = {"metadata": {"name": "b"}, "target": {"name": "node"}}

    assert guarded.admin("POST", f"{PODS}/a/eviction", eviction).status == 400
    assert guarded.admin("POST", f"{PODS}/a/binding", binding).status == 400
