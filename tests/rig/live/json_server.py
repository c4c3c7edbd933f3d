"""JSON server: answers requests in JSON, on a free port of the loopback."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bayplan.cluster.certificates import make_certificate

POLL_S = 0.01
"""Seconds until a request to stop is noticed."""


class _Listener(ThreadingHTTPServer):
    request_queue_size = 64  # a client opens many connections at once
    is_stopped = False


class JsonServer:
    """Answers each path, and the body that is posted, with a status and a tree; connections stay open.

    With a `folder` it serves HTTPS with a certificate that is written there; `bundle` is that in base64.
    """

    def __init__(
        self, answer: Callable[[str, Any], tuple[int, Any]], folder: Path | None = None
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body are sent together

            def do_GET(self) -> None:
                self._respond(None)

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                self._respond(json.loads(self.rfile.read(size)))

            def _respond(self, given: Any) -> None:
                if listener.is_stopped:  # the request came on a connection that is still open
                    self.close_connection = True
                    return
                status, tree = answer(self.path.partition("?")[0], given)
                body = json.dumps(tree).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None: ...

        self._server = listener = _Listener(("127.0.0.1", 0), Handler)
        self.bundle = "" if folder is None else self._encrypt(folder)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(POLL_S,), daemon=True).start()

    def _encrypt(self, folder: Path) -> str:
        certificate = make_certificate()
        files = folder / "server.crt", folder / "server.key"
        for file, content in zip(files, (certificate.cert, certificate.key), strict=True):
            file.write_bytes(content)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        return base64.b64encode(certificate.cert).decode()

    def stop(self) -> None:
        """Stop serving, also on open connections."""
        self._server.is_stopped = True
        self._server.shutdown()
        self._server.server_close()
