"""Clients are known by their certificate, or by the headers of a proxy whose certificate is trusted."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bayplan.clock import ManualClock
from bayplan.cluster.certificates import Certificate, make_certificate
from bayplan.errors import InputError
from bayplan.web.delegated import ClientAuthorities, DelegatedAccess
from bayplan.web.route_server import WebServer
from bayplan.web.tls import ServerCertificate, ServingTls

ALICE = make_certificate("alice", ["ops", "dev"])
PROXY = make_certificate("front-proxy")
OTHER_PROXY = make_certificate("other-proxy")
STRANGER = make_certificate("alice", ["system:masters"])
AS_BOB = {
    "X-Remote-User": "bob",
    "X-Remote-Group": "ops",
    "X-Remote-Uid": "7",
    "X-Remote-Extra-Scopes": "a",
}


class Reviews:
    """Allows everything, and remembers for whom."""

    def __init__(self) -> None:
        self.users: list[dict[str, Any]] = []

    async def review_token(self, review: dict[str, Any]) -> dict[str, Any]:
        return {"status": {"authenticated": False}}

    async def review_access(self, review: dict[str, Any]) -> dict[str, Any]:
        spec = dict(review["spec"])
        del spec["nonResourceAttributes"]
        self.users.append(spec)
        return {"status": {"allowed": True}}


def ask(
    tmp_path: Path,
    client: Certificate | None,
    headers: Mapping[str, str] | None = None,
    options: ServingTls | None = None,
    **request: Any,
) -> dict[str, Any]:
    """The user that a request is reviewed for."""
    reviews = Reviews()
    certificate = ServerCertificate(options)
    authorities = ClientAuthorities(
        certificate.context,
        names=["front-proxy"],
        user_headers=["x-remote-user"],
        uid_headers=["x-remote-uid"],
        group_headers=["x-remote-group"],
        extra_prefixes=["x-remote-extra-"],
    )
    authorities.trust_clients(ALICE.cert.decode())
    authorities.trust_proxies(PROXY.cert.decode() + OTHER_PROXY.cert.decode())

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def run() -> None:
        access = DelegatedAccess(reviews, ManualClock(), (), authorities)
        server = WebServer([web.get("/metrics", answer)], access=access, certificate=certificate)
        await server.start()
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(
                    f"{server.url}/metrics",
                    headers=headers,
                    ssl=context_of(tmp_path, client),
                    **request,
                ) as response,
            ):
                assert response.status == 200
        finally:
            await server.stop()

    asyncio.run(run())
    (user,) = reviews.users
    return user


def context_of(tmp_path: Path, client: Certificate | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client is not None:
        cert, key = tmp_path / "client.crt", tmp_path / "client.key"
        cert.write_bytes(client.cert)
        key.write_bytes(client.key)
        context.load_cert_chain(cert, key)
    return context


def test_the_common_name_is_the_user_and_the_organizations_are_the_groups(tmp_path: Path) -> None:
    assert ask(tmp_path, ALICE) == {
        "user": "alice",
        "groups": ["ops", "dev", "system:authenticated"],
    }


def test_a_client_certificate_does_not_make_a_proxy(tmp_path: Path) -> None:
    assert ask(tmp_path, ALICE, AS_BOB)["user"] == "alice"


def test_a_proxy_says_who_the_user_is(tmp_path: Path) -> None:
    assert ask(tmp_path, PROXY, AS_BOB) == {
        "user": "bob",
        "groups": ["ops", "system:authenticated"],
        "uid": "7",
        "extra": {"scopes": ["a"]},
    }


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        pytest.param(None, AS_BOB, id="headers without a certificate"),
        pytest.param(OTHER_PROXY, AS_BOB, id="a proxy with another name"),
        pytest.param(PROXY, {}, id="a proxy without headers"),
    ],
)
def test_others_are_anonymous(
    tmp_path: Path, client: Certificate | None, headers: dict[str, str]
) -> None:
    assert ask(tmp_path, client, headers)["user"] == "system:anonymous"


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    with pytest.raises(aiohttp.ClientError):
        ask(tmp_path, STRANGER)


def test_the_least_version_of_tls_holds(tmp_path: Path) -> None:
    options = ServingTls(min_version="VersionTLS13")
    context = ssl.create_default_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    certificate = ServerCertificate(options)

    assert certificate.context.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], "ECDHE-RSA-AES128-GCM-SHA256"),
        (["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"], "ECDHE-ECDSA-CHACHA20-POLY1305"),
        (["TLS_RSA_WITH_AES_256_CBC_SHA"], "AES256-SHA"),
    ],
)
def test_cipher_suites_have_their_names_in_openssl(names: list[str], expected: str) -> None:
    context = ServerCertificate(ServingTls(ciphers=names)).context
    below = [one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]

    assert below == [expected]


def test_an_unknown_cipher_suite_is_refused() -> None:
    with pytest.raises(InputError, match="--tls-cipher-suites: expected"):
        ServerCertificate(ServingTls(ciphers=["TLS_BEST_WITH_NOTHING"]))


def test_a_name_has_its_own_certificate(tmp_path: Path) -> None:
    other = make_certificate("other.example")
    cert, key = tmp_path / "other.crt", tmp_path / "other.key"
    cert.write_bytes(other.cert)
    key.write_bytes(other.key)
    certificate = ServerCertificate(ServingTls(by_name=[(cert, key, ["*.example"])]))

    async def shown(name: str | None) -> bytes:
        server = WebServer([], certificate=certificate)
        await server.start()
        try:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", server.port, ssl=context_of(tmp_path, None), server_hostname=name
            )
            found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.close()
            return found
        finally:
            await server.stop()

    expected = ssl.PEM_cert_to_DER_cert(other.cert.decode())
    assert asyncio.run(shown("other.example")) == expected
    assert asyncio.run(shown("elsewhere.test")) != expected


def test_a_folder_gets_a_certificate_that_stays(tmp_path: Path) -> None:
    ServerCertificate(ServingTls(folder=tmp_path / "pki"))
    made = (tmp_path / "pki" / "kube-scheduler.crt").read_bytes()
    ServerCertificate(ServingTls(folder=tmp_path / "pki"))

    assert (tmp_path / "pki" / "kube-scheduler.crt").read_bytes() == made
    assert (tmp_path / "pki" / "kube-scheduler.key").stat().st_mode & 0o077 == 0
