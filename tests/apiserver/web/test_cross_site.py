"""Access: pages of other sites are refused, bodies have a type and a limit, and a token is needed."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.apiserver.server import make_credentials
from bayplan.apiserver.web import watches
from bayplan.apiserver.web.http_requests import MAX_BODY
from bayplan.errors import InputError
from tests.rig.api_server import ServerInThread, api_server, config_map_tree

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("127.0.0.1:6443", 200, id="an address with a port"),
        pytest.param("[::1]:6443", 200, id="an IPv6 address"),
        pytest.param("localhost", 200, id="localhost"),
        pytest.param("LOCALHOST:1", 200, id="localhost in capitals"),
        pytest.param("rebound.example:6443", 403, id="a name pointed at this machine"),
        pytest.param("localhost.rebound.example", 403, id="a name that begins with localhost"),
        pytest.param("127.0.0.1.rebound.example", 403, id="a name that begins with an address"),
        pytest.param("", 403, id="no name"),
    ],
)
def test_only_hosts_that_are_this_machine(api: ServerInThread, host: str, status: int) -> None:
    assert api.get(MAPS, Host=host).status == status


def test_a_host_name_of_the_server_is_accepted() -> None:
    with api_server(hosts=["build-7.internal"]) as api:
        assert api.get(MAPS, Host="build-7.internal:6443").status == 200


def own(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("origin", "token", "status"),
    [
        pytest.param("http://evil.example", "", 403, id="another site's page"),
        pytest.param("null", "", 403, id="a page without an origin"),
        pytest.param("http://localhost:3000", "", 403, id="another server of this machine"),
        pytest.param("http://[::1", "", 403, id="no address"),
        pytest.param("OWN", "", 201, id="the server's own page"),
        pytest.param("http://localhost:8001", "secret", 201, id="kubectl proxy, with the token"),
        pytest.param("http://evil.example", "secret", 403, id="another site's, with the token"),
    ],
)
def test_origins(origin: str, token: str, status: int) -> None:
    with api_server(token=token) as api:
        origin = origin.replace("OWN", own(api.server.port))
        headers = {"Origin": origin, "Authorization": f"Bearer {token}"}
        answer = api.request("POST", MAPS, config_map_tree("a"), **headers)

    assert answer.status == status


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        pytest.param("text/plain", 415, id="a type that a form may send"),
        pytest.param("application/x-www-form-urlencoded", 415, id="a form"),
        pytest.param("multipart/form-data; boundary=x", 415, id="a form in parts"),
        pytest.param("application/octet-stream", 415, id="bytes"),
        pytest.param("application/json; charset=utf-8", 201, id="JSON with a charset"),
        pytest.param("application/yaml", 201, id="YAML"),
    ],
)
def test_types_of_bodies(api: ServerInThread, content_type: str, status: int) -> None:
    answer = api.request("POST", MAPS, config_map_tree("a"), content_type)

    assert answer.status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_every_write_checks_the_type(api: ServerInThread, method: str) -> None:
    api.make(MAPS, config_map_tree("a"))
    path = MAPS if method == "POST" else f"{MAPS}/a"

    answer = api.request(method, path, config_map_tree("a"), "text/plain")

    assert answer.status == 415


def test_a_body_that_is_too_large_is_refused_with_its_limit(api: ServerInThread) -> None:
    answer = api.post(MAPS, config_map_tree("a", text="x" * MAX_BODY))

    assert (answer.status, answer.tree["reason"]) == (413, "RequestEntityTooLarge")
    assert str(MAX_BODY) in answer.tree["message"]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content_type", "body", "problem"),
    [
        pytest.param("application/yaml", BOMB.encode(), "aliases", id="aliases of aliases"),
        pytest.param("application/yaml", b"a: &a [*a]", "anchor", id="an alias of itself"),
        pytest.param("application/yaml", b"a: 1\n---\na: 2", "one YAML", id="two documents"),
        pytest.param("application/json", b"[" * 100_000, "no JSON", id="deep JSON"),
        pytest.param("application/yaml", b"- " * 100_000, "no YAML", id="deep YAML"),
    ],
)
def test_bodies_that_only_cost(
    api: ServerInThread, content_type: str, body: bytes, problem: str
) -> None:
    answer = api.request("POST", MAPS, body, content_type)

    assert answer.status == 400
    assert problem in answer.tree["message"]


def test_open_watches_are_limited(api: ServerInThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "MAX_WATCHES", 1)
    with api.watch(MAPS) as first:
        refused = api.get(f"{MAPS}?watch=true")

        assert first.status == 200
        assert (refused.status, refused.tree["reason"]) == (429, "TooManyRequests")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="none"),
        pytest.param({"Authorization": "Bearer secre"}, id="a part of it"),
        pytest.param({"Authorization": "secret"}, id="without its scheme"),
        pytest.param({"Authorization": "Basic secret"}, id="with another scheme"),
    ],
)
def test_a_token_that_is_not_the_servers(given: dict[str, Any]) -> None:
    with api_server(token="secret") as api:
        assert api.get(MAPS, **given).status == 401
        assert api.get("/healthz", **given).status == 200
        assert api.get(MAPS, Authorization="Bearer secret").status == 200


def test_credentials_outlive_a_restart(tmp_path: Path) -> None:
    first = make_credentials(tmp_path, ["localhost"])

    assert make_credentials(tmp_path, ["localhost"]) == first
    assert make_credentials(tmp_path, ["localhost", "10.0.0.1"]) != first
    assert all(file.stat().st_mode & 0o77 == 0 for file in tmp_path.iterdir())


def test_credentials_need_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match="expected a folder"):
        make_credentials(tmp_path / "file" / "data", ["localhost"])
