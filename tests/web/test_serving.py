"""Serving: the server with a scheduler's routes, over real connections."""

import asyncio
import json
import os
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bayplan.clock import ManualClock
from bayplan.cluster.certificates import Certificate, make_certificate
from bayplan.config.defaults import default_config
from bayplan.config.encode import encode_config
from bayplan.errors import ApiError, InputError
from bayplan.testing.builders import make_pod
from bayplan.web.access import Access
from bayplan.web.delegated import DelegatedAccess
from bayplan.web.route_server import WebServer, is_loopback
from bayplan.web.scheduler_routes import HealthCheck, scheduler_routes
from bayplan.web.tls import (
    SERVING_CERTIFICATE,
    SERVING_FILES,
    ServerCertificate,
    ServingTls,
    WorkQueues,
)

Tree = dict[str, Any]
Ask = Callable[..., Awaitable[tuple[int, str]]]


async def no_text() -> str:
    return "scheduler_pending_pods 3\n"


async def two_pods() -> Sequence[Any]:
    return [
        make_pod("a", requests={"cpu": "1500m", "memory": "1Gi"}, priority=7),
        make_pod("b", requests={"cpu": "1"}, node_name="n", status={"phase": "Succeeded"}),
    ]


def routes(
    healthz: Sequence[HealthCheck] = (), readyz: Sequence[HealthCheck] = ()
) -> list[web.RouteDef]:
    return scheduler_routes(
        healthz=healthz,
        readyz=readyz,
        render_metrics=no_text,
        list_pods=two_pods,
        configz=encode_config(default_config()),
    )


def serve(
    work: Callable[[Ask], Awaitable[None]],
    given: list[web.RouteDef] | None = None,
    access: Access | None = None,
) -> None:
    """Let `work` send requests to a running server with the given function."""

    async def run() -> None:
        server = WebServer(given if given is not None else routes(), access=access)
        await server.start()
        async with aiohttp.ClientSession() as session:

            async def ask(path: str, **headers: str) -> tuple[int, str]:
                async with session.get(server.url + path, headers=headers) as response:
                    return response.status, await response.text()

            try:
                await work(ask)
            finally:
                await server.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        pytest.param("/healthz", 200, "ok", id="healthz"),
        pytest.param("/livez", 200, "ok", id="livez has no failing check"),
        pytest.param(
            "/livez?verbose", 200, "[+]ping ok\nlivez check passed\n", id="without checks, a ping"
        ),
        pytest.param("/livez/ping", 200, "ok", id="one check alone"),
        pytest.param(
            "/readyz",
            500,
            "[+]leaderElection ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
            id="a failure in verbose form, without the reason",
        ),
        pytest.param(
            "/readyz/sched-handler-sync",
            500,
            "internal server error: handlers are not fully synchronized\n",
            id="the reason is in the response of the single check",
        ),
        pytest.param("/readyz?exclude=sched-handler-sync", 200, "ok", id="excluded"),
        pytest.param(
            "/readyz?exclude=sched-handler-sync&exclude=who&verbose",
            200,
            "[+]leaderElection ok\n[+]sched-handler-sync excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "who"\n'
            "readyz check passed\n",
            id="excluding an unknown check gives a warning",
        ),
        pytest.param("/metrics", 200, "scheduler_pending_pods 3\n", id="metrics"),
        pytest.param("/nothing", 404, "404 page not found\n", id="unknown path"),
    ],
)
def test_paths(path: str, status: int, text: str) -> None:
    election = HealthCheck("leaderElection", lambda: None)
    synced = HealthCheck("sched-handler-sync", lambda: "handlers are not fully synchronized")

    async def work(ask: Ask) -> None:
        assert await ask(path) == (status, text)

    serve(work, routes([election], [election, synced]))


def test_resources_have_the_requests_of_pods() -> None:
    async def work(ask: Ask) -> None:
        _, text = await ask("/metrics/resources")
        head = 'namespace="default",pod="a",node="",scheduler="default-scheduler",priority="7"'
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert lines == [
            f'kube_pod_resource_request{{{head},resource="cpu",unit="cores"}} 1.5',
            f'kube_pod_resource_request{{{head},resource="memory",unit="bytes"}} 1073741824',
        ]

    serve(work)


def test_slis_count_the_checks() -> None:
    async def work(ask: Ask) -> None:
        for _ in range(2):
            await ask("/livez")
        _, text = await ask("/metrics/slis")
        assert 'kubernetes_healthcheck{name="ping",type="livez"} 1.0' in text
        labels = 'name="ping",status="success",type="livez"'
        assert f"kubernetes_healthchecks_total{{{labels}}} 2.0" in text

    serve(work)


def test_configz_is_the_configuration() -> None:
    async def work(ask: Ask) -> None:
        _, text = await ask("/configz")
        tree = json.loads(text)["componentconfig"]
        assert tree["kind"] == "KubeSchedulerConfiguration"
        assert tree["leaderElection"]["leaseDuration"] == "15s"

    serve(work)


