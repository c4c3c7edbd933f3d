"""One peer: a connection to an API server for one question, and a server in JSON for the duration of a test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from bayplan.apiserver.server import make_kubeconfig
from bayplan.kube.connection import Connection
from bayplan.kube.live_cluster import connected

from .live.json_server import JsonServer

Result = TypeVar("Result")
Respond = Callable[[str, Any], tuple[int, Any]]
"""Gives status and tree for a path, and the body that is posted."""
TIMEOUT_S = 30.0


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


@contextmanager
def json_server(respond: Respond) -> Iterator[str]:
    """The address of a server; `respond` is called by its threads."""
    server = JsonServer(respond)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()


def status_tree(code: int, message: str) -> tuple[int, dict[str, Any]]:
    """A refusal of a server, with its status."""
    return code, {"kind": "Status", "status": "Failure", "code": code, "message": message}
