"""`bayplan run` on all addresses: who its clients are, by certificates that flags or the cluster name."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from bayplan.cluster.certificates import Certificate, make_certificate
from tests.rig.api_server import ServerInThread, api_server

from .test_run import TIMEOUT_S, Running, attempts

ALICE = make_certificate("alice")
PROXY = make_certificate("front-proxy")
STRANGER = make_certificate("alice")
"""A certificate that its owner made, with the name of another."""
AS_BOB = {"X-Remote-User": "bob", "X-Remote-Group": "ops"}
PUBLISHED = {
    "client-ca-file": ALICE.cert.decode(),
    "requestheader-client-ca-file": PROXY.cert.decode(),
    "requestheader-allowed-names": '["front-proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
}
"""The data of the ConfigMap in which an API server publishes its authentication."""


@contextmanager
def running_with(
    folder: Path, *flags: str, published: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """A server on all addresses, of a cluster that publishes these data."""
    with api_server(runs_pods=False, token="secret") as api:
        if published is not None:
            publish(api, published)
        running = Running(api, folder, "--bind-address=0.0.0.0", *flags)
        try:
            running.until_ready()
            yield running
        finally:
            running.process.terminate()
            running.process.communicate()


def publish(api: ServerInThread, data: Mapping[str, str]) -> None:
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    path, tree = "/api/v1/namespaces/kube-system/configmaps", {"metadata": metadata, "data": data}
    answer = api.request("POST", path, tree, Authorization="Bearer secret")
    assert answer.status == 201, answer.tree


def code_for(
    running: Running, folder: Path, client: Certificate | None, **headers: str
) -> int | None:
    """The answer to a request for the metrics by this client; None if there is no handshake with it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client is not None:
        cert, key = folder / "client.crt", folder / "client.key"
        cert.write_bytes(client.cert)
        key.write_bytes(client.key)
        context.load_cert_chain(cert, key)
    request = urllib.request.Request(f"https://127.0.0.1:{running.port}/metrics", headers=headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def until_known(running: Running, folder: Path, client: Certificate | None, **headers: str) -> None:
    """Wait for the values that are taken from the cluster."""
    for _ in attempts(running.process):
        if code_for(running, folder, client, **headers) == 200:
            return


def test_clients_are_known_by_the_authorities_that_flags_name(tmp_path: Path) -> None:
    clients, proxies = tmp_path / "clients.crt", tmp_path / "proxies.crt"
    clients.write_bytes(ALICE.cert)
    proxies.write_bytes(PROXY.cert)
    flags = [f"--client-ca-file={clients}", f"--requestheader-client-ca-file={proxies}"]

    with running_with(tmp_path, *flags) as running:
        assert code_for(running, tmp_path, ALICE) == 200
        assert code_for(running, tmp_path, PROXY, **AS_BOB) == 200
        assert code_for(running, tmp_path, None, **AS_BOB) == 403, "a header proves nothing"
        assert code_for(running, tmp_path, STRANGER) != 200


def test_clients_are_known_by_the_authorities_that_the_cluster_publishes(tmp_path: Path) -> None:
    with running_with(tmp_path, published=PUBLISHED) as running:
        until_known(running, tmp_path, ALICE)
        assert code_for(running, tmp_path, PROXY, **AS_BOB) == 200
        assert code_for(running, tmp_path, None) == 403
        assert code_for(running, tmp_path, STRANGER) != 200


def test_published_names_that_are_no_list_are_none(tmp_path: Path) -> None:
    published = {**PUBLISHED, "requestheader-username-headers": "X-Remote-User"}
    with running_with(tmp_path, published=published) as running:
        until_known(running, tmp_path, ALICE)
        assert code_for(running, tmp_path, PROXY, **AS_BOB) == 403, "no header names a user"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "expected a file to read; got No such file", id="no file"),
        pytest.param("text", "expected certificates, PEM; got", id="no certificates"),
    ],
)
def test_an_authority_that_cannot_be_read_is_an_error(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "clients.crt"
    if content is not None:
        path.write_text(content)
    with api_server(runs_pods=False) as api:
        flags = ("--bind-address=0.0.0.0", f"--client-ca-file={path}")
        code, err = Running(api, tmp_path, *flags).end()

    assert code == 2
    assert f"--client-ca-file: {path}: {message}" in " ".join(err.split())


def test_reviews_go_to_the_api_server_of_another_kubeconfig(tmp_path: Path) -> None:
    with api_server(runs_pods=False, token="other") as other:
        user = {"name": "u", "user": {"token": "other"}}
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": other.server.url}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [user],
        }
        path = tmp_path / "reviews"
        path.write_text(json.dumps(tree))
        with running_with(tmp_path, f"--authentication-kubeconfig={path}") as running:
            assert running.get("/metrics", Authorization="Bearer other")[0] == 200
            assert running.get("/metrics", Authorization="Bearer secret")[0] == 401


def test_without_a_lookup_certificates_are_not_accepted(
    tmp_path: Path,
) -> None:
    with running_with(tmp_path, "--authentication-skip-lookup", published=PUBLISHED) as running:
        assert code_for(running, tmp_path, ALICE) == 403
