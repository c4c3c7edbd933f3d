"""Senders: authentication, other sites' pages, impersonation and escalation."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.rig.api_server import PODS, ServerInThread, api_server
from tests.rig.trees import pod_tree

from .rig import CORE, RBAC, SECRET, GuardedApi, rule
from .wire import exchange, statuses

MAPS = f"{CORE}/configmaps"
TOKEN = f"Authorization: Bearer {SECRET}\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param("", id="none"),
        pytest.param("Authorization: Bearer \r\n", id="an empty token"),
        pytest.param(f"Authorization: Basic {SECRET}\r\n", id="another scheme"),
        pytest.param(f"X-Authorization: Bearer {SECRET}\r\n", id="another header"),
        pytest.param(f"Cookie: token={SECRET}\r\n", id="a cookie"),
        pytest.param("Authorization: Bearer a.b.c\r\n", id="a token that is not signed"),
        pytest.param("X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n", id="a proxy"),
        pytest.param(
            f"{TOKEN}Authorization: Bearer wrong\r\n", id="two tokens of which the last is wrong"
        ),
    ],
)
@pytest.mark.parametrize("target", [PODS, f"{PODS}?access_token={quote(SECRET)}", f"//{PODS}"])
def test_no_other_way_to_log_in(headers: str, target: str) -> None:
    data = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()
    with api_server(token=SECRET) as api:
        assert statuses(exchange(api, data)) == [401]
        assert api.get(PODS, Authorization=f"Bearer {SECRET}").status == 200


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param("GET /version HTTP/1.1\r\nHost: evil.example\r\n", 403, id="another host"),
        pytest.param(
            "GET http://evil.example/version HTTP/1.1\r\nHost: localhost\r\n",
            200,
            id="the absolute form has no effect",
        ),
        pytest.param(
            "GET http://localhost/version HTTP/1.1\r\nHost: evil.example\r\n",
            403,
            id="nor does it hide the host",
        ),
        pytest.param(
            "GET /version HTTP/1.1\r\nHost: localhost@evil.example\r\n", 403, id="a user's name"
        ),
        pytest.param(
            "GET /version HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example\r\n",
            200,
            id="a header of proxies has no effect",
        ),
        pytest.param(
            "GET /version HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n",
            403,
            id="another origin",
        ),
        pytest.param(
            "GET /version HTTP/1.1\r\nHost: localhost\r\nOrigin: \r\n", 403, id="an empty origin"
        ),
    ],
)
def test_hosts_and_origins(api: ServerInThread, head: str, status: int) -> None:
    assert statuses(exchange(api, f"{head}\r\n".encode())) == [status]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_of_another_site_writes_nothing(api: ServerInThread, kind: str) -> None:
    answer = api.request("POST", MAPS, {"metadata": {"name": "a"}}, kind)

    assert answer.status == 415
    assert "a" not in api.get(MAPS).names


def test_there_is_no_answer_to_a_preflight(api: ServerInThread) -> None:
    answer = api.request("OPTIONS", MAPS, None, Access_Control_Request_Method="DELETE")

    assert answer.status >= 400
    assert not any(name.lower().startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Impersonate_User": "system:admin"}, id="a user"),
        pytest.param({"Impersonate_Group": "system:masters"}, id="a group alone"),
        pytest.param(
            {"Impersonate_User": "jane", "Impersonate_Group": "system:masters"}, id="masters"
        ),
        pytest.param(
            {"Impersonate_User": "jane", "Impersonate_Uid": "1"}, id="a uid that is not granted"
        ),
        pytest.param(
            {"Impersonate_User": "jane", "Impersonate_Extra_scopes": "x"}, id="extra that is not"
        ),
        pytest.param(
            {"Impersonate_User": "system:serviceaccount:kube-system:default"}, id="an account"
        ),
        pytest.param({"IMPERSONATE_USER": "system:admin"}, id="in capitals"),
    ],
)
def test_an_account_is_no_other_user_than_it_may_be(
    guarded: GuardedApi, headers: dict[str, str]
) -> None:
    mallory = guarded.account(
        "mallory", rule("impersonate", "users", names="jane"), everywhere=True
    )

    assert mallory.ask("GET", PODS, **headers).status in (400, 403)
    assert mallory.ask("GET", PODS, Impersonate_User="jane").status == 403, "jane may not read"


EVERYTHING: dict[str, Any] = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
BIND = {
    "metadata": {"name": "up"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
    "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "mallory"}],
}


def test_an_account_gives_itself_nothing(guarded: GuardedApi) -> None:
    group = "rbac.authorization.k8s.io"
    kinds = "roles rolebindings clusterroles clusterrolebindings"
    mallory = guarded.account(
        "mallory", rule("create update patch get list", kinds, group), everywhere=True
    )
    apply, merge = "application/apply-patch+yaml", "application/merge-patch+json"
    head = {"apiVersion": f"{group}/v1"}
    role = {**head, "kind": "ClusterRole", "metadata": {"name": "up"}, "rules": [EVERYTHING]}
    mine = f"{RBAC}/clusterroles/mallory"
    tries = [
        ("POST", f"{RBAC}/clusterroles", role, "application/json"),
        ("POST", f"{RBAC}/clusterrolebindings", BIND, "application/json"),
        ("POST", f"{RBAC}/namespaces/default/rolebindings", BIND, "application/json"),
        ("PATCH", f"{RBAC}/clusterroles/up?fieldManager=m", role, apply),
        ("PATCH", mine, {"rules": [EVERYTHING]}, merge),
        ("PATCH", mine, {"aggregationRule": {"clusterRoleSelectors": [{}]}}, merge),
    ]
    for method, path, body, kind in tries:
        assert mallory.ask(method, path, body, kind).status == 403, (method, path)
    assert mallory.ask("GET", PODS).status == 403


def test_tokens_of_others_need_their_own_right(guarded: GuardedApi) -> None:
    mallory = guarded.account("mallory", rule("create", "serviceaccounts/token", names="mallory"))
    guarded.make(f"{CORE}/serviceaccounts", {"metadata": {"name": "boss"}})

    assert mallory.ask("POST", f"{CORE}/serviceaccounts/mallory/token", {}).status == 201
    assert mallory.ask("POST", f"{CORE}/serviceaccounts/boss/token", {}).status == 403
    assert mallory.ask("POST", PODS, pod_tree("a")).status == 403