def test_a_page_from_elsewhere_cannot_reach_the_loopback() -> None:
    async def work(ask: Ask) -> None:
        assert (await ask("/metrics", Host="evil.example:10259"))[0] == 403
        assert (await ask("/metrics", Host="localhost:10259"))[0] == 200
        assert (await ask("/metrics", Host="[::1]:10259"))[0] == 200

    serve(work)


def test_an_error_in_a_route_is_a_500_without_traceback() -> None:
    async def broken(request: web.Request) -> web.Response:
        raise RuntimeError("secret")

    async def work(ask: Ask) -> None:
        assert await ask("/page") == (500, "internal server error\n")

    serve(work, [web.get("/page", broken)])


class FakeReviews:
    """A fake API server's reviews: users by token, and their allowed paths."""

    def __init__(self) -> None:
        self.users: dict[str, Tree] = {
            "admin": {"username": "admin", "groups": ["system:masters"]},
            "prometheus": {"username": "prometheus", "uid": "7", "groups": ["monitoring"]},
            "visitor": {"username": "visitor"},
        }
        self.allowed = {("prometheus", "/metrics")}
        self.asked: list[Tree] = []
        self.is_away = False

    async def review_token(self, review: Tree) -> Tree:
        await self._ask(review)
        user = self.users.get(review["spec"]["token"])
        return {**review, "status": {"authenticated": bool(user), "user": user}}

    async def review_access(self, review: Tree) -> Tree:
        await self._ask(review)
        spec = review["spec"]
        assert spec["nonResourceAttributes"]["verb"] == "get"
        allowed = (spec["user"], spec["nonResourceAttributes"]["path"]) in self.allowed
        return {**review, "status": {"allowed": allowed, "reason": "" if allowed else "not his"}}

    async def _ask(self, review: Tree) -> None:
        self.asked.append(review)
        if self.is_away:
            raise ApiError("connection refused")
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        pytest.param("/metrics", "Bearer prometheus", 200, id="may see it"),
        pytest.param("/metrics", "bearer prometheus", 200, id="bearer in lower case"),
        pytest.param("/configz", "Bearer prometheus", 403, id="may see another path only"),
        pytest.param("/metrics/", "Bearer prometheus", 403, id="a slash makes another path"),
        pytest.param("/metrics", "Bearer visitor", 403, id="a user without any access"),
        pytest.param("/metrics", "Bearer forged", 401, id="an unknown token"),
        pytest.param("/metrics", "", 403, id="no token is the anonymous user"),
        pytest.param("/metrics", "Basic cHJvbWV0aGV1cw==", 403, id="no bearer token"),
        pytest.param("/configz", "Bearer admin", 200, id="system:masters may everything"),
        pytest.param("/healthz", "", 200, id="probe"),
        pytest.param("/livez", "Bearer forged", 200, id="probe with an unchecked token"),
        pytest.param("/readyz?verbose", "", 200, id="verbose probe"),
        pytest.param("/healthz/ping", "", 403, id="a single check is no probe"),
        pytest.param("/healthz/../metrics", "", 403, id="dots in the path"),
        pytest.param("/nothing", "", 403, id="unknown paths are not distinguished from others"),
    ],
)
def test_delegated_access(path: str, token: str, status: int) -> None:
    async def work(ask: Ask) -> None:
        headers = {"Authorization": token} if token else {}
        assert (await ask(path, **headers))[0] == status

    serve(work, access=DelegatedAccess(FakeReviews(), ManualClock()))


def test_reviews_are_cached_for_ten_seconds() -> None:
    reviews, clock = FakeReviews(), ManualClock()

    async def work(ask: Ask) -> None:
        async def see() -> int:
            return (await ask("/metrics", Authorization="Bearer prometheus"))[0]

        assert await asyncio.gather(*(see() for _ in range(5))) == [200] * 5
        assert len(reviews.asked) == 2  # concurrent requests shared one review
        reviews.users.clear()
        clock.advance(9.9)
        assert await see() == 200
        clock.advance(0.2)
        assert await see() == 401
        assert len(reviews.asked) == 3

    serve(work, access=DelegatedAccess(reviews, clock))


def test_access_is_denied_while_the_api_server_is_unreachable() -> None:
    reviews, clock = FakeReviews(), ManualClock()

    async def work(ask: Ask) -> None:
        reviews.is_away = True
        assert (await ask("/metrics", Authorization="Bearer prometheus"))[0] == 401
        assert await ask("/metrics") == (
            500,
            'Internal Server Error: "/metrics": connection refused\n',
        )
        assert (await ask("/healthz"))[0] == 200
        reviews.is_away = False  # failures are not cached
        assert (await ask("/metrics", Authorization="Bearer prometheus"))[0] == 200

    serve(work, access=DelegatedAccess(reviews, clock))


