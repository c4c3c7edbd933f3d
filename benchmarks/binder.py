"""Binder: a client that only binds: the baseline of a scheduler without scheduling.

Binds the pending pods to the nodes in turn, over many connections, and with `--events` records
Scheduled for each. Its rate is the maximum an API server allows on a machine. A separate process,
so that its processor time can be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from tests.rig.live.client import LiveClient, Tree
from tests.rig.live.kinds import path_of

CONNECTIONS = 32
HEAD_END = b"\r\n\r\n"


class Work(NamedTuple):
    """A pod and its node."""

    namespace: str
    name: str
    uid: str
    node: str


class Poster:
    """One connection: posts, and waits for the response."""

    def __init__(
        self, client: LiveClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader, self._writer = reader, writer
        headers = {**client.headers, "Host": "localhost", "Content-Type": "application/json"}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    async def post(self, path: str, body: bytes) -> None:
        """Send one POST, which must be accepted."""
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(HEAD_END)
        start = answer.lower().index(b"content-length:") + len(b"content-length:")
        text = await self._reader.readexactly(int(answer[start : answer.index(b"\r\n", start)]))
        assert answer.startswith(b"HTTP/1.1 201"), text.decode()


async def bind_all(client: LiveClient, pods: list[Work], with_events: bool) -> None:
    """Bind all pods."""
    address = urlsplit(client.url)
    work = iter(pods)

    async def run() -> None:
        reader, writer = await asyncio.open_connection(
            address.hostname, address.port, ssl=client.tls
        )
        poster = Poster(client, reader, writer)
        for item in work:
            await poster.post(f"{path_of('Pod', item.namespace, item.name)}/binding", binding(item))
            if with_events:
                path = f"/apis/events.k8s.io/v1/namespaces/{item.namespace}/events"
                await poster.post(path, scheduled(item))
        writer.close()

    await asyncio.gather(*(run() for _ in range(CONNECTIONS)))


def binding(item: Work) -> bytes:
    """The Binding of a pod."""
    metadata = {"namespace": item.namespace, "name": item.name, "uid": item.uid}
    target = {"kind": "Node", "name": item.node}
    head = {"apiVersion": "v1", "kind": "Binding"}
    return msgspec.json.encode({**head, "metadata": metadata, "target": target})


def scheduled(item: Work, numbers: Iterator[int] = itertools.count()) -> bytes:  # noqa: B008
    """The event of a binding, in kube-scheduler's form."""
    name = f"{item.name}.{next(numbers):016x}"
    regarding = {"kind": "Pod", "namespace": item.namespace, "name": item.name, "uid": item.uid}
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": item.namespace, "name": name},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": "binder",
        "reportingInstance": "binder",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"apiVersion": "v1", **regarding},
        "note": f"Successfully assigned {item.namespace}/{item.name} to {item.node}",
        "type": "Normal",
    }
    return msgspec.json.encode(event)


def find_work(client: LiveClient) -> list[Work]:
    """The pending pods, each with a node."""
    names = [node["metadata"]["name"] for node in client.get(path_of("Node"))["items"]]
    pods: list[Tree] = client.get(path_of("Pod"))["items"]
    heads = [pod["metadata"] for pod in pods if not pod["spec"].get("nodeName")]
    return [
        Work(head["namespace"], head["name"], head["uid"], node)
        for head, node in zip(heads, itertools.cycle(names), strict=False)
    ]


def main() -> None:
    """Bind the pending pods."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--events", action="store_true")
    arguments = parser.parse_args()
    client = LiveClient(arguments.kubeconfig)
    asyncio.run(bind_all(client, find_work(client), arguments.events))


if __name__ == "__main__":
    main()
