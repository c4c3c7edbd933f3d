"""HTTP client: persistent connections, streams, proxies; the server is a script on the same event loop."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bayplan.cluster.certificates import make_certificate
from bayplan.kube.http_client import Address, HttpClient, LostError

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class ScriptedServer:
    """Answers each request with the next of `answers`; None closes the connection instead."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError, IndexError):
            pass
        writer.close()


async def get(client: HttpClient, address: Address, method: str = "GET") -> bytes:
    async with client.send(address, method, "/path", {"Accept": "x"}) as (_, body):
        return await body.read()


def serve(
    handler: Handler,
    work: Callable[[HttpClient, str], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> None:
    """Run `work` with a client and the address of a server that runs `handler`."""

    async def run() -> None:
        server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=tls)
        client = HttpClient()
        scheme = "https" if tls is not None else "http"
        try:
            async with asyncio.timeout(20):
                port = server.sockets[0].getsockname()[1]
                await work(client, f"{scheme}://127.0.0.1:{port}")
        finally:
            await client.close()
            server.close()

    asyncio.run(run())


def test_connection_is_used_again_when_the_body_was_read() -> None:
    server = ScriptedServer(OK, OK, OK)

    async def work(client: HttpClient, url: str) -> None:
        for _ in range(3):
            assert await get(client, Address(url)) == b"ok"

    serve(server, work)

    assert server.connections == 1
    assert server.requests[0].startswith(b"GET /path HTTP/1.1\r\nHost: 127.0.0.1:")


def test_connection_is_not_used_again_when_the_server_says_so() -> None:
    server = ScriptedServer(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), OK)

    async def work(client: HttpClient, url: str) -> None:
        await get(client, Address(url))
        await get(client, Address(url))

    serve(server, work)

    assert server.connections == 2


def test_a_request_sent_ahead_is_answered_once() -> None:
    server = ScriptedServer(OK, OK)

    async def work(client: HttpClient, url: str) -> None:
        client.send_ahead(Address(url), "/path", {"Accept": "x"})
        while not server.requests:
            await asyncio.sleep(0)
        assert await get(client, Address(url)) == b"ok"
        assert len(server.requests) == 1
        assert await get(client, Address(url)) == b"ok"

    serve(server, work)

    assert len(server.requests) == 2


def test_a_failure_of_a_request_sent_ahead_is_that_of_the_request() -> None:
    server = ScriptedServer(None, OK)

    async def work(client: HttpClient, url: str) -> None:
        client.send_ahead(Address(url), "/path", {"Accept": "x"})
        with pytest.raises(LostError):
            await get(client, Address(url))
        assert await get(client, Address(url)) == b"ok"

    serve(server, work)


def test_a_request_sent_ahead_for_nothing_ends_with_the_client() -> None:
    server = ScriptedServer()

    async def work(client: HttpClient, url: str) -> None:
        client.send_ahead(Address(url), "/path", {"Accept": "x"})
        await client.close()

    serve(server, work)


@pytest.mark.parametrize(
    ("method", "is_repeated"),
    [pytest.param("GET", True, id="a read"), pytest.param("POST", False, id="a write")],
)
def test_only_reads_are_repeated_on_a_new_connection(method: str, is_repeated: bool) -> None:
    server = ScriptedServer(OK, None, OK)

    async def work(client: HttpClient, url: str) -> None:
        await get(client, Address(url))
        if is_repeated:
            assert await get(client, Address(url), method) == b"ok"
            return
        with pytest.raises(LostError):
            await get(client, Address(url), method)

    serve(server, work)

    assert server.connections == 1 + is_repeated


def test_a_fresh_connection_that_breaks_is_an_error() -> None:
    async def work(client: HttpClient, url: str) -> None:
        with pytest.raises(LostError, match="before the end"):
            await get(client, Address(url))

    serve(ScriptedServer(None), work)


def test_stream_gives_pieces_as_they_arrive_and_ends_after_silence() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await reader.read()  # until the client times out
        writer.close()

    pieces = []

    async def follow(client: HttpClient, url: str) -> None:
        async with client.send(Address(url), "GET", "/", {}) as (_, body):
            body.silence_s = 0.01
            async for piece in body.iter_any():
                pieces.append(piece)

    async def work(client: HttpClient, url: str) -> None:
        with pytest.raises(TimeoutError):
            await follow(client, url)

    serve(handler, work)

    assert pieces == [b"one"]


def test_stream_that_is_not_read_stops_receiving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.kube.http_client.MAX_UNREAD", 100)
    size = 1 << 24

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        writer.close()

    async def work(client: HttpClient, url: str) -> None:
        largest = total = 0
        async with client.send(Address(url), "GET", "/", {}) as (_, body):
            async for piece in body.iter_any():
                largest, total = max(largest, len(piece)), total + len(piece)
                for _ in range(20):
                    await asyncio.sleep(0)  # more would arrive meanwhile
        assert total == size
        assert largest < size

    serve(handler, work)


def test_http_proxy_is_sent_the_whole_address_and_its_user() -> None:
    proxy = ScriptedServer(OK)

    async def work(client: HttpClient, url: str) -> None:
        address = Address("http://api.example:8080", proxy=url.replace("//", "//me:secret@"))
        assert await get(client, address) == b"ok"

    serve(proxy, work)

    head = proxy.requests[0].decode()
    assert head.startswith(
        "GET http://api.example:8080/path HTTP/1.1\r\nHost: api.example:8080\r\n"
    )
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in head


def test_https_goes_through_a_tunnel_of_the_proxy(tmp_path: Path) -> None:
    certificate = make_certificate()
    pem = tmp_path / "server.pem"
    pem.write_bytes(certificate.cert + b"\n" + certificate.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    trusting = ssl.create_default_context(cadata=certificate.cert.decode())
    server, asked = ScriptedServer(OK), []

    async def work(client: HttpClient, url: str) -> None:
        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            there, back = await asyncio.open_connection(*url.removeprefix("https://").split(":"))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(copy(reader, back), copy(there, writer))

        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        address = Address(url, trusting, proxy=f"http://127.0.0.1:{port}")
        assert await get(client, address) == b"ok"
        await client.close()
        proxy.close()

    serve(server, work, serving)

    assert asked[0].startswith(b"CONNECT 127.0.0.1:")


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


def test_proxy_that_refuses_is_named() -> None:
    async def work(client: HttpClient, url: str) -> None:
        address = Address("https://api.example", ssl.create_default_context(), proxy=url)
        with pytest.raises(LostError, match="refused with status 407"):
            await get(client, address)

    serve(ScriptedServer(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n"), work)
