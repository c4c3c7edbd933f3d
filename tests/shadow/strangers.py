"""Strangers: an extender, a webhook and a configuration that a shadow is not told of, for a live measurement."""

import base64
import itertools
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bayplan.cluster.certificates import make_certificate

Tree = dict[str, Any]


class Extender:
    """Refuses nodes of one pool for some pods, and prefers those of another one."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                arguments = json.loads(self.rfile.read(size))
                answer = json.dumps(answer_of(self.path, arguments)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def config(self) -> Tree:
        return {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_address[1]}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "nodeCacheCapable": True,
        }

    def stop(self) -> None:
        self._server.shutdown()


def answer_of(path: str, arguments: Tree) -> Any:
    """Odd nodes are refused for pods of tier t3; nodes that end with 4 get ten points."""
    names = arguments.get("NodeNames") or arguments.get("nodenames") or []
    pod = arguments.get("Pod") or arguments.get("pod") or {}
    if path.endswith("prioritize"):
        return [{"Host": name, "Score": 10 if name.endswith("4") else 0} for name in names]
    tier = pod["metadata"].get("labels", {}).get("tier")
    refused = [name for name in names if tier == "t3"]
    kept = [name for name in names if name not in refused]
    return {
        "NodeNames": kept,
        "FailedNodes": dict.fromkeys(refused, "node(s) had no licence left"),
    }


class BindingWebhook:
    """Changes the node of every third binding, as a webhook of an operator may."""

    NAME = "bindings.example.com"

    def __init__(self, folder: Path, node_names: list[str]) -> None:
        certificate = make_certificate()
        for name, content in (("hook.crt", certificate.cert), ("hook.key", certificate.key)):
            (folder / name).write_bytes(content)
        counted = itertools.count()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                review = json.loads(self.rfile.read(size))
                number = next(counted)
                answer: Tree = {"uid": review["request"]["uid"], "allowed": True}
                if number % 3 == 0:
                    target = node_names[number % len(node_names)]
                    patch = [{"op": "replace", "path": "/target/name", "value": target}]
                    text = base64.b64encode(json.dumps(patch).encode()).decode()
                    answer |= {"patchType": "JSONPatch", "patch": text}
                review = {key: review[key] for key in ("apiVersion", "kind")} | {"response": answer}
                body = json.dumps(review).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "hook.crt", folder / "hook.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._bundle = base64.b64encode(certificate.cert).decode()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def configuration(self) -> Tree:
        """The object that registers it."""
        hook = {
            "name": self.NAME,
            "clientConfig": {
                "url": f"https://127.0.0.1:{self._server.server_address[1]}/bind",
                "caBundle": self._bundle,
            },
            "rules": [
                {
                    "operations": ["CREATE"],
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "resources": ["pods/binding"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.NAME},
            "webhooks": [hook],
        }

    def stop(self) -> None:
        self._server.shutdown()


MOST_ALLOCATED = {
    "schedulerName": "default-scheduler",
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "NodeResourcesFitArgs",
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                },
            },
        }
    ],
}
