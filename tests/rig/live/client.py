"""Client: a small blocking client for any API server, for tests. One connection per thread."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml

Tree = dict[str, Any]

TOO_MANY_REQUESTS = 429
MOST_REPEATS = 10
TIMEOUT_S = 30.0
WRITERS = 8
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
GONE_WRONG = (OSError, http.client.HTTPException)
"""Exceptions of a connection when the server is unreachable or disconnects."""


class LiveResponse(NamedTuple):
    """A response."""

    status: int
    tree: Any


class RefusedError(AssertionError):
    """The server violated an assumption of a test."""


class Watch:
    """An open watch; iterating gives its events until the server ends it, or `close` is called."""

    def __init__(
        self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
    ) -> None:
        self._connection = connection
        connection.request("GET", path, headers=headers)
        self._socket = connection.sock
        self._response = connection.getresponse()
        self._socket.settimeout(None)  # a watch may be silent for long

    def __iter__(self) -> Iterator[Tree]:
        if self._response.status != 200:
            yield {"type": "ERROR", "object": msgspec.json.decode(self._response.read())}
            return
        while line := self._response.readline():
            yield msgspec.json.decode(line)

    def close(self) -> None:
        """Close the watch; a reader in another thread ends, too."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class LiveClient:
    """A client of the first cluster and user in a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = str(cluster["server"])
        self._address = urlsplit(self.url)
        self.headers = {"Accept": "application/json", "User-Agent": "bayplan-testing"}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
        self.tls: ssl.SSLContext | None = None
        if self._address.scheme == "https":
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
            self.tls = ssl.create_default_context(cadata=authority)
        self._local = threading.local()

    def connect(self) -> http.client.HTTPConnection:
        """A new connection."""
        host, port = self._address.hostname or "", self._address.port
        if self.tls is not None:
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self.tls)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)

    def request(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> LiveResponse:
        """Send a request; a GET again as long as the server wants it later, as of a kind that it begins to serve."""
        for _ in range(MOST_REPEATS):
            answer = self._request(method, path, body, kind)
            if method != "GET" or answer.status != TOO_MANY_REQUESTS:
                break
            time.sleep(answer.tree.get("details", {}).get("retryAfterSeconds", 1))
        return answer

    def _request(self, method: str, path: str, body: Any, kind: str) -> LiveResponse:
        """Send a request. On a connection that the server closed meanwhile it is repeated once."""
        data = None if body is None else msgspec.json.encode(body)
        headers = self.headers if data is None else {**self.headers, "Content-Type": kind}
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if kept is not None:
            try:
                return _exchange(kept, method, path, data, headers)
            except GONE_WRONG:
                kept.close()
        self._local.connection = connection = self.connect()
        return _exchange(connection, method, path, data, headers)

    def get(self, path: str) -> Any:
        """The object or list at `path`, which must exist."""
        return self._need(self.request("GET", path), f"GET {path}")

    def find(self, path: str) -> Any | None:
        """The object at `path`, None when there is none."""
        answer = self.request("GET", path)
        return None if answer.status == 404 else self._need(answer, f"GET {path}")

    def create(self, path: str, tree: Tree) -> Any:
        return self._need(self.request("POST", path, tree), f"POST {path}")

    def create_all(self, path: str, trees: Iterable[Tree]) -> None:
        """Create many objects, several at a time."""
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda tree: self.create(path, tree), trees))

    def update(self, path: str, tree: Tree) -> Any:
        return self._need(self.request("PUT", path, tree), f"PUT {path}")

    def patch(self, path: str, body: Any, kind: str = "merge") -> Any:
        """Send a patch: json, merge or strategic."""
        return self._need(self.request("PATCH", path, body, PATCH_TYPES[kind]), f"PATCH {path}")

    def delete(self, path: str, **options: Any) -> None:
        """Delete an object, if it exists."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        answer = self.request("DELETE", path, body)
        if answer.status != 404:
            self._need(answer, f"DELETE {path}")

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete many objects at once, without grace, several at a time."""
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda path: self.delete(path, gracePeriodSeconds=0), paths))

    def is_ready(self) -> bool:
        """Whether the server reports ready."""
        try:
            return self.request("GET", "/readyz").status == 200
        except GONE_WRONG:
            return False

    def watch(self, path: str, version: str) -> Watch:
        """The events since `version`."""
        joint = "&" if "?" in path else "?"
        query = f"{joint}watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        return Watch(self.connect(), path + query, self.headers)

    def _need(self, answer: LiveResponse, what: str) -> Any:
        if answer.status >= 300:
            raise RefusedError(f"{what}: {answer.status} {answer.tree}")
        return answer.tree


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    data: bytes | None,
    headers: dict[str, str],
) -> LiveResponse:
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    text = response.read()
    is_json = "json" in (response.getheader("Content-Type") or "")
    return LiveResponse(response.status, msgspec.json.decode(text) if is_json else text.decode())
