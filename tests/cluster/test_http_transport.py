"""HttpTransport: over real sockets, on free ports of the loopback address."""

import socket
import ssl
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from bayplan.cluster.http_transport import HttpTransport, TlsOptions
from bayplan.errors import ApiError
from tests.rig.certificates import Certificate, make_certificate

SHORT_S = 0.05
LONG_S = 30.0


class Echo(BaseHTTPRequestHandler):
    """Echoes the request, with the status in the path."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path.strip("/") or 200))
        self.end_headers()
        self.wfile.write(self.headers["Content-Type"].encode() + b" " + body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Ignores clients that do not accept its certificate."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Starts servers; returns the port of each."""
    servers: list[Server] = []

    def start(context: ssl.SSLContext | None = None) -> int:
        server = Server(("127.0.0.1", 0), Echo)
        if context is not None:
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        servers.append(server)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server.server_port

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return make_certificate()


@pytest.fixture
def server_context(certificate: Certificate, tmp_path: Path) -> ssl.SSLContext:
    (tmp_path / "cert.pem").write_bytes(certificate.cert)
    (tmp_path / "key.pem").write_bytes(certificate.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


def post(url: str, tls: TlsOptions | None = None, timeout_s: float = LONG_S) -> bytes:
    return HttpTransport(tls).post(url, b"[1]", timeout_s)


def test_body_goes_there_and_back(serve: Callable[..., int]) -> None:
    assert post(f"http://127.0.0.1:{serve()}") == b"application/json [1]"


def test_a_status_other_than_200_is_an_error(serve: Callable[..., int]) -> None:
    with pytest.raises(ApiError) as raised:
        post(f"http://127.0.0.1:{serve()}/418")

    assert raised.value.code == 418


def listener() -> socket.socket:
    """A listening port that does not respond by itself."""
    return socket.create_server(("127.0.0.1", 0))


def test_connection_refused() -> None:
    with listener() as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}/filter"

    with pytest.raises(ApiError) as raised:
        post(url)

    assert str(raised.value) == f'Post "{url}": Connection refused'
    assert raised.value.code == 0


def test_timeout() -> None:
    with listener() as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/filter"

        with pytest.raises(ApiError) as raised:
            post(url, timeout_s=SHORT_S)

    assert str(raised.value) == f'Post "{url}": no answer within 0.05s'


def answer_with(server: socket.socket, answer: bytes, close: bool = True) -> Thread:
    """Send `answer` to the first client; keep the connection open unless `close`."""

    def run() -> None:
        wire, _ = server.accept()
        request = wire.recv(65_536)
        while request.startswith(b"POST") and not request.endswith(b"[1]"):
            request += wire.recv(65_536)
        wire.sendall(answer)
        if close:
            wire.shutdown(socket.SHUT_RDWR)
            wire.close()
        else:
            wire.recv(1)  # until the client disconnects
            wire.close()

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("answer", "close", "problem"),
    [
        pytest.param(
            b"", True, "Remote end closed connection without response", id="closes the connection"
        ),
        pytest.param(b"SSH-2.0-x\r\n", True, "SSH-2.0-x", id="is not HTTP"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
            False,
            "no answer within 0.05s",
            id="stops in the middle",
        ),
    ],
)
def test_broken_answers(answer: bytes, close: bool, problem: str) -> None:
    with listener() as server:
        thread = answer_with(server, answer, close)

        with pytest.raises(ApiError, match=problem):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout_s=SHORT_S)
        thread.join()


@pytest.mark.parametrize(
    "url", ["", "ftp://x/filter", "127.0.0.1:80/filter", "http://", "http://x:port/", "http://[x/"]
)
def test_invalid_urls(url: str) -> None:
    with pytest.raises(ApiError, match='Post "'):
        post(url)


# HTTPS


def test_https_is_not_trusted_by_default(
    serve: Callable[..., int], server_context: ssl.SSLContext
) -> None:
    with pytest.raises(ApiError, match="certificate verify failed"):
        post(f"https://127.0.0.1:{serve(server_context)}")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda cert, file: TlsOptions(insecure=True), id="insecure"),
        pytest.param(lambda cert, file: TlsOptions(ca_data=cert), id="a CA as data"),
        pytest.param(lambda cert, file: TlsOptions(ca_file=file), id="a CA as a file"),
        pytest.param(
            lambda cert, file: TlsOptions(ca_data=cert, ca_file="/nowhere"), id="data before file"
        ),
        pytest.param(
            lambda cert, file: TlsOptions(ca_data=cert, server_name="localhost"), id="another name"
        ),
    ],
)
def test_https(
    make: Callable[[bytes, str], TlsOptions],
    serve: Callable[..., int],
    server_context: ssl.SSLContext,
    certificate: Certificate,
    tmp_path: Path,
) -> None:
    tls = make(certificate.cert, str(tmp_path / "cert.pem"))

    assert post(f"https://127.0.0.1:{serve(server_context)}", tls) == b"application/json [1]"


def test_a_certificate_for_another_name_is_refused(
    serve: Callable[..., int], server_context: ssl.SSLContext, certificate: Certificate
) -> None:
    tls = TlsOptions(ca_data=certificate.cert, server_name="example.com")

    with pytest.raises(ApiError, match="Hostname mismatch"):
        post(f"https://127.0.0.1:{serve(server_context)}", tls)


@pytest.mark.parametrize("as_data", [True, False])
def test_a_client_sends_its_certificate(
    as_data: bool,
    serve: Callable[..., int],
    server_context: ssl.SSLContext,
    certificate: Certificate,
    tmp_path: Path,
) -> None:
    server_context.verify_mode = ssl.CERT_REQUIRED
    server_context.load_verify_locations(cadata=certificate.cert.decode())
    url = f"https://127.0.0.1:{serve(server_context)}"
    files = {"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")}
    data = {"cert_data": certificate.cert, "key_data": certificate.key}

    known = TlsOptions(ca_data=certificate.cert, **(data if as_data else files))

    assert post(url, known) == b"application/json [1]"
    with pytest.raises(ApiError):
        post(url, TlsOptions(ca_data=certificate.cert))


def test_a_server_without_tls() -> None:
    with listener() as server:
        thread = answer_with(server, b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with pytest.raises(ApiError):
            post(f"https://127.0.0.1:{server.getsockname()[1]}/", TlsOptions(insecure=True))
        thread.join()
