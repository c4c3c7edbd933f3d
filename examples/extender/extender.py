"""A scheduler extender in one file: nodes have licences for products, and pods need one.

    python extender.py --port 8099

kube-scheduler and Bayplan call it the same way (see config.yaml beside this file):

- filter: a pod with the annotation `licence.example.com/product` goes only to nodes whose label
  `licence.example.com/products` names the product; products are joined by dots.
- prioritize: nodes with few licences first, so that those with many stay free for pods that need them.
- preempt: pods with the annotation `licence.example.com/keep` are not preempted.
- bind: always succeeds. In a real cluster an extender that binds must create the Binding itself.

Only the standard library is needed. With --cert and --key it speaks HTTPS.
"""

from __future__ import annotations

import argparse
import json
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PRODUCT = "licence.example.com/product"
PRODUCTS = "licence.example.com/products"
KEEP = "licence.example.com/keep"
MAX_SCORE = 10

Tree = dict[str, Any]


def licences(node: Tree) -> list[str]:
    """The products that a node has a licence for."""
    labels = node["metadata"].get("labels") or {}
    return [product for product in labels.get(PRODUCTS, "").split(".") if product]


def annotations(obj: Tree) -> Tree:
    return obj["metadata"].get("annotations") or {}


def filter_nodes(args: Tree) -> Tree:
    """ExtenderArgs -> ExtenderFilterResult."""
    product = annotations(args["Pod"]).get(PRODUCT)
    nodes = args["Nodes"]["items"]
    if product is None:
        return {"Nodes": {"items": nodes}}
    fitting = [node for node in nodes if product in licences(node)]
    # Preemption cannot provide a licence, so it may skip these nodes.
    failed = {
        node["metadata"]["name"]: f"node(s) had no licence for {product}"
        for node in nodes
        if product not in licences(node)
    }
    return {"Nodes": {"items": fitting}, "FailedAndUnresolvableNodes": failed}


def prioritize_nodes(args: Tree) -> list[Tree]:
    """ExtenderArgs -> HostPriorityList."""
    return [
        {
            "Host": node["metadata"]["name"],
            "Score": max(MAX_SCORE - len(licences(node)), 0),
        }
        for node in args["Nodes"]["items"]
    ]


def choose_victims(args: Tree) -> Tree:
    """ExtenderPreemptionArgs -> ExtenderPreemptionResult."""
    left = {
        node_name: {
            "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
            "NumPDBViolations": victims["NumPDBViolations"],
        }
        for node_name, victims in args["NodeNameToVictims"].items()
        if not any(KEEP in annotations(pod) for pod in victims["Pods"])
    }
    return {"NodeNameToMetaVictims": left}


def bind_pod(args: Tree) -> Tree:
    """ExtenderBindingArgs -> ExtenderBindingResult."""
    print(f"bound {args['PodNamespace']}/{args['PodName']} to {args['Node']}")
    return {}


VERBS: dict[str, Callable[[Tree], Any]] = {
    "/filter": filter_nodes,
    "/prioritize": prioritize_nodes,
    "/preempt": choose_victims,
    "/bind": bind_pod,
}


class Handler(BaseHTTPRequestHandler):
    """Responds to POST requests with JSON."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        verb = VERBS.get(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if verb is None:
            self.send_error(404)
            return
        answer = json.dumps(verb(json.loads(body))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def make_server(port: int = 0, cert: str = "", key: str = "") -> ThreadingHTTPServer:
    """A server on the loopback address; port 0 takes a free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key or None)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


def main() -> None:
    parser = argparse.ArgumentParser(description="A scheduler extender for licences.")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--cert", default="", help="a certificate (PEM), for HTTPS")
    parser.add_argument("--key", default="", help="its key (PEM)")
    options = parser.parse_args()
    server = make_server(options.port, options.cert, options.key)
    print(f"listening on port {server.server_port}")
    server.serve_forever()


if __name__ == "__main__":
    main()
