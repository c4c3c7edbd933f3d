"""Connection: credentials, refusals as errors, and retries."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.apiserver.server import make_kubeconfig
from bayplan.cluster.certificates import make_certificate
from bayplan.errors import ApiError, ConflictError, InputError, NotFoundError
from bayplan.kube import connection as module
from bayplan.kube import credentials as credentials_module
from bayplan.kube.connection import Answer, Connection, UnreachableError, retried
from bayplan.kube.credentials import load_credentials
from tests.rig.api_server import PODS, ServerInThread, api_server, config_map_tree
from tests.rig.trees import node_tree, pod_tree

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def server() -> Iterator[ServerInThread]:
    with api_server() as server:
        yield server


def run(server_url: str, folder: Path, work: Callable[[Connection], Awaitable[Any]]) -> Any:
    """Run a function with a connection to the server."""
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(make_kubeconfig(server_url)))

    async def connect() -> Any:
        connection = Connection(await load_credentials(path))
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(connect())


def test_object_is_written_and_read(server: ServerInThread, tmp_path: Path) -> None:
    async def work(connection: Connection) -> Any:
        await connection.send("POST", MAPS, config_map_tree("a", key="value"))
        return await connection.get(f"{MAPS}/a")

    assert run(server.server.url, tmp_path, work)["data"] == {"key": "value"}


@pytest.mark.parametrize(
    ("method", "path", "tree", "error", "text"),
    [
        pytest.param(
            "GET", f"{PODS}/x", None, NotFoundError, 'pods "x" not found', id="a missing object"
        ),
        pytest.param(
            "POST", PODS, pod_tree("there"), ConflictError, "already exists", id="a name twice"
        ),
        pytest.param("POST", PODS, {"spec": 1}, ApiError, "spec", id="what is no pod"),
    ],
)
def test_refusal_is_an_error(
    server: ServerInThread,
    tmp_path: Path,
    method: str,
    path: str,
    tree: Any,
    error: type[ApiError],
    text: str,
) -> None:
    server.make("/api/v1/nodes", node_tree("n"))
    server.make(PODS, pod_tree("there"))

    with pytest.raises(error, match=text) as caught:
        run(server.server.url, tmp_path, lambda c: c.send(method, path, tree))

    assert caught.value.code >= 400


def test_an_unreachable_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        UnreachableError, match=r"http://127\.0\.0\.1:9: cannot reach the API server"
    ):
        run("http://127.0.0.1:9", tmp_path, lambda c: c.get("/version"))


class Server:
    """Returns responses, or raises errors, in turn."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def send(self) -> Answer:
        self.asked += 1
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def broken() -> UnreachableError:
    """The outcome of a request when the server breaks the connection."""
    try:
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            raise UnreachableError("broken") from None
    except UnreachableError as error:
        return error


OK = Answer(200, b"{}")


@pytest.mark.parametrize(
    ("answers", "is_get", "code", "asked"),
    [
        pytest.param([OK], False, 200, 1, id="no retry after success"),
        pytest.param([Answer(429, b"", 0), OK], False, 200, 2, id="429 with Retry-After"),
        pytest.param([Answer(503, b"", 0), OK], False, 200, 2, id="503 with Retry-After"),
        pytest.param([Answer(503, b"")], False, 503, 1, id="503 without"),
        pytest.param([Answer(409, b"", 0)], False, 409, 1, id="a conflict"),
        pytest.param([Answer(429, b"", 0)] * 3, False, 429, 3, id="a maximum number of retries"),
        pytest.param([broken(), OK], True, 200, 2, id="a GET whose connection broke"),
    ],
)
def test_request_is_repeated(
    answers: list[Any], is_get: bool, code: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESET_RETRY_S", 0)
    server = Server(*answers)

    answer = asyncio.run(retried(server.send, 2, is_get=is_get))

    assert (answer.code, server.asked) == (code, asked)


def test_write_whose_connection_broke_is_not_repeated() -> None:
    server = Server(broken(), OK)

    with pytest.raises(UnreachableError):
        asyncio.run(retried(server.send))

    assert server.asked == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{", "expected YAML", id="no YAML"),
        pytest.param("a: 1", "current-context", id="no kubeconfig"),
        pytest.param("[]", "as kubectl writes them", id="no object"),
        pytest.param(
            yaml.safe_dump({**make_kubeconfig("http://x"), "current-context": "other"}),
            "other",
            id="an unknown context",
        ),
    ],
)
def test_fault_of_a_kubeconfig_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    with pytest.raises(InputError, match=problem) as caught:
        asyncio.run(load_credentials(path))

    assert str(caught.value).startswith(str(path))


