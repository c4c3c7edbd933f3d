"""One peer: a connection to an API server for one question, and a server in JSON for the duration of a test."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from bayplan.apiserver.server import make_kubeconfig
from bayplan.kube.connection import Connection
from bayplan.kube.live_cluster import connected

Result = TypeVar("Result")
Respond = Callable[[str, Any], tuple[int, Any]]
"""Gives status and tree for a path, and the body that is posted."""
TIMEOUT_S = 30.0
POLL_S = 0.01


def write_kubeconfig(folder: Path, url: str, token: str = "") -> Path:
    """A kubeconfig for the server at `url`."""
    path = folder / "kubeconfig"
    path.write_text(json.dumps(make_kubeconfig(url, token=token)))
    return path


def ask(
    folder: Path, url: str, work: Callable[[Connection], Awaitable[Result]], token: str = ""
) -> Result:
    """The result of `work` with a connection to the server at `url`."""

    async def run() -> Result:
        path = write_kubeconfig(folder, url, token)
        async with asyncio.timeout(TIMEOUT_S), connected(path, None) as connection:
            return await work(connection)

    return asyncio.run(run())


class _Listener(ThreadingHTTPServer):
    request_queue_size = 64  # a client opens many connections at once


@contextmanager
def json_server(respond: Respond) -> Iterator[str]:
    """The address of a server that keeps connections open, as API servers do; `respond` is called by its threads."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body are sent together

        def do_GET(self) -> None:
            self._respond(None)

        def do_POST(self) -> None:
            self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _respond(self, given: Any) -> None:
            status, tree = respond(self.path.partition("?")[0], given)
            body = json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None: ...

    with _Listener(("127.0.0.1", 0), Handler) as listener:
        threading.Thread(target=listener.serve_forever, args=(POLL_S,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}"
        finally:
            listener.shutdown()


def status_tree(code: int, message: str) -> tuple[int, dict[str, Any]]:
    """A refusal of a server, with its status."""
    return code, {"kind": "Status", "status": "Failure", "code": code, "message": message}
