"""Storm: random requests to `bayplan up` with RBAC (`make storm`).

python -m tests.security.storm --count 50000

Requests of an account with few rights, and of the administrator: paths, verbs, queries, bodies, patches and types of
content. None may be answered with a 5xx, none that was not granted with data, none may take longer than two seconds,
and the memory of the server must stay near that of its start.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import sys
import tempfile
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from tests.apiserver.web.fuzzing import RandomRequest, random_requests
from tests.rig.live.processes import Process

START_S, TIMEOUT_S = 120.0, 60.0
LIMIT_S, LIMIT_MIB = 2.0, 200.0
SHOWN = 20
DEFAULT = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
GRANTED: list[dict[str, list[str]]] = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["get", "update", "delete", "list"]},
    {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"], "resourceNames": ["a"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update", "create"]},
    {"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["*"]},
    {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["*"]},
]
"""The rights of the account, in one namespace."""
REVIEWS = ("selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews")
PATCH = "application/json-patch+json"


class StormReport(NamedTuple):
    """The outcome of a storm."""

    count: int  # type: ignore[assignment]  # hides the method of tuples
    statuses: dict[int, int]
    problems: list[str]
    slowest_s: float
    grown_mib: float

    @property
    def is_good(self) -> bool:
        return not self.problems and self.slowest_s <= LIMIT_S and self.grown_mib <= LIMIT_MIB


class Asked(NamedTuple):
    """The attributes of a request, read here on purpose a second time, apart from the server's code."""

    verb: str
    namespace: str
    group: str
    resource: str
    name: str


def asked(method: str, target: str) -> Asked | None:
    """Attributes of a request; None for paths that are no objects, which every account may read."""
    path, _, query = target.partition("?")
    steps = unquote(path).strip("/").split("/")
    if steps[0] not in ("api", "apis") or len(steps) < (3 if steps[0] == "api" else 4):
        return None
    group, rest = ("", steps[2:]) if steps[0] == "api" else (steps[1], steps[3:])
    namespace = rest[1] if rest[0] == "namespaces" and len(rest) > 1 else ""
    if namespace and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    resource, name, part = (*rest, "", "")[:3]
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    verb = verbs.get(method, "get" if name else "list")
    given: dict[str, str] = dict(reversed(parse_qsl(query, keep_blank_values=True)))
    if verb == "list":
        verb = "list" if given.get("watch", "0").lower() in ("0", "false") else "watch"
        only = given.get("fieldSelector", "").removeprefix("metadata.name=")
        name = only if "=" not in only and "fieldSelector" in given else ""
    elif verb == "delete" and not name:
        verb = "deletecollection"
    return Asked(verb, namespace, group, f"{resource}/{part}" if part else resource, name)


def is_granted(question: Asked) -> bool:
    """Whether the account may do that."""
    if question.group.startswith("auth") and question.resource in REVIEWS:
        return question.verb == "create"
    part = question.resource.partition("/")[2]
    return question.namespace == "default" and any(
        question.group in rule["apiGroups"]
        and (question.resource in rule["resources"] or (part and f"*/{part}" in rule["resources"]))
        and (question.verb in rule["verbs"] or "*" in rule["verbs"])
        and question.name in rule.get("resourceNames", [question.name])
        for rule in GRANTED
    )


class StormClient:
    """One connection to the server."""

    def __init__(self, config: dict[str, Any]) -> None:
        cluster = config["clusters"][0]["cluster"]
        url = urlsplit(cluster["server"])
        self._address = (str(url.hostname), int(url.port or 0))
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self.token: str = config["users"][0]["user"]["token"]
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        host, port = self._address
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self._context)

    def send(self, request: RandomRequest, token: str) -> tuple[int, bytes]:
        """Status and body; of a watch only the status."""
        headers = {**request.headers, "Authorization": f"Bearer {token}"}
        for attempt in range(2):
            try:
                self._connection.request(request.method, request.path, request.body, headers)
                response = self._connection.getresponse()
                break
            except (ConnectionError, http.client.HTTPException):
                self._connection.close()  # the server has ended it after a refusal
                if attempt:
                    return 0, b""
        if response.getheader("Transfer-Encoding") == "chunked":
            self._connection.close()
            return response.status, b""
        return response.status, response.read()

    def make(self, path: str, tree: Any) -> Any:
        """Create an object as the administrator."""
        headers = {"Content-Type": "application/json"}
        request = RandomRequest("POST", path, headers, json.dumps(tree).encode())
        status, body = self.send(request, self.token)
        assert status in (201, 409), body.decode(errors="replace")
        return json.loads(body)