def test_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        asyncio.run(load_credentials(tmp_path / "none"))


def test_exec_plugin_provides_the_token(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": [
            '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
            ' "status": {"token": "from-a-plugin"}}'
        ],
    }
    config = make_kubeconfig("http://x")
    config["users"][0]["user"] = {"exec": plugin}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))

    credentials = asyncio.run(load_credentials(path))

    assert credentials.authorization == "Bearer from-a-plugin"


def test_token_file_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    config = make_kubeconfig("http://x")
    config["users"][0]["user"] = {"tokenFile": str(token)}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))

    async def read() -> str | None:
        credentials = await load_credentials(path)
        token.write_text("new\n")
        await credentials.refresh()
        return credentials.authorization

    assert asyncio.run(read()) == "Bearer new"


def test_wait_ends_when_an_unreachable_server_is_back(
    server: ServerInThread, tmp_path: Path
) -> None:
    async def work(connection: Connection) -> None:
        address = connection.credentials.server
        connection.credentials.server = "http://127.0.0.1:9"
        with pytest.raises(UnreachableError):
            await connection.get("/version")
        waiting = asyncio.ensure_future(connection.pause(3600))
        connection.credentials.server = address
        await connection.get("/version")
        async with asyncio.timeout(20):
            await waiting

    run(server.server.url, tmp_path, work)


def https_config(server: ServerInThread, token: str) -> dict[str, Any]:
    certificate = server.server.certificate
    assert certificate is not None
    return make_kubeconfig(server.server.url, certificate.cert, token)


@pytest.mark.parametrize("token", ["right", "wrong"])
def test_server_with_tls_is_trusted_and_accepts_the_token(tmp_path: Path, token: str) -> None:
    path = tmp_path / "kubeconfig"

    async def ask() -> Any:
        connection = Connection(await load_credentials(path))
        try:
            return await connection.get("/api/v1/namespaces/default")
        finally:
            await connection.close()

    with api_server(token="right", certificate=make_certificate()) as server:
        path.write_text(yaml.safe_dump(https_config(server, token)))
        if token == "right":
            assert asyncio.run(ask())["metadata"]["name"] == "default"
            return
        with pytest.raises(ApiError, match="expected valid credentials") as caught:
            asyncio.run(ask())
        assert caught.value.code == 401


def test_server_with_another_certificate_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"

    async def ask() -> Any:
        connection = Connection(await load_credentials(path))
        try:
            return await connection.get("/version")
        finally:
            await connection.close()

    with api_server(token="t", certificate=make_certificate()) as server:
        config = make_kubeconfig(server.server.url, make_certificate().cert, "t")
        path.write_text(yaml.safe_dump(config))
        with pytest.raises(UnreachableError, match="certificate"):
            asyncio.run(ask())


def test_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("of-the-account\n")
    (tmp_path / "ca.crt").write_bytes(make_certificate().cert)
    monkeypatch.setattr(credentials_module, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    credentials = asyncio.run(load_credentials())

    assert credentials.server == "https://10.0.0.1:443"
    assert credentials.authorization == "Bearer of-the-account"


def test_without_any_cluster_the_error_lists_the_searched_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(InputError, match="expected --kubeconfig, KUBECONFIG"):
        asyncio.run(load_credentials())
