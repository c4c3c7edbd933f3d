"""Object editor: single objects as YAML, on the page of `bayplan up`."""

import json
from typing import Any

import pytest

from bayplan.apiserver.object_editor import ObjectEditor
from bayplan.errors import InputError
from tests.rig.api_server import PODS, ServerInThread
from tests.rig.trees import node_tree, pod_tree

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  colour: {}\n"
MAPS = "/api/v1/namespaces/default/configmaps"


def edit(api: ServerInThread, do: str, **request: str) -> dict[str, Any]:
    body = json.dumps({"do": do, **request}).encode()
    return api.within(lambda server: ObjectEditor(server.registry).handle(body))


def test_an_object_is_checked_created_and_replaced(api: ServerInThread) -> None:
    checked = edit(api, "check", text=MAP.format("red"))
    unchanged = api.get(MAPS).names
    created = edit(api, "apply", text=MAP.format("red"))
    checked_again = edit(api, "check", text=MAP.format("blue"))
    replaced = edit(api, "apply", text=MAP.format("blue"))

    assert checked == {"said": "configmaps/settings can be created"}
    assert "settings" not in unchanged
    assert created == {"said": "configmaps/settings created"}
    assert checked_again == {"said": "configmaps/settings can be replaced"}
    assert replaced == {"said": "configmaps/settings replaced"}
    assert api.get(f"{MAPS}/settings").tree["data"] == {"colour": "blue"}


def test_a_text_that_was_read_has_no_fields_of_the_server(api: ServerInThread) -> None:
    api.make("/api/v1/nodes", node_tree("a"))
    api.make(PODS, pod_tree("web", nodeName="a"))
    api.settle()

    text = edit(api, "read", kind="Pod", namespace="default", name="web")["text"]

    assert "name: web" in text
    assert not [field for field in ("uid:", "resourceVersion", "status:") if field in text]
    assert edit(api, "apply", text=text) == {"said": "pods/web replaced"}
    assert api.get(f"{PODS}/web").tree["status"]["phase"] == "Running", "the status stays"


def test_an_object_is_deleted(api: ServerInThread) -> None:
    edit(api, "apply", text=MAP.format("red"))

    deleted = edit(api, "delete", kind="ConfigMap", namespace="default", name="settings")

    assert deleted == {"said": "configmaps/settings deleted"}
    assert "settings" not in api.get(MAPS).names


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(
            {"do": "erase"}, "do: expected read, check, apply or delete; got 'erase'", id="a verb"
        ),
        pytest.param(
            {"do": "read", "kind": "Widget"},
            "kind: expected one of core or apps; got 'Widget'",
            id="a kind that does not exist",
        ),
        pytest.param(
            {"do": "read", "kind": "Pod", "namespace": "default", "name": "none"},
            'pods "none" not found',
            id="an object that does not exist",
        ),
        pytest.param(
            {"do": "apply", "text": "- a list"},
            "expected an object in YAML; got something else",
            id="a list",
        ),
        pytest.param(
            {"do": "check", "text": MAP.format("red") + "colour: red\n"},
            'unknown field "colour"',
            id="a field that does not exist",
        ),
    ],
)
def test_a_wrong_request_gets_a_sentence(
    api: ServerInThread, request_: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        edit(api, **request_)

    assert message in str(caught.value)


def test_a_body_that_is_not_json(api: ServerInThread) -> None:
    with pytest.raises(InputError, match="Input data was truncated"):
        api.within(lambda server: ObjectEditor(server.registry).handle(b"{"))