def test_paths_to_allow_may_end_with_a_star() -> None:
    async def work(ask: Ask) -> None:
        assert (await ask("/healthz/ping"))[0] == 200
        assert (await ask("/livez"))[0] == 403

    serve(work, access=DelegatedAccess(FakeReviews(), ManualClock(), ["/healthz/*"]))


@pytest.mark.parametrize("allowed", ["*", "/*", "healthz*"])
def test_paths_to_allow_need_no_slash(allowed: str) -> None:
    async def work(ask: Ask) -> None:
        assert (await ask("/healthz/ping"))[0] == 200
        assert (await ask("/metrics"))[0] == (403 if allowed == "healthz*" else 200)

    serve(work, access=DelegatedAccess(FakeReviews(), ManualClock(), [allowed]))


def test_https_with_a_self_signed_certificate() -> None:
    async def run() -> None:
        server = WebServer(routes(), certificate=ServerCertificate())
        await server.start()
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        path = f"{server.url}/healthz"
        async with aiohttp.ClientSession() as session, session.get(path, ssl=trusting) as response:
            assert (server.url[:8], await response.text()) == ("https://", "ok")
        await server.stop()

    asyncio.run(run())


def test_https_with_given_files(tmp_path: Path) -> None:
    certificate = make_certificate()
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    cert.write_bytes(certificate.cert)
    key.write_bytes(certificate.key)

    async def run() -> None:
        server = WebServer(routes(), certificate=ServerCertificate(ServingTls(cert, key)))
        await server.start()
        context = ssl.create_default_context(cafile=cert)
        path = f"{server.url}/healthz"
        async with aiohttp.ClientSession() as session, session.get(path, ssl=context) as response:
            assert response.status == 200
        await server.stop()

    asyncio.run(run())


def shown(server: WebServer) -> bytes:
    """The certificate that a new connection receives."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", server.port)))


def test_a_renewed_certificate_is_used(tmp_path: Path) -> None:
    cert, key, clock = tmp_path / "tls.crt", tmp_path / "tls.key", ManualClock()
    first, second, work = make_certificate(), make_certificate(), WorkQueues()

    def put(certificate: Certificate, age: int) -> None:
        for path, text in ((cert, certificate.cert), (key, certificate.key)):
            path.write_bytes(text)
            os.utime(path, (age, age))

    async def run() -> None:
        certificate = ServerCertificate(ServingTls(cert, key), clock, work)
        server = WebServer([], certificate=certificate)
        await server.start()

        async def look() -> bytes:
            async with aiohttp.ClientSession() as session, session.get(server.url, ssl=False):
                pass
            return await asyncio.to_thread(shown, server)

        assert await look() == ssl.PEM_cert_to_DER_cert(first.cert.decode())
        put(second, 2)
        assert await look() == ssl.PEM_cert_to_DER_cert(first.cert.decode())
        clock.advance(60)
        assert await look() == ssl.PEM_cert_to_DER_cert(second.cert.decode())
        cert.write_text("half of a")
        clock.advance(60)
        assert await look() == ssl.PEM_cert_to_DER_cert(second.cert.decode())
        await server.stop()

    put(first, 1)
    asyncio.run(run())
    counts = {name: count for (name,), count in work.adds.read().items()}
    assert counts == {SERVING_FILES: 3, SERVING_CERTIFICATE: 3}


@pytest.mark.parametrize(
    ("cert", "key", "message"),
    [
        pytest.param(None, "key", "--tls-cert-file: expected a file, as", id="key alone"),
        pytest.param("cert", None, "--tls-private-key-file: expected", id="certificate alone"),
        pytest.param("none", "key", "none: expected a file to read; got No such", id="no file"),
        pytest.param("text", "key", "expected a certificate and its key, both PEM", id="no PEM"),
        pytest.param("cert", "other", "other: expected the key of", id="key of another"),
    ],
)
def test_bad_certificates(tmp_path: Path, cert: str | None, key: str | None, message: str) -> None:
    certificate = make_certificate()
    (tmp_path / "cert").write_bytes(certificate.cert)
    (tmp_path / "key").write_bytes(certificate.key)
    (tmp_path / "other").write_bytes(make_certificate().key)
    (tmp_path / "text").write_text("hello")

    with pytest.raises(InputError, match=message):
        ServerCertificate(ServingTls(cert and tmp_path / cert, key and tmp_path / key))  # type: ignore[arg-type]


def test_a_port_in_use_is_reported() -> None:
    async def run() -> None:
        first, second = WebServer([]), WebServer([])
        await first.start()
        with pytest.raises(InputError, match=r"127\.0\.0\.1:\d+: expected .* got Address already"):
            await second.start(first.port)
        await first.stop()

    asyncio.run(run())


def test_a_foreign_address_is_reported() -> None:
    async def run() -> None:
        server = WebServer(
            [], host="192.0.2.1", access=DelegatedAccess(FakeReviews(), ManualClock())
        )
        with pytest.raises(InputError, match=r"192\.0\.2\.1:0: expected .* got Cannot assign"):
            await server.start()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("node-1", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
