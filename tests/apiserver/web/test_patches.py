"""Patches over HTTP, of all four kinds."""

from typing import Any

import pytest

from bayplan.apiserver.web.requests import parse_yaml
from tests.rig.api_server import ServerInThread, config_map_tree, workload_tree

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param("merge", {"data": {"x": None, "y": "2"}}, {"y": "2"}, id="merge"),
        pytest.param("strategic", {"data": {"y": "2"}}, {"x": "1", "y": "2"}, id="strategic"),
        pytest.param(
            "json", [{"op": "replace", "path": "/data/x", "value": "9"}], {"x": "9"}, id="json"
        ),
    ],
)
def test_patch(api: ServerInThread, kind: str, body: Any, expected: dict[str, str]) -> None:
    api.make(MAPS, config_map_tree("a", x="1"))

    answer = api.patch(f"{MAPS}/a", body, kind)

    assert answer.status == 200
    assert answer.tree["data"] == expected


@pytest.mark.parametrize(
    ("kind", "body", "code", "reason"),
    [
        pytest.param("json", {"a": 1}, 400, "BadRequest", id="no list of operations"),
        pytest.param(
            "json", [{"op": "test", "path": "/data/x", "value": "2"}], 422, "Invalid", id="test"
        ),
        pytest.param(
            "json", [{"op": "remove", "path": "/data/none"}], 422, "Invalid", id="nothing there"
        ),
        pytest.param(
            "merge", {"metadata": {"resourceVersion": "1"}}, 409, "Conflict", id="a stale version"
        ),
        pytest.param("merge", {"metadata": {"name": "b"}}, 400, "BadRequest", id="another name"),
        pytest.param("merge", {"kind": "Secret"}, 400, "BadRequest", id="another kind"),
        pytest.param("merge", {"data": 5}, 400, "BadRequest", id="another type"),
        pytest.param("strategic", [], 400, "BadRequest", id="no object"),
        pytest.param("apply", {"data": {}}, 422, "Invalid", id="apply without a manager"),
    ],
)
def test_patch_rejects(api: ServerInThread, kind: str, body: Any, code: int, reason: str) -> None:
    api.make(MAPS, config_map_tree("a", x="1"))

    answer = api.patch(f"{MAPS}/a", body, kind)

    assert (answer.status, answer.tree["reason"]) == (code, reason)


def test_an_unknown_patch_type(api: ServerInThread) -> None:
    api.make(MAPS, config_map_tree("a"))

    answer = api.request("PATCH", f"{MAPS}/a", {}, "application/json")

    assert (answer.status, answer.tree["reason"]) == (415, "UnsupportedMediaType")


def test_apply_creates_and_changes(api: ServerInThread) -> None:
    path = f"{MAPS}/a?fieldManager=me"

    made = api.patch(path, config_map_tree("a", x="1", y="2"), "apply")
    changed = api.patch(path, config_map_tree("a", x="1"), "apply")
    again = api.patch(path, config_map_tree("a", x="1"), "apply")

    assert (made.status, changed.status) == (201, 200)
    assert changed.tree["data"] == {"x": "1"}
    assert again.tree["metadata"]["resourceVersion"] == changed.tree["metadata"]["resourceVersion"]
    assert changed.tree["metadata"]["managedFields"][0]["manager"] == "me"


def test_apply_in_conflict_names_manager_and_field(api: ServerInThread) -> None:
    api.patch(f"{MAPS}/a?fieldManager=one", config_map_tree("a", x="1"), "apply")

    answer = api.patch(f"{MAPS}/a?fieldManager=two", config_map_tree("a", x="2"), "apply")
    forced = api.patch(
        f"{MAPS}/a?fieldManager=two&force=true", config_map_tree("a", x="2"), "apply"
    )

    assert (answer.status, answer.tree["reason"]) == (409, "Conflict")
    cause = answer.tree["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.x")
    assert forced.tree["data"] == {"x": "2"}


def test_scale(api: ServerInThread) -> None:
    api.make(DEPLOYMENTS, workload_tree("Deployment", "web", 2))
    path = f"{DEPLOYMENTS}/web/scale"

    scale = api.get(path).tree
    put = api.put(path, {**scale, "spec": {"replicas": 5}})
    stale = api.put(path, {**scale, "spec": {"replicas": 6}})
    patched = api.patch(path, {"spec": {"replicas": 0}})
    negative = api.patch(path, {"spec": {"replicas": -1}})

    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"]["selector"] == "app=web"
    assert put.tree["spec"] == {"replicas": 5}
    assert stale.status == 409
    assert patched.tree["spec"] == {"replicas": 0}
    assert negative.status == 422
    assert api.get(f"{DEPLOYMENTS}/web").tree["spec"]["replicas"] == 0


@pytest.mark.parametrize("text", [b'{"a": [1]}', b"{a: [1]}", b'{"a": [1],}', b"a:\n- 1\n"])
def test_a_body_of_apply_is_json_or_yaml_of_both_styles(text: bytes) -> None:
    assert parse_yaml(text) == {"a": [1]}
