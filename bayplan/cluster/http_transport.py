"""HttpTransport: send a request over HTTP or HTTPS with a timeout.

Blocking, and one connection per request: the scheduler waits for its extenders, as kube-scheduler
does. Only the standard library is needed.
"""

from __future__ import annotations

import ssl
import tempfile
import time
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException, HTTPResponse
from socket import socket
from urllib.parse import SplitResult, urlsplit

import msgspec

from ..errors import ApiError, ConfigError

CHUNK = 65_536
HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
OK = 200


class TlsOptions(msgspec.Struct, frozen=True):
    """Trusted authorities and the client certificate; data (PEM) takes precedence over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class HttpTransport:
    """Posts to URLs. Raises ConfigError for certificates that cannot be used."""

    def __init__(self, tls: TlsOptions | None = None) -> None:
        self._tls = tls or TlsOptions()
        self._context = make_context(self._tls)

    def post(self, url: str, body: bytes, timeout_s: float) -> bytes:
        """The body of the response; raises ApiError on a timeout, or when its status is not 200."""
        deadline = time.monotonic() + timeout_s
        try:
            connection = self._connect(urlsplit(url), timeout_s)
            try:
                return self._exchange(connection, url, body, deadline)
            finally:
                connection.close()
        except TimeoutError as error:
            raise ApiError(f'Post "{url}": no answer within {timeout_s:g}s') from error
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ApiError(f'Post "{url}": {reason}') from error

    def _connect(self, url: SplitResult, timeout_s: float) -> HTTPConnection:
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f'expected a URL with http or https; got "{url.geturl()}"')
        if url.scheme == "http":
            connection = HTTPConnection(url.hostname, url.port, timeout=timeout_s)
            connection.connect()
            return connection
        connection = HTTPConnection(url.hostname, url.port or 443, timeout=timeout_s)
        connection.connect()
        name = self._tls.server_name or url.hostname
        try:
            connection.sock = self._context.wrap_socket(connection.sock, server_hostname=name)
        except BaseException:  # closed in any case
            connection.close()
            raise
        return connection

    def _exchange(
        self, connection: HTTPConnection, url: str, body: bytes, deadline: float
    ) -> bytes:
        wire: socket = connection.sock  # stays open until the response is read
        wire.settimeout(_left(deadline))
        parts = urlsplit(url)
        target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        connection.request("POST", target, body, HEADERS)
        with connection.getresponse() as response:
            answer = _read(response, wire, deadline)
        if response.status != OK:
            raise ApiError(f'Post "{url}": code {response.status}', response.status)
        return answer


def _read(response: HTTPResponse, wire: socket, deadline: float) -> bytes:
    """The whole body. A socket's timeout is per read; a slow stream must not exceed the total."""
    parts: list[bytes] = []
    while not response.isclosed():
        wire.settimeout(_left(deadline))
        part = response.read1(CHUNK)
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def make_context(tls: TlsOptions) -> ssl.SSLContext:
    """The SSL context for these options."""
    if tls.insecure and (tls.ca_data or tls.ca_file):
        raise ConfigError(
            "specifying a root certificates file with the insecure flag is not allowed"
        )
    try:
        data, file = tls.ca_data.decode("ascii") or None, tls.ca_file or None
        context = ssl.create_default_context(cafile=None if data else file, cadata=data)
        if tls.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if (tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file):
            _identify(context, tls)
    except (OSError, ValueError) as error:
        raise ConfigError(f"tlsConfig: certificates cannot be used: {error}") from error
    return context


def _identify(context: ssl.SSLContext, tls: TlsOptions) -> None:
    """Load the client certificate; the library accepts files only, so data is written to a
    temporary one."""
    with ExitStack() as stack:
        paths = []
        for data, path in ((tls.cert_data, tls.cert_file), (tls.key_data, tls.key_file)):
            if data:
                file = stack.enter_context(tempfile.NamedTemporaryFile())
                file.write(data)
                file.flush()
                path = file.name
            paths.append(path)
        context.load_cert_chain(*paths)
