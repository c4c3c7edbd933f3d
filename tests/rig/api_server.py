"""API server: the embedded one, for tests: in its own thread, on a free port, with a manual clock.

Shipped, so that authors of clients, schedulers and controllers can test without a cluster.
"""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from bayplan.apiserver.server import ApiServer
from bayplan.clock import ManualClock
from tests.rig.trees import pod_tree

Result = TypeVar("Result")
Tree = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
START = datetime(2026, 1, 1, tzinfo=UTC)
TIMEOUT_S = 30.0
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ServerResponse(NamedTuple):
    """A response."""

    status: int
    tree: Any
    headers: dict[str, str]

    @property
    def names(self) -> list[str]:
        """The names of the objects in a list."""
        return [item["metadata"]["name"] for item in self.tree["items"]]


class WatchStream:
    """An open watch."""

    def __init__(
        self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
    ) -> None:
        self._connection = connection
        connection.request("GET", path, headers=headers)
        self._response = connection.getresponse()
        self.status = self._response.status

    def take(self, count: int) -> list[Tree]:
        """The next `count` events."""
        return [msgspec.json.decode(self._response.readline()) for _ in range(count)]

    def seen(self, count: int) -> list[tuple[str, str]]:
        """The next `count` events, as type and name."""
        return [(e["type"], e["object"]["metadata"].get("name", "")) for e in self.take(count)]

    def ends(self) -> bool:
        """Whether the server has closed the watch."""
        return self._response.readline() == b""

    def close(self) -> None:
        """Close the watch."""
        self._connection.close()


class ServerInThread:
    """A running server and a client for it. Controllers run when `settle` is called."""

    def __init__(self, data_dir: Path | None = None, **options: Any) -> None:
        self.clock = ManualClock(START)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server = self._within(lambda: ApiServer(data_dir, clock=self.clock, **options))
        self._wait(self.server.start())
        self._connection = self._connect()

    # Requests

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        **headers: str,
    ) -> ServerResponse:
        """Send a request; `body` may be a tree or bytes. Header names have _ for -."""
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent["Content-Type"] = content_type
        self._connection.request(method, path, data, sent)
        response = self._connection.getresponse()
        text = response.read()
        is_json = "json" in (response.getheader("Content-Type") or "")
        tree = msgspec.json.decode(text) if is_json and text else text
        return ServerResponse(response.status, tree, dict(response.getheaders()))

    def get(self, path: str, **headers: str) -> ServerResponse:
        return self.request("GET", path, **headers)

    def post(self, path: str, body: Any) -> ServerResponse:
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> ServerResponse:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge") -> ServerResponse:
        """Send a patch: json, merge, strategic or apply."""
        return self.request("PATCH", path, body, PATCH_TYPES[kind])

    def delete(self, path: str, body: Any = None) -> ServerResponse:
        return self.request("DELETE", path, body)

    @contextmanager
    def watch(self, path: str, **headers: str) -> Iterator[WatchStream]:
        """Watch; `path` has the query, `watch=true` is added."""
        joint = "&" if "?" in path else "?"
        stream = WatchStream(self._connect(), f"{path}{joint}watch=true", headers)
        try:
            yield stream
        finally:
            stream.close()

    def make(self, path: str, *trees: Tree) -> Tree:
        """Create objects that must be accepted; return the last."""
        answer = None
        for tree in trees:
            answer = self.post(path, tree)
            assert answer.status == 201, answer.tree
        assert answer is not None
        made: Tree = answer.tree
        return made

    # Time and controllers

    def settle(self) -> None:
        """Run the controllers until no work is left."""
        self._within(self.server.plane.settle)

    def advance(self, seconds: float) -> None:
        """Settle, advance the clock, and settle again."""

        def step() -> None:
            self.server.plane.settle()
            self.clock.advance(seconds)
            self.server.plane.settle()

        self._within(step)

    def within(self, work: Callable[[ApiServer], Result]) -> Result:
        """Run a function with the server, in its thread."""
        return self._within(lambda: work(self.server))

    def stop(self) -> None:
        """Stop the server and its thread."""
        self._connection.close()
        self._wait(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=TIMEOUT_S)

    def _within(self, work: Callable[[], Result]) -> Result:
        async def run() -> Result:
            return work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(TIMEOUT_S)

    def _wait(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)


@contextmanager
def api_server(data_dir: Path | None = None, **options: Any) -> Iterator[ServerInThread]:
    """A server for the duration of a test."""
    server = ServerInThread(data_dir, **options)
    try:
        yield server
    finally:
        server.stop()


def config_map_tree(name: str, **data: str) -> Tree:
    """A small object of a kind without validation rules."""
    metadata = {"name": name, "labels": {"name": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def workload_tree(kind: str, name: str, replicas: int | None = None, **spec: Any) -> Tree:
    """A workload of apps/v1 whose pods have the label app=name."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_tree("")["spec"]}
    given = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **given, **spec},
    }


def bind_tree(name: str, node: str, **metadata: str) -> Tree:
    """A Binding."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"kind": "Node", "name": node},
    }