def account_token(client: StormClient) -> str:
    """The token of an account that has the rights; makes it, and the kind that it may use."""
    group = "rbac.authorization.k8s.io"
    client.make(f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "storm"}})
    client.make(
        f"{RBAC}/namespaces/default/roles", {"metadata": {"name": "storm"}, "rules": GRANTED}
    )
    binding = {
        "metadata": {"name": "storm"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "storm"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "storm"}],
    }
    client.make(f"{RBAC}/namespaces/default/rolebindings", binding)
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    text = {"type": "string", "pattern": "^(a+)+$"}
    spec = {"type": "object", "properties": {"s": text}}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "free": free}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "group": "example.com",
        "names": names,
        "scope": "Namespaced",
        "versions": [version],
    }
    client.make(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": definition})
    made = client.make(f"{DEFAULT}/serviceaccounts/storm/token", {"spec": {}})
    token: str = made["status"]["token"]
    return token


def storm_requests(seed: int, count: int) -> Iterator[tuple[RandomRequest, bool]]:
    """Random requests, and whether the administrator sends them."""
    rng = Random(seed)
    for request in random_requests(seed, count):
        method, path, headers, body = request
        if rng.random() < 0.15:
            place, _, query = path.partition("?")
            path = "?".join(filter(None, (_bent(rng, place), query)))
        if method == "GET" and rng.random() < 0.02:
            path += ("&" if "?" in path else "?") + rng.choice(("watch=1", "watch=", "watch=true"))
        if rng.random() < 0.05:
            yield _attack(rng), rng.random() < 0.5
        # The end of the storm itself is left out.
        if method == "DELETE" and ("rbac." in path or "serviceaccounts" in path or "crd" in path):
            continue
        is_fatal = method != "GET" and ("rbac." in path or "namespaces/default?" in f"{path}?")
        yield RandomRequest(method, path, headers, body), rng.random() < 0.3 and not is_fatal


def _bent(rng: Random, path: str) -> str:
    """A path with one step changed."""
    steps = path.split("/")
    place = rng.randrange(1, len(steps) + 1)
    words = ("", "", "%2F", "status", "eviction", "token", "scale", ".", "watch", "namespaces", "a")
    if rng.random() < 0.5:
        return "/".join([*steps[:place], rng.choice(words), *steps[place:]])
    return "/".join([*steps[: place - 1], rng.choice(words), *steps[place:]])


def _attack(rng: Random) -> RandomRequest:
    """A request that once cost much, or that once got through."""
    copies = [{"op": "copy", "from": "", "path": f"/free/c{i}"} for i in range(22)]
    deep: list[dict[str, Any]] = [{"op": "add", "path": "/free", "value": {}}]
    deep += [{"op": "copy", "from": "/free", "path": f"/free{'/a' * i}"} for i in range(1, 150)]
    widget = {
        "metadata": {"name": rng.choice("abc")},
        "spec": {"s": "a" * rng.choice((3, 40)) + "!"},
    }
    kind = "application/json"
    form = rng.randrange(8)
    if form < 2:
        body = json.dumps(copies if form else deep).encode()
        return RandomRequest("PATCH", f"{WIDGETS}/a", {"Content-Type": PATCH}, body)
    if form == 2:
        return RandomRequest("POST", WIDGETS, {"Content-Type": kind}, json.dumps(widget).encode())
    if form == 3:
        good = {"metadata": {"name": "a"}, "spec": {"s": "aa"}, "free": {"x": "x" * 1000}}
        return RandomRequest("POST", WIDGETS, {"Content-Type": kind}, json.dumps(good).encode())
    if form == 4:
        kind = "application/vnd.kubernetes.protobuf"
        head = b"k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12"
        tail = rng.randbytes(rng.randrange(100))
        body = head + bytes([len(tail)]) + tail
        return RandomRequest("POST", f"{DEFAULT}/pods", {"Content-Type": kind}, body)
    if form == 5:
        tree = {"metadata": {"name": rng.choice(("mine", "other"))}}
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/mine"
        return RandomRequest("PUT", path, {"Content-Type": kind}, json.dumps(tree).encode())
    part = rng.choice(
        ("pods//eviction", "pods//status", "serviceaccounts//token", "pods/%2Fstatus")
    )
    method = rng.choice(("GET", "POST", "DELETE", "PUT"))
    body = json.dumps({"metadata": {"name": "made"}}).encode()
    return RandomRequest(method, f"{DEFAULT}/{part}", {"Content-Type": kind}, body)


def run(count: int, seed: int, folder: Path, limit_s: float = LIMIT_S) -> StormReport:
    """Start a server, and send that many requests."""
    kubeconfig = folder / "kubeconfig"
    options = ["--no-page", "--nodes=3", "--authorization=rbac", f"--kubeconfig={kubeconfig}"]
    command = [sys.executable, "-m", "bayplan.cli.main", "up", "--port=0", *options]
    server = Process(command, folder / "up.log")
    statuses: Counter[int] = Counter()
    problems: list[str] = []
    slowest_s = 0.0
    try:
        server.wait_until(kubeconfig.exists, "ready", START_S)
        client = StormClient(yaml.safe_load(kubeconfig.read_text()))
        token = account_token(client)
        began_mib = server.memory_mib()["rss"]
        for request, is_admin in storm_requests(seed, count):
            began, began_cpu_s = time.monotonic(), server.cpu_s()
            status, body = client.send(request, client.token if is_admin else token)
            took_s = time.monotonic() - began
            slowest_s = max(slowest_s, took_s)
            statuses[status] += 1
            shown = f"{request.method} {request.path[:200]}: {status} {body[:300]!r}"
            if status >= 500 and status != 504:  # 504: a version of the future, as kube-apiserver
                problems.append(f"failed: {shown}")
            if took_s > limit_s:
                cpu_s = server.cpu_s() - began_cpu_s
                problems.append(f"took {took_s:.1f} s, {cpu_s:.1f} s of it computing: {shown}")
            question = asked(request.method, request.path)
            if not is_admin and status < 400 and question and not is_granted(question):
                problems.append(f"not granted: {shown}")
        status, _ = client.send(RandomRequest("GET", "/version", {}, None), token)
        if status != 200:
            problems.append(f"the account is gone, or the server is: {status}")
        grown_mib = server.memory_mib()["rss"] - began_mib
    finally:
        server.stop()
    return StormReport(sum(statuses.values()), dict(statuses), problems, slowest_s, grown_mib)


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.security.storm", description=__doc__)
    parser.add_argument("--count", type=int, default=50_000, help="how many requests")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the requests")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        report = run(given.count, given.seed, Path(folder))
    print("\n".join(report.problems[:SHOWN]))
    print(f"{report.count} requests: {dict(sorted(report.statuses.items()))}")
    print(
        f"{len(report.problems)} problems; the slowest request took {report.slowest_s:.2f} s;"
        f" the server grew by {report.grown_mib:.0f} MiB"
    )
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
